//! AI tools that use MCP servers: where each keeps its config files, in which format, and how
//! dormouse reads and edits them.
//!
//! This module returns what is there and what would be written. It asks the user nothing, and must
//! not know about running servers.

mod backups;
mod connect;
mod entry;
mod login;
mod own;
mod places;
mod plan;
mod read;
mod secrets;
mod snippet;
mod table;
mod variables;

pub use backups::{Backups, Before, Connection};
pub use connect::{ConnectError, Connected};
pub use entry::Entry;
pub use own::Way;
pub use places::{Directories, Os, Scope};
pub use plan::{Outcome, Plan, Planned, Skipped, target};
pub use read::{Candidate, Elsewhere, Fate, Source, Spot, candidates, of_config};
pub use secrets::{Secret, hidden, keep_secrets, masked, masked_value, secrets, secrets_in};
pub use snippet::snippets;
pub use table::{APPS, App};
pub use variables::Needed;
