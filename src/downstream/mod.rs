//! Hosts: how they are connected, and the session that each of them has.
//!
//! It must not know how servers are reached or listed: what a session cannot answer by itself it
//! gives to the [`crate::proxy::Fleet`].

mod host_state;
pub mod http;
mod identity;
pub mod in_process_host;
mod reply_channel;
mod session;
pub mod stdio_host;

pub use identity::HostIdentity;
pub use session::Session;
