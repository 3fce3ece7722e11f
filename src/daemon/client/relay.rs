//! The two directions of a thin client, and its way from one daemon to the next.

use std::{
    io::{self, Write as _},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use super::{
    blocking_lines::BlockingLines,
    host_input::{self, HostInput},
    links::{Link, Links},
    session_memory::{self, DaemonNumber, LOST, Received, SessionMemory},
};
use crate::{
    base::Lock,
    daemon::{ClientNotice, Connection, DaemonNotice, Redial},
    protocol::error,
    wire::{Line, LineSummary, Message, Response},
};

/// Maximum time for the daemon to end the session after this process was asked to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for daemons to read that this process was asked to end.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for a host that does not read to take its last answers.
const UNREAD_TIMEOUT: Duration = Duration::from_millis(500);
const END_CHECK_PERIOD: Duration = Duration::from_millis(100);
/// Maximum number of texts for the log that wait to be written. Further ones are dropped: a host
/// that does not read standard error must not block the protocol.
const MAX_WAITING_LOG: usize = 1024;
/// Maximum time to write the last lines of the log.
const LOG_TIMEOUT: Duration = Duration::from_millis(500);
/// Delay before the next daemon after one that has carried no message; each further one is twice
/// as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The facts about a session that the next daemon needs in its greeting.
#[derive(Clone, Default)]
pub(crate) struct Resumption {
    pub earlier_daemons: u32,
    pub loads: Vec<String>,
    /// The number of daemons, one after the other, that have carried no message.
    pub failures: u32,
    /// True if another process is starting the next daemon.
    pub is_replaced: bool,
}

/// The outcome of the attempt to connect to the next daemon.
pub(crate) enum Redialed {
    Connected(Connection),
    /// The host cannot be served now, for this reason.
    Refused(String),
}

/// The state that the threads of the client share.
struct Shared {
    memory: Lock<SessionMemory>,
    links: Links,
    loads: Lock<Loads>,
    log: SyncSender<LogItem>,
    /// Opens an address in the browser of the user.
    open_browser: fn(&str),
    /// True after a signal has asked for the end: then the host expects no further answers.
    is_stopping: AtomicBool,
    /// The number of lines that the host has read.
    lines_written: AtomicU64,
}

/// An item for the thread that writes standard error.
enum LogItem {
    Lines(String),
    /// Told once all earlier items have been written.
    End(SyncSender<()>),
}

/// The names of the offers that the host has loaded, as the last daemon knows them.
#[derive(Default)]
struct Loads {
    daemon: DaemonNumber,
    names: Vec<String>,
}

/// Serves the host on standard streams by way of a daemon until the host ends. `redial` connects to
/// the next daemon. `open_browser` opens an address in the browser of the user.
///
/// # Errors
/// The error of `redial`.
pub(crate) fn relay<E>(
    first: Connection,
    open_browser: fn(&str),
    redial: impl FnMut(Resumption) -> Result<Redialed, E>,
) -> Result<(), E> {
    let shared = Shared::start(open_browser);
    let outcome = carry(first, &shared, redial);
    shared.wait_for_log();
    outcome
}

fn carry<E>(
    first: Connection,
    shared: &Arc<Shared>,
    mut redial: impl FnMut(Resumption) -> Result<Redialed, E>,
) -> Result<(), E> {
    let (of_host, max_line) = (shared.clone(), first.max_line);
    thread::spawn(move || of_host.carry_host(max_line));
    let mut connection = Some(first);
    let mut leaving = Vec::new();
    let (mut daemon, mut failures, mut is_replaced) = (0, 0, false);
    loop {
        let mut was_lost = false;
        if let Some(connection) = connection.take() {
            let mut served = ServedBy::open(daemon, connection, shared.clone());
            let followed = served.follow();
            failures = if served.has_carried { 0 } else { failures + 1 };
            daemon += 1;
            is_replaced = matches!(followed, Followed::Ending(Redial::Replaced));
            match followed {
                Followed::HostGone => return Ok(()),
                Followed::Closed => {
                    was_lost = true;
                    served.lose();
                }
                Followed::Ending(redial) => {
                    shared.links.leave(redial);
                    leaving.push(thread::spawn(move || served.finish()));
                }
            }
        }
        if !shared.links.wait_until_wanted() {
            break;
        }
        if was_lost {
            shared.log("dormouse: the daemon has ended unexpectedly; connecting to another\n");
        }
        if failures > 0 {
            thread::sleep(FIRST_RETRY_DELAY * 2_u32.saturating_pow(failures.min(7)));
        }
        let loads = shared.loads.lock().names.clone();
        match redial(Resumption { earlier_daemons: daemon, loads, failures, is_replaced })? {
            Redialed::Connected(next) => connection = Some(next),
            Redialed::Refused(reason) => shared.refuse_host(&reason),
        }
    }
    for thread in leaving {
        // A panic has ended the thread; its daemon's answers are lost.
        let _ = thread.join();
    }
    shared.tell_all(shared.memory.lock().fail_all(LOST));
    Ok(())
}

impl Shared {
    /// Starts the threads that handle signals and write the log.
    fn start(open_browser: fn(&str)) -> Arc<Self> {
        let (log, items) = mpsc::sync_channel(MAX_WAITING_LOG);
        let shared = Arc::new(Self {
            memory: Lock::default(),
            links: Links::default(),
            loads: Lock::default(),
            log,
            open_browser,
            is_stopping: AtomicBool::new(false),
            lines_written: AtomicU64::new(0),
        });
        handle_signals(shared.clone());
        thread::spawn(move || {
            for item in items {
                // A host that has closed standard error still gets its answers, and a client that
                // has waited long enough is not told.
                let _ = match item {
                    LogItem::Lines(text) => io::stderr().write_all(text.as_bytes()).ok(),
                    LogItem::End(written) => written.try_send(()).ok(),
                };
            }
        });
        shared
    }

    /// Writes to standard error. The text is dropped if the host does not read it.
    fn log(&self, text: impl Into<String>) {
        let _ = self.log.try_send(LogItem::Lines(text.into()));
    }

    /// Waits until the log has been written, for a short time if the host does not read it.
    fn wait_for_log(&self) {
        let (end, written) = mpsc::sync_channel(1);
        if self.log.try_send(LogItem::End(end)).is_ok() {
            // After the timeout the rest is lost.
            let _ = written.recv_timeout(LOG_TIMEOUT);
        }
    }

    /// Carries the messages of the host until it closes its end.
    fn carry_host(&self, max_line: usize) {
        let mut lines = BlockingLines::new(HostInput, max_line);
        loop {
            match lines.next() {
                Ok(Some(Line::Text(line))) => {
                    if let Err(reason) = self.links.send(&line, &self.memory) {
                        self.tell_all(session_memory::refusals(&line, &reason));
                    }
                }
                Ok(Some(Line::Oversized(summary))) => self.refuse_line(summary, max_line),
                // A stream that cannot be read has ended.
                Ok(None) | Err(_) => break,
            }
        }
        if host_input::is_output_closed() {
            // The answers of requests in flight have no reader.
            self.links.notify(ClientNotice::Stop);
        }
        self.links.end_input();
    }

    /// Answers a message that is too large to be carried.
    fn refuse_line(&self, summary: LineSummary, limit: usize) {
        let LineSummary { id, is_call, size } = summary;
        if let Some(id) = id.filter(|_| is_call) {
            let outcome = Err(error::oversized(size, limit));
            self.tell_all([Message::Response(Response { id: Some(id), outcome })]);
        } else {
            self.links.notify(ClientNotice::Skipped { size });
        }
    }

    /// Fails all requests, since no daemon serves the host now.
    fn refuse_host(&self, reason: &str) {
        let failed = self.memory.lock().fail_all(reason);
        self.tell_all(failed);
        self.links.refuse(reason);
    }

    fn note_loads(&self, daemon: DaemonNumber, names: Vec<String>) {
        let mut loads = self.loads.lock();
        // A daemon that is ending knows less than the next one.
        if daemon >= loads.daemon {
            *loads = Loads { daemon, names };
        }
    }

    fn tell_all(&self, messages: impl IntoIterator<Item = Message>) {
        if self.is_stopping.load(Ordering::Relaxed) {
            return;
        }
        for message in messages {
            // The next answer finds out that the host does not read.
            let _ = self.write_line(&message.to_bytes());
        }
    }

    /// Writes a line to the host as a whole.
    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(line)?;
        output.write_all(b"\n")?;
        output.flush()?;
        self.lines_written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until the daemons have ended the session, and ends this process. The process ends
    /// earlier if the session has ended, or if the host does not read its last answers.
    fn end_process(&self) -> ! {
        let mut waited = Duration::ZERO;
        let mut written = self.lines_written.load(Ordering::Relaxed);
        let mut unread = Duration::ZERO;
        while waited < STOP_TIMEOUT && unread < UNREAD_TIMEOUT {
            thread::sleep(END_CHECK_PERIOD);
            waited += END_CHECK_PERIOD;
            let now = self.lines_written.load(Ordering::Relaxed);
            unread = if now == written && host_input::is_output_full() {
                unread + END_CHECK_PERIOD
            } else {
                Duration::ZERO
            };
            written = now;
        }
        std::process::exit(0)
    }
}

/// The direction from one daemon to the host.
struct ServedBy {
    daemon: DaemonNumber,
    lines: BlockingLines<UnixStream>,
    notices: String,
    /// True after the daemon has sent a message for the host.
    has_carried: bool,
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
        shared.links.open(link, |living| shared.memory.lock().open(daemon, living));
        let lines = BlockingLines::new(reading, usize::MAX);
        Self { daemon, lines, notices, has_carried: false, shared }
    }

    /// Carries the messages of the daemon.
    fn follow(&mut self) -> Followed {
        // A connection that cannot be read has ended.
        while let Ok(Some(Line::Text(line))) = self.lines.next() {
            let received =
                self.shared.memory.lock().note_received(&line, self.daemon, &self.notices);
            match received {
                Received::ForHost => {
                    self.has_carried = true;
                    if self.shared.write_line(&line).is_err() {
                        return Followed::HostGone;
                    }
                }
                Received::NotForHost => {}
                Received::Notice(notice) => match notice.read() {
                    Ok(DaemonNotice::Ending(redial)) => {
                        self.has_carried = true;
                        return Followed::Ending(redial);
                    }
                    Ok(DaemonNotice::Log(lines)) => self.shared.log(lines),
                    Ok(DaemonNotice::Loads(names)) => self.shared.note_loads(self.daemon, names),
                    Ok(DaemonNotice::OpenBrowser(address)) => {
                        let open = self.shared.open_browser;
                        // Opening waits for the program that starts the browser.
                        thread::spawn(move || open(&address));
                    }
                    // A newer daemon may have notices that this client does not know.
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
        self.shared.tell_all(told);
    }

    /// Carries the last answers of a daemon that is ending.
    fn finish(mut self) {
        while let Followed::Ending(_) = self.follow() {}
        self.lose();
        let memory = &self.shared.memory;
        self.shared.links.send_again(|present, living| memory.lock().take_over(present, living));
    }
}

/// Passes signals to the daemon: one that asks for the end, or for a reload of the config. Signals
/// are handled and not blocked, since processes inherit what is blocked.
fn handle_signals(shared: Arc<Shared>) {
    // If they cannot be handled, they end this process, and the daemon ends the session.
    let Ok(mut signals) = Signals::new([SIGTERM, SIGINT, SIGHUP]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                notify_in_time(&shared, ClientNotice::Reload);
                continue;
            }
            shared.is_stopping.store(true, Ordering::Relaxed);
            if notify_in_time(&shared, ClientNotice::Stop) > 0 {
                shared.links.end_input();
                shared.end_process();
            }
            std::process::exit(0);
        }
    });
}

/// Sends a notice to all daemons. Returns the number of daemons that got it in time.
fn notify_in_time(shared: &Arc<Shared>, notice: ClientNotice) -> usize {
    let (sender, sent) = mpsc::channel();
    let shared = shared.clone();
    thread::spawn(move || sender.send(shared.links.notify(notice)));
    sent.recv_timeout(NOTICE_TIMEOUT).unwrap_or(0)
}
