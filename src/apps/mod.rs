//! AI tools that use MCP servers: where each keeps its config files, in which format, and how
//! dormouse reads and edits them.
//!
//! This module returns what is there and what would be written. It asks the user nothing, and must
//! not know about running servers.

mod app;
mod app_file;
mod backups;
mod connected_file;
mod dormouse_entry;
mod entry;
mod found_server;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod locations;
mod oauth_settings;
mod plan;
mod secrets;
mod snippet;
mod variables;

pub use app::APPS;
pub(crate) use app::{App, app_file_names};
pub(crate) use app_file::servers_of_config;
pub use app_file::{AppFile, find_servers};
pub(crate) use backups::ConnectRecord;
pub use backups::{Backups, OriginalFile};
pub use connected_file::ConnectedFile;
pub use dormouse_entry::DormouseTransport;
pub(crate) use entry::TranslatedEntry;
pub use found_server::{FoundEntry, FoundServer};
pub(crate) use found_server::{OtherProjectServers, ServerSource};
pub use locations::{Directories, FileScope, Os};
pub use plan::server_identity;
pub(crate) use plan::{ImportPlan, PlannedOutcome, PlannedServer, SkippedServer};
pub(crate) use secrets::{
    PlaintextSecret, bare_secret, find_secrets, find_secrets_in_text, mask_secrets,
    mask_secrets_in_value, move_secrets,
};
pub(crate) use snippet::parse_snippets;
pub(crate) use variables::RequiredVariable;
