//! Hosts: their connections, and the session of each host.
//!
//! This layer must not know how servers are reached or listed: a session passes what it cannot
//! answer itself to the [`crate::proxy::Fleet`].

mod daemon_pool;
mod host_state;
pub(crate) mod http;
mod identity;
pub(crate) mod in_process_host;
mod line_host;
pub(crate) mod only_host;
mod reply_channel;
mod request_tasks;
mod session;
mod side_channel;

pub(crate) use daemon_pool::{DaemonPool, RunningServer};
pub(crate) use identity::HostIdentity;
pub(crate) use session::Session;
pub(crate) use side_channel::SideChannel;
