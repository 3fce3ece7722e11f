//! What a running dormouse tells other commands of itself, over a socket that only its user can open.
//!
//! It must not change anything: it reports.

mod report;
#[cfg(unix)]
mod socket;

pub use report::{LastWake, Report, ServerReport};
#[cfg(unix)]
pub use socket::{Place, Silent, ask, serve};
