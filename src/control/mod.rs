//! What a running dormouse can be asked and told: over a socket that only its user can open, and over HTTP with a
//! token.
//!
//! It does not know how the config is kept: whoever follows that makes the changes that are wanted.

mod api;
mod changes;
mod openapi;
#[cfg(unix)]
mod socket;
mod status_report;

pub use api::{ApiError, BASE_PATH, Control, NewServer, ServerTool, Switch, router};
pub use changes::{AppliedChange, ChangeError, ChangeRequest, ChangeSender, ConfigChange};
pub use openapi::document;
#[cfg(unix)]
pub use socket::{ControlRequestError, RunningDormouse, SocketDirectory, serve};
pub use status_report::{LastWake, ServerReport, StatusReport};
