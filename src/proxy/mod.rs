//! Between hosts and servers: the fleet of upstreams with the one live snapshot, the routing of
//! requests, and the relay of notifications and questions.
//!
//! It must not know how a host is connected: a host is a [`Host`], made by `downstream`.

mod asking;
mod audience;
mod board;
mod calls;
mod endpoint;
mod events;
mod extensions;
mod fleet;
mod host;
mod instance;
mod introduction;
mod lists;
mod logins;
mod memory;
mod notifications;
mod observer;
mod operate;
mod overview;
mod questions;
mod reload;
mod resources;
mod router;
mod servers;
mod streams;
mod tasks;

pub use audience::Subscriber;
pub use endpoint::Endpoint;
pub use events::{CallEnding, EndedCall, Event};
pub use fleet::{Fleet, Storage};
use host::Viewer;
pub use host::{Caller, Host, HostId, Principal, User};
pub use operate::OperateError;
pub use overview::Overview;
pub use reload::Reloaded;
