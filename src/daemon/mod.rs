//! One process for all hosts of a user with one config, and the thin clients that carry messages
//! between it and their hosts (docs/design/daemon.md).
//!
//! This layer knows how clients find, start, greet and leave a daemon, and the messages that open a
//! session again at another one. It does not know how hosts are served.

mod build;
mod client;
mod dial;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod greeting;
mod held_lock;
mod listener;
mod notice;
mod os_text;
mod place;
mod start;

pub(crate) use build::Build;
pub(crate) use client::{RedialAttempt, Redialed, Resumption, relay};
pub(crate) use dial::{
    AnsweredCommand, Connection, DialError, Dialed, dial, ensure_running, join, send,
};
pub(crate) use greeting::{
    ClientGreeting, ClientWorld, CommandAnswer, DaemonCommand, DaemonStatus, Hello, JoinAnswer,
    SharedProcess, Welcome, read as read_greeting, write as write_greeting,
};
pub(crate) use listener::Listener;
pub(crate) use notice::{ClientNotice, DaemonNotice, EndReason, Redial};
pub(crate) use place::{DaemonDirectories, DaemonPlace};
pub(crate) use start::{LAUNCHER_ARGUMENT, READY, StartError, launch, start};
