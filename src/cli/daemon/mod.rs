//! The daemon: the client that uses it, the process itself, and the commands that concern it.

mod choice;
mod client;
mod commands;
mod invocation;
mod place;
mod process;
mod state;
mod world;

pub(super) use client::{Attempt, serve_by_daemon};
pub(super) use commands::run as command;
