//! One process for all hosts of a user with one config, and the thin clients that carry the messages
//! between it and their hosts (docs/design/daemon.md).
//!
//! This layer knows how clients find, start, greet and leave a daemon. The hosts' messages, and how
//! they are served, are unknown to it.

mod build;
mod client;
mod dial;
mod greeting;
mod held_lock;
mod listener;
mod notice;
mod os_text;
mod place;
mod start;

pub(crate) use build::Build;
pub(crate) use client::{Resumption, relay};
pub(crate) use dial::{Connection, Dialed, dial, send};
pub(crate) use greeting::{
    DaemonCommand, DaemonStatus, Greeting, Hello, Welcome, read as read_greeting,
    write as write_greeting,
};
pub(crate) use listener::Listener;
pub(crate) use notice::{ClientNotice, DaemonNotice, Redial};
pub(crate) use place::{DaemonDirectories, DaemonPlace};
pub(crate) use start::{LAUNCHER_ARGUMENT, READY, launch, start};
