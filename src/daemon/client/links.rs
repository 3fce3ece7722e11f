//! The connections of one host to its daemons: the present one, and those that are ending.

use std::{
    io::{self, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::session_memory::{DaemonNumber, SessionMemory};
use crate::{
    base::Lock,
    daemon::{ClientNotice, Redial},
    wire::{Message, Notification, Raw},
};

/// The connections to daemons. A line is written as a whole, to one of them.
#[derive(Default)]
pub(super) struct Links {
    state: Mutex<LinkState>,
    changed: Condvar,
}

#[derive(Default)]
struct LinkState {
    present: Present,
    /// Daemons that still answer what was sent to them.
    leaving: Vec<Link>,
    /// True after the host has closed its end.
    has_input_ended: bool,
}

/// The connection on which new messages of the host go.
#[derive(Default)]
enum Present {
    Open(Link),
    /// There is none; the next message of the host waits for it.
    #[default]
    Wanted,
    /// There is none until the host sends a message.
    NotNeeded,
    /// No daemon serves the host now, for this reason, which fails the message that waits.
    Refused(String),
}

/// A connection to a daemon, for writing.
pub(super) struct Link {
    pub(super) daemon: DaemonNumber,
    stream: UnixStream,
    /// The method of notices to the daemon.
    notices: String,
}

impl Link {
    pub(super) fn new(daemon: DaemonNumber, stream: UnixStream, notices: String) -> Self {
        Self { daemon, stream, notices }
    }

    fn write(&self, line: &[u8]) -> io::Result<()> {
        (&self.stream).write_all(line)
    }

    fn notify(&self, notice: ClientNotice) -> io::Result<()> {
        let params = Some(Raw::encode(&notice));
        let method = self.notices.clone();
        self.write(&Message::Notification(Notification { method, params }).to_line())
    }
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message of the host, as one line, to the daemon that it is for; waits for a daemon
    /// if there is none.
    ///
    /// # Errors
    /// The reason that no daemon serves the host now.
    pub(super) fn send(&self, message: &Bytes, memory: &Lock<SessionMemory>) -> Result<(), String> {
        let text = [message, &b"\n"[..]].concat();
        let mut state = self.lock();
        let addressee =
            (!state.leaving.is_empty()).then(|| memory.lock().addressee(message)).flatten();
        if let Some(link) = state.leaving.iter().find(|link| Some(link.daemon) == addressee) {
            let _ = memory.lock().note_sent(message, link.daemon);
            // A daemon that has just ended needs it no more.
            let _ = link.write(&text);
            return Ok(());
        }
        let mut has_waited = false;
        loop {
            match &state.present {
                Present::Open(link) => {
                    let sent = memory.lock().note_sent(message, link.daemon);
                    if link.write(&text).is_ok() {
                        return Ok(());
                    }
                    // The daemon cannot have read the whole line, so the next one gets it.
                    memory.lock().retract(sent);
                    let _ = link.stream.shutdown(Shutdown::Both);
                    state.present = Present::Wanted;
                }
                Present::Refused(reason) if has_waited => {
                    let reason = reason.clone();
                    state.present = Present::NotNeeded;
                    return Err(reason);
                }
                Present::NotNeeded | Present::Refused(_) => {
                    state.present = Present::Wanted;
                    self.changed.notify_all();
                }
                Present::Wanted => {
                    has_waited = true;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Makes a connection the present one, after the messages that open the session on it.
    /// `opening` makes them, and is given the daemons that may still answer.
    pub(super) fn open(&self, link: Link, opening: impl FnOnce(&[DaemonNumber]) -> Vec<Message>) {
        let mut state = self.lock();
        for message in opening(&state.living()) {
            if link.write(&message.to_line()).is_err() {
                break;
            }
        }
        if state.has_input_ended {
            let _ = link.stream.shutdown(Shutdown::Write);
        }
        state.present = Present::Open(link);
        self.changed.notify_all();
    }

    /// Sends messages again that another daemon has lost. `messages` makes them, and is given the
    /// present daemon and those that may still answer.
    pub(super) fn send_again(
        &self,
        messages: impl FnOnce(DaemonNumber, &[DaemonNumber]) -> Vec<Message>,
    ) {
        let state = self.lock();
        let living = state.living();
        if let Present::Open(link) = &state.present {
            for message in messages(link.daemon, &living) {
                // If the connection breaks, the next daemon gets them.
                let _ = link.write(&message.to_line());
            }
        }
    }

    /// Notes that a connection has ended. Its other end is closed, so that no write to it blocks.
    pub(super) fn lose(&self, daemon: DaemonNumber) {
        let mut state = self.lock();
        state.leaving.retain(|link| link.daemon != daemon);
        if matches!(&state.present, Present::Open(link) if link.daemon == daemon) {
            state.present = Present::Wanted;
        }
    }

    /// Sends nothing new to the present daemon any more, and tells it so.
    pub(super) fn leave(&self, redial: Redial) {
        let mut state = self.lock();
        // A write may have found the connection broken before.
        if !matches!(state.present, Present::Open(_)) {
            return;
        }
        let next = match redial {
            Redial::AtOnce | Redial::Replaced => Present::Wanted,
            Redial::WhenNeeded => Present::NotNeeded,
        };
        if let Present::Open(link) = std::mem::replace(&mut state.present, next) {
            // Until its connection ends, the daemon may have answered.
            let _ = link.notify(ClientNotice::Leaving);
            state.leaving.push(link);
        }
    }

    /// Fails the message of the host that waits for a daemon. The next message starts another
    /// attempt to connect.
    pub(super) fn refuse(&self, reason: &str) {
        self.lock().present = Present::Refused(reason.to_owned());
        self.changed.notify_all();
    }

    /// Waits until a daemon is wanted. Returns `false` if none will be.
    pub(super) fn wait_until_wanted(&self) -> bool {
        let mut state = self.lock();
        loop {
            match &state.present {
                _ if state.has_input_ended => return false,
                Present::Wanted => return true,
                Present::NotNeeded | Present::Refused(_) | Present::Open(_) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Notes that the host has closed its end: every daemon answers what it was sent, and ends the
    /// session.
    pub(super) fn end_input(&self) {
        let mut state = self.lock();
        state.has_input_ended = true;
        for link in state.all() {
            let _ = link.stream.shutdown(Shutdown::Write);
        }
        self.changed.notify_all();
    }

    /// Sends a notice to every daemon. Returns the number of daemons that get it. Blocks as long as
    /// a daemon does not read.
    pub(super) fn notify(&self, notice: ClientNotice) -> usize {
        self.lock().all().filter(|link| link.notify(notice).is_ok()).count()
    }
}

impl LinkState {
    /// Returns the connections to all daemons that may still answer.
    fn all(&self) -> impl Iterator<Item = &Link> {
        let present = match &self.present {
            Present::Open(link) => Some(link),
            Present::Wanted | Present::NotNeeded | Present::Refused(_) => None,
        };
        present.into_iter().chain(&self.leaving)
    }

    fn living(&self) -> Vec<DaemonNumber> {
        self.all().map(|link| link.daemon).collect()
    }
}
