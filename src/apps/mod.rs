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
mod locations;
mod oauth;
mod plan;
mod secrets;
mod snippet;
mod variables;

pub use app::{APPS, App};
pub use app_file::{
    AppFile, FoundEntry, FoundServer, OtherProjectServers, ServerSource, find_servers,
    servers_of_config,
};
pub use backups::{Backups, ConnectRecord, OriginalFile};
pub use connected_file::{ConnectError, ConnectedFile};
pub use dormouse_entry::DormouseTransport;
pub use entry::TranslatedEntry;
pub use locations::{Directories, FileScope, Os};
pub use plan::{ImportPlan, PlannedOutcome, PlannedServer, SkippedServer, server_identity};
pub use secrets::{
    PlaintextSecret, bare_secret, find_secrets, find_secrets_in_text, mask_secrets,
    mask_secrets_in_value, move_secrets,
};
pub use snippet::parse_snippets;
pub use variables::RequiredVariable;
