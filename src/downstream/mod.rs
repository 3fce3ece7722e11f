//! Hosts: how they are connected, and the session that each of them has.
//!
//! It must not know how servers are reached or listed: what a session cannot answer by itself it
//! gives to the [`crate::proxy::Fleet`].

pub mod http;
mod identity;
mod reply;
mod session;
mod standing;
pub mod stdio;
pub mod within;

pub use identity::Identity;
pub use session::Session;
