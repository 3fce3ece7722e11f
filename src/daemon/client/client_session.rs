//! The session of the host of a thin client, whichever daemon serves it.

use std::{sync::Arc, time::Duration};

use super::{
    blocking_lines::BlockingLines,
    host_input::HostInput,
    host_log::HostLog,
    host_output::{self, HostOutput},
    links::Links,
    session_memory::{self, DaemonNumber, SessionMemory},
};
use crate::{
    base::Lock,
    daemon::ClientNotice,
    protocol::error,
    wire::{Line, LineSummary, Message, Response},
};

/// Maximum time for a daemon to end the session after the host has closed its end: longer than the
/// daemon waits for the last answers and for servers to end.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(30);

/// The state that the threads of a client share.
pub(super) struct ClientSession {
    pub memory: Lock<SessionMemory>,
    pub links: Links,
    pub output: HostOutput,
    pub log: HostLog,
    loads: Lock<Loads>,
    /// Opens an address in the browser of the user.
    pub open_browser: fn(&str),
}

/// The names of the offers that the host has loaded, as the last daemon knows them.
#[derive(Default)]
struct Loads {
    daemon: DaemonNumber,
    names: Vec<String>,
}

impl ClientSession {
    /// Starts the thread that writes the log.
    pub(super) fn start(open_browser: fn(&str)) -> Arc<Self> {
        Arc::new(Self {
            memory: Lock::default(),
            links: Links::default(),
            output: HostOutput::default(),
            log: HostLog::start(),
            loads: Lock::default(),
            open_browser,
        })
    }

    /// Carries the messages of the host until it closes its end, and ends this process if the host
    /// does not read its last answers, or a daemon does not end the session. `max_line` is the size
    /// limit of a line, in bytes.
    pub(super) fn carry_host(&self, max_line: usize) {
        let mut lines = BlockingLines::new(HostInput, max_line);
        loop {
            match lines.next() {
                Ok(Some(Line::Text(line))) => {
                    if let Err(reason) = self.links.send(&line, &self.memory) {
                        self.output.tell(session_memory::refusals(&line, &reason));
                    }
                }
                Ok(Some(Line::Oversized(summary))) => self.refuse_line(summary, max_line),
                // A stream that cannot be read has ended.
                Ok(None) | Err(_) => break,
            }
        }
        if host_output::is_closed() {
            // The answers of requests in flight have no reader.
            self.links.notify(ClientNotice::Stop);
        }
        self.links.end_input();
        // The process has ended by then if the session has.
        self.output.wait_while_read(LAST_ANSWERS_TIMEOUT);
        std::process::exit(0);
    }

    /// Answers a message that is too large to be carried.
    fn refuse_line(&self, summary: LineSummary, limit: usize) {
        let LineSummary { id, is_call, size } = summary;
        if let Some(id) = id.filter(|_| is_call) {
            let outcome = Err(error::oversized(size, limit));
            self.output.tell([Message::Response(Response { id: Some(id), outcome })]);
        } else {
            self.links.notify(ClientNotice::Skipped { size });
        }
    }

    /// Fails all requests, since no daemon serves the host now.
    pub(super) fn refuse_host(&self, reason: &str) {
        let failed = self.memory.lock().fail_all(reason);
        self.output.tell(failed);
        self.links.refuse(reason);
    }

    /// Fails the requests that have no answer at the end of the session.
    pub(super) fn end(&self) {
        let failed = self.memory.lock().end();
        self.output.tell(failed);
    }

    /// Tells the host what was lost with a daemon.
    pub(super) fn lose(&self, daemon: DaemonNumber) {
        self.links.lose(daemon);
        let told = self.memory.lock().lose_daemon(daemon);
        self.output.tell(told);
    }

    /// Returns the names of the offers that the host has loaded.
    pub(super) fn loads(&self) -> Vec<String> {
        self.loads.lock().names.clone()
    }

    pub(super) fn note_loads(&self, daemon: DaemonNumber, names: Vec<String>) {
        let mut loads = self.loads.lock();
        // A daemon that is ending knows less than the next one.
        if daemon >= loads.daemon {
            *loads = Loads { daemon, names };
        }
    }
}
