//! The two directions of a thin client, and its way from one daemon to the next.

use std::{
    io::{self, Write as _},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
    time::Duration,
};

use nix::sys::signal::{SigSet, Signal};

use super::{
    blocking_lines::BlockingLines,
    host_input::{self, HostInput},
    links::{Link, Links},
    session_memory::{DaemonNumber, Received, SessionMemory},
};
use crate::{
    base::Lock,
    daemon::{ClientNotice, Connection, DaemonNotice, Redial},
    protocol::error,
    wire::{Line, LineSummary, Message, Response},
};

/// Maximum time for the daemon to end the session after this process was asked to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for which a signal waits for a write to a daemon that does not read.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// The facts about a session that the next daemon needs in its greeting.
#[derive(Clone, Default)]
pub(crate) struct Resumption {
    pub earlier_daemons: u32,
    pub loads: Vec<String>,
}

/// The state that the threads of the client share.
struct Shared {
    memory: Lock<SessionMemory>,
    links: Links,
    /// The names of the offers that the host has loaded.
    loads: Lock<Vec<String>>,
    /// Held while a whole line is written to standard output.
    output: Lock<()>,
    /// Opens an address in the browser of the user.
    open_browser: fn(&str),
}

/// Serves the host on standard streams by way of a daemon until the host ends. `dial` connects to
/// the next daemon. `open_browser` opens an address in the browser of the user.
///
/// # Errors
/// The error of `dial`.
pub(crate) fn relay<E>(
    first: Connection,
    open_browser: fn(&str),
    mut dial: impl FnMut(Resumption) -> Result<Connection, E>,
) -> Result<(), E> {
    let shared = Arc::new(Shared {
        memory: Lock::default(),
        links: Links::default(),
        loads: Lock::default(),
        output: Lock::default(),
        open_browser,
    });
    handle_signals(shared.clone());
    let (of_host, max_line) = (shared.clone(), first.max_line);
    thread::spawn(move || of_host.carry_host(max_line));
    let mut connection = first;
    let mut leaving = Vec::new();
    for daemon in 0.. {
        let mut served = ServedBy::open(daemon, connection, shared.clone());
        match served.follow() {
            Followed::HostGone => return Ok(()),
            Followed::Closed => served.lose(),
            Followed::Ending(redial) => {
                shared.links.leave(redial);
                leaving.push(thread::spawn(move || served.finish()));
            }
        }
        if !shared.links.wait_until_wanted() {
            break;
        }
        let loads = shared.loads.lock().clone();
        connection = dial(Resumption { earlier_daemons: daemon + 1, loads })?;
    }
    for thread in leaving {
        // A panic has ended the thread; its daemon's answers are lost.
        let _ = thread.join();
    }
    Ok(())
}

impl Shared {
    /// Carries the messages of the host until it closes its end.
    fn carry_host(&self, max_line: usize) {
        let mut lines = BlockingLines::new(HostInput, max_line);
        loop {
            match lines.next() {
                Ok(Some(Line::Text(line))) => self.links.send(&line, &self.memory),
                Ok(Some(Line::Oversized(summary))) => self.refuse(summary, max_line),
                // A stream that cannot be read has ended.
                Ok(None) | Err(_) => break,
            }
        }
        if host_input::is_output_closed() {
            // The answers of requests in flight have no reader.
            self.links.notify(ClientNotice::Stop, NOTICE_TIMEOUT);
        }
        self.links.end_input();
    }

    /// Answers a message that is too large to be carried.
    fn refuse(&self, summary: LineSummary, limit: usize) {
        if let Some(id) = summary.id.filter(|_| summary.is_call) {
            let outcome = Err(error::oversized(summary.size, limit));
            // A failure to write is noticed by the other direction.
            let _ = self.tell_host(&Message::Response(Response { id: Some(id), outcome }));
        }
    }

    fn tell_host(&self, message: &Message) -> io::Result<()> {
        self.write(&message.to_bytes())
    }

    /// Writes a line to the host.
    fn write(&self, line: &[u8]) -> io::Result<()> {
        let _whole = self.output.lock();
        let mut output = io::stdout().lock();
        output.write_all(line)?;
        output.write_all(b"\n")?;
        output.flush()
    }
}

/// The direction from one daemon to the host.
struct ServedBy {
    daemon: DaemonNumber,
    lines: BlockingLines<UnixStream>,
    notices: String,
    shared: Arc<Shared>,
}

/// The reason that a connection is not followed further.
enum Followed {
    /// The daemon has closed it, or was killed.
    Closed,
    /// The host does not read any more.
    HostGone,
    /// The daemon is ending.
    Ending(Redial),
}

impl ServedBy {
    /// Opens the session of the host at a daemon.
    fn open(daemon: DaemonNumber, connection: Connection, shared: Arc<Shared>) -> Self {
        let Connection { reading, writing, notices, .. } = connection;
        let link = Link::new(daemon, writing, notices.clone());
        shared.links.open(link, |living| {
            let mut memory = shared.memory.lock();
            let mut opening = memory.reopen();
            opening.extend(memory.take_over(daemon, living));
            opening
        });
        let lines = BlockingLines::new(reading, usize::MAX);
        Self { daemon, lines, notices, shared }
    }

    /// Carries the messages of the daemon.
    fn follow(&mut self) -> Followed {
        // A connection that cannot be read has ended.
        while let Ok(Some(Line::Text(line))) = self.lines.next() {
            let received =
                self.shared.memory.lock().note_received(&line, self.daemon, &self.notices);
            match received {
                Received::ForHost => {
                    if self.shared.write(&line).is_err() {
                        return Followed::HostGone;
                    }
                }
                Received::Repeated => {}
                Received::Notice(notice) => match notice.read() {
                    Ok(DaemonNotice::Log(lines)) => {
                        // A host that does not read the log still gets its answers.
                        let _ = io::stderr().write_all(lines.as_bytes());
                    }
                    Ok(DaemonNotice::Loads(names)) => *self.shared.loads.lock() = names,
                    Ok(DaemonNotice::OpenBrowser(address)) => {
                        let open = self.shared.open_browser;
                        // Opening waits for the program that starts the browser.
                        thread::spawn(move || open(&address));
                    }
                    Ok(DaemonNotice::Ending(redial)) => return Followed::Ending(redial),
                    // A newer daemon may say more than this client knows.
                    Err(_) => {}
                },
            }
        }
        Followed::Closed
    }

    /// Tells the host what was lost with the daemon.
    fn lose(&self) {
        self.shared.links.lose(self.daemon);
        let told = self.shared.memory.lock().lose_daemon(self.daemon);
        for message in told {
            // The next answer finds out that the host does not read.
            let _ = self.shared.tell_host(&message);
        }
    }

    /// Carries the last answers of a daemon that is ending.
    fn finish(mut self) {
        while let Followed::Ending(_) = self.follow() {}
        self.lose();
        let memory = &self.shared.memory;
        self.shared.links.send_again(|present, living| memory.lock().take_over(present, living));
    }
}

/// Passes signals to the daemon: one that asks for the end, or for a reload of the config.
fn handle_signals(shared: Arc<Shared>) {
    let signals = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    let set: SigSet = signals.into_iter().collect();
    // If they cannot be blocked, they end this process, and the daemon ends the session.
    if set.thread_block().is_err() {
        return;
    }
    thread::spawn(move || {
        while let Ok(signal) = set.wait() {
            if signal == Signal::SIGHUP {
                shared.links.notify(ClientNotice::Reload, NOTICE_TIMEOUT);
                continue;
            }
            if shared.links.notify(ClientNotice::Stop, NOTICE_TIMEOUT) {
                shared.links.end_input();
                thread::sleep(STOP_TIMEOUT);
            }
            std::process::exit(0);
        }
    });
}
