//! A full run that needs nothing but this program: servers that are built in, and a client that shows
//! what an agent would see.

mod client;
mod server;
mod themes;
mod tour;

pub use server::serve;
pub use tour::{Step, tour};

/// The hidden argument that makes the program one of the demo's servers.
pub const SERVER_ARGUMENT: &str = "__demo-server";
