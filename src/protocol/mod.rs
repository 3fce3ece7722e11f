//! The two eras of MCP as pure functions: handshakes, capabilities, and the translation of messages
//! between the eras. Nothing in this module performs I/O or knows a connection.

pub(crate) mod adapt;
mod era;
pub(crate) mod error;
pub(crate) mod extension;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod handshake;
mod implementation;
mod level;
pub(crate) mod method;
mod pagination;
mod relayed_handshake;
pub(crate) mod request_headers;
pub(crate) mod task;
mod tool_annotations;
mod tool_result;
mod trace_context;

pub use era::Era;
pub(crate) use era::{
    ClientIdentity, Elicitation, LEGACY_VERSIONS, MODERN_VERSION, Meta, supported_versions,
};
pub(crate) use implementation::{client_meta, implementation};
pub(crate) use level::LogLevel;
pub(crate) use pagination::{has_cursor, next_cursor};
pub(crate) use relayed_handshake::introduced;
pub(crate) use tool_annotations::ToolAnnotations;
pub(crate) use tool_result::is_error_result;
pub(crate) use trace_context::TraceContext;

pub use handshake::Greeting;
pub(crate) use handshake::{
    DiscoverAnswer, answer_discover, answer_initialize, discover_params, initialize_params,
    invites_retry, is_modern_initialize, offered_capabilities, read_discover, read_initialize,
    routed_capabilities,
};
