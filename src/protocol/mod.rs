//! MCP's two eras as pure functions: handshakes, capabilities, and adapting a message from one era
//! to the other. Nothing here does I/O or knows a connection.

pub mod adapt;
mod era;
pub mod error;
pub mod extension;
mod handshake;
mod introduction;
mod level;
pub mod method;
pub mod mirror;
pub mod task;
mod token;

pub use era::{Client, Era, LEGACY_VERSIONS, MODERN_VERSION, Meta, supported_versions};
pub use introduction::introduced;
pub use level::LogLevel;
pub use token::random_token;

pub use handshake::{
    DiscoverAnswer, Greeting, answer_discover, answer_initialize, client_meta, discover_params,
    implementation, initialize_params, invites_retry, is_modern_initialize, offered_capabilities,
    read_discover, read_initialize, routed_capabilities,
};
