//! The two eras of MCP as pure functions: handshakes, capabilities, and the translation of messages
//! between the eras. Nothing in this module performs I/O or knows a connection.

pub mod adapt;
mod era;
pub mod error;
pub mod extension;
mod handshake;
mod implementation;
mod level;
pub mod method;
mod pagination;
mod random_token;
mod relayed_handshake;
pub mod request_headers;
pub mod task;

pub use era::{Client, Era, LEGACY_VERSIONS, MODERN_VERSION, Meta, supported_versions};
pub use implementation::{client_meta, implementation};
pub use level::LogLevel;
pub use pagination::has_cursor;
pub use random_token::random_token;
pub use relayed_handshake::introduced;

pub use handshake::{
    DiscoverAnswer, Greeting, answer_discover, answer_initialize, discover_params,
    initialize_params, invites_retry, is_modern_initialize, offered_capabilities, read_discover,
    read_initialize, routed_capabilities,
};
