//! The thin client: carries the messages of one host to its daemon and back, and to another daemon
//! when that one ends.
//!
//! The client uses threads that block, because a runtime would be most of its memory.

mod blocking_lines;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;
mod host_input;
mod links;
mod relay;
mod session_memory;

pub(crate) use relay::{Redialed, Resumption, relay};
