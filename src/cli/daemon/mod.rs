//! The daemon: the client that uses it, the process itself, and the commands that concern it.

mod accepting;
mod choice;
mod daemon_commands;
mod daemon_state;
mod greeter;
mod invocation;
mod own_place;
mod remote_pool;
mod served_host;
mod thin_client;

pub(super) use daemon_commands::{run as command, shared_processes};
pub(super) use remote_pool::remote_pool;
pub(super) use thin_client::{Attempt, serve_by_daemon};
