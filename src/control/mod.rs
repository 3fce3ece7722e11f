//! Control of a running dormouse by other processes: over a socket that only its user can open, and
//! over HTTP with a token.
//!
//! This layer does not know how the config is stored: the task that follows the config makes the
//! requested changes.

mod api;
mod api_state;
mod api_types;
mod changes;
mod event_feed;
mod openapi;
mod route;
#[cfg(unix)]
mod socket;
mod status_report;

pub(crate) use api::router;
pub(crate) use api_state::ApiState;
pub(crate) use api_types::{ApiError, BASE_PATH, NewServer, ServerTool, Switch};
pub(crate) use changes::{AppliedChange, ChangeError, ChangeRequest, ChangeSender, ConfigChange};
#[cfg(unix)]
pub(crate) use socket::{SocketDirectory, serve};
pub(crate) use status_report::{LastWake, ServerReport, StatusReport};
