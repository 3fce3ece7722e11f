//! Between hosts and servers: the fleet of upstreams with the one live snapshot, the routing of
//! requests, and the relay of notifications and questions.
//!
//! It must not know how a host is connected: a host is a [`Host`], made by `downstream`.

mod calls;
mod fleet;
mod forward;
mod host;
mod lists;
mod questions;
mod resources;
mod router;

pub use fleet::{Fleet, Subscriber};
pub use host::{Caller, Host, HostId};
