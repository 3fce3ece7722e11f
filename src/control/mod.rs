//! What a running dormouse can be asked and told: over a socket that only its user can open, and over HTTP with a
//! token.
//!
//! It does not know how the config is kept: whoever follows that makes the changes that are wanted.

mod api;
mod changes;
mod openapi;
mod report;
#[cfg(unix)]
mod socket;

pub use api::{BASE, Control, NewServer, Refused, Switch, ToolOf, router};
pub use changes::{Change, ChangeError, Changed, Changes, Wanted};
pub use openapi::document;
pub use report::{LastWake, Report, ServerReport};
#[cfg(unix)]
pub use socket::{Instance, Place, Silent, serve};
