//! The thin client: carries the messages of one host to its daemon and back, and to another daemon
//! when that one ends.
//!
//! The client uses threads that block, because a runtime would be most of its memory.

mod blocking_lines;
mod client_session;
mod client_signals;
mod daemon_reader;
#[cfg(target_os = "linux")]
mod file_pages;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;
mod host_input;
mod host_log;
mod host_output;
mod links;
mod relay;
mod session_memory;

pub(crate) use relay::{RedialAttempt, Redialed, Resumption, relay};
