//! The config: from a file's text to one validated [`Config`].
//!
//! `file` is the shape as written (serde), `Config` the meaning (no serde). It knows nothing of
//! connections or of the protocol.

mod characters;
mod check;
mod convert;
mod dialect;
mod document;
mod duration;
mod edits;
mod environment;
mod expand;
mod file;
mod find;
mod format;
mod lock;
mod merge;
mod model;
mod problem;
mod schema;
mod tools;
mod transport;
mod trust;
mod watch;

pub use characters::{hex, is_hidden, is_invisible, visible};
pub use convert::{Converted, convert};
pub use dialect::Dialect;
pub use duration::parse_duration;
pub use edits::{MergeError, ReplaceError, create_file, private_file, replace_file};
pub use environment::Environment;
pub use find::{ConfigFile, Found, find, find_own, own_place};
pub use format::{Edit, EditError, Format};
pub use lock::lock;
pub use merge::ToolChanges;
pub use model::{
    AlwaysLoad, Config, Features, Framing, HttpSettings, Isolation, Launch, Listing, Loads, Pin,
    Profile, Protocol, Remote, ServerConfig, Settings, Startup, Surface, Timeouts, Transport,
    Unavailable,
};
pub use problem::{ConfigError, Problem};
pub use schema::{json_schema, reference, server_keys};
pub use tools::ToolRules;
pub use trust::TrustStore;
pub use watch::Watch;

use std::path::Path;

/// Reads, expands and validates a config file's text.
///
/// # Errors
/// Every problem of the file, each with its place.
pub fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    let document = document::Document::parse(text, path)?;
    check::check(&document, path, environment)
}
