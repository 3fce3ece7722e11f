//! Control of a running dormouse by other processes: over a socket that only its user can open, and
//! over HTTP with a token.
//!
//! This layer does not know how the config is stored: the task that follows the config makes the
//! requested changes.

mod api;
mod api_types;
mod changes;
mod openapi;
#[cfg(unix)]
mod socket;
mod status_report;

pub use api::{Control, router};
pub use api_types::{ApiError, BASE_PATH, NewServer, ServerTool, Switch};
pub use changes::{AppliedChange, ChangeError, ChangeRequest, ChangeSender, ConfigChange};
pub use openapi::document;
#[cfg(unix)]
pub use socket::{ControlRequestError, RunningDormouse, SocketDirectory, serve};
pub use status_report::{LastWake, ServerReport, StatusReport};
