//! The work of a thin client, and its way from one daemon to the next.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

#[cfg(target_os = "linux")]
use super::file_pages::FilePages;
use super::{
    client_session::ClientSession,
    client_signals,
    daemon_reader::{DaemonReader, ReadEnd},
    session_memory::DaemonNumber,
};
use crate::daemon::{Connection, Redial};

/// Delay before the next daemon after one that has carried no message; each further one is twice
/// as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Maximum number of times that the delay is doubled.
const MAX_DOUBLINGS: u32 = 7;

/// An attempt to connect to the next daemon.
#[derive(Default)]
pub(crate) struct RedialAttempt {
    pub resumption: Resumption,
    /// The number of daemons, one after the other, that have carried no message.
    pub failures: u32,
    /// True if another process is starting the next daemon.
    pub is_replaced: bool,
}

/// The facts about a session that the next daemon needs in its greeting.
#[derive(Clone, Default)]
pub(crate) struct Resumption {
    pub earlier_daemons: u32,
    /// The names of the offers that the host has loaded.
    pub loads: Vec<String>,
}

/// The outcome of the attempt to connect to the next daemon.
pub(crate) enum Redialed {
    Connected(Connection),
    /// The host cannot be served now, for this reason.
    Refused(String),
}

/// The reason for which another daemon is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RedialCause {
    /// The last one ended without notice.
    Lost,
    /// The last one has announced its end.
    Left,
    /// A newer build is starting the next one.
    Replaced,
    /// The last attempt was refused.
    Refused,
}

/// Serves the host on standard streams by way of a daemon until the host ends. `redial` connects to
/// the next daemon. `open_browser` opens an address in the browser of the user.
///
/// # Errors
/// The error of `redial`.
pub(crate) fn relay<E>(
    first: Connection,
    open_browser: fn(&str),
    redial: impl FnMut(RedialAttempt) -> Result<Redialed, E>,
) -> Result<(), E> {
    let session = ClientSession::start(open_browser);
    client_signals::handle(session.clone());
    let (of_host, max_line) = (session.clone(), first.max_line);
    thread::spawn(move || of_host.carry_host(max_line));
    let relay = Relay {
        session: session.clone(),
        redial,
        daemons: 0,
        failures: 0,
        leaving: Vec::new(),
        #[cfg(target_os = "linux")]
        pages: FilePages::start(),
    };
    let outcome = relay.run(first);
    session.log.wait();
    outcome
}

struct Relay<R> {
    session: Arc<ClientSession>,
    redial: R,
    /// The number of daemons so far.
    daemons: DaemonNumber,
    /// The number of the last daemons that have carried no message.
    failures: u32,
    /// The threads that carry the last answers of daemons that are ending.
    leaving: Vec<JoinHandle<()>>,
    /// Gives back pages after the start with each daemon.
    #[cfg(target_os = "linux")]
    pages: FilePages,
}

impl<E, R: FnMut(RedialAttempt) -> Result<Redialed, E>> Relay<R> {
    fn run(mut self, first: Connection) -> Result<(), E> {
        let mut connection = first;
        loop {
            let Some(cause) = self.serve(connection) else { return Ok(()) };
            let Some(next) = self.connect(cause)? else { break };
            connection = next;
        }
        for thread in self.leaving {
            // A panic has ended the thread; its daemon's answers are lost.
            let _ = thread.join();
        }
        self.session.end();
        Ok(())
    }

    /// Has a daemon serve the host until it is needed no more. Returns `None` if the host does not
    /// read any more.
    fn serve(&mut self, connection: Connection) -> Option<RedialCause> {
        let daemon = self.daemons;
        self.daemons += 1;
        let mut reader = DaemonReader::open(daemon, connection, self.session.clone());
        #[cfg(target_os = "linux")]
        self.pages.give_back_soon();
        let end = reader.read();
        self.failures = if reader.has_carried { 0 } else { self.failures + 1 };
        match end {
            ReadEnd::HostGone => None,
            ReadEnd::Closed => {
                self.session.lose(daemon);
                Some(RedialCause::Lost)
            }
            ReadEnd::Ending(redial) => {
                // A message that is being written may wait until the daemon's answers are read.
                self.leaving.push(thread::spawn(move || reader.finish()));
                self.session.links.leave(redial);
                let is_replaced = redial == Redial::Replaced;
                Some(if is_replaced { RedialCause::Replaced } else { RedialCause::Left })
            }
        }
    }

    /// Connects to the next daemon as soon as one is wanted. Returns `None` if none will be.
    fn connect(&mut self, mut cause: RedialCause) -> Result<Option<Connection>, E> {
        while self.session.links.wait_until_wanted() {
            if cause == RedialCause::Lost {
                let text = "dormouse: the daemon has ended unexpectedly; connecting to another\n";
                self.session.log.write(text);
            }
            if self.failures > 0 {
                thread::sleep(FIRST_RETRY_DELAY * 2_u32.pow(self.failures.min(MAX_DOUBLINGS)));
            }
            let loads = self.session.loads();
            let attempt = RedialAttempt {
                resumption: Resumption { earlier_daemons: self.daemons, loads },
                failures: self.failures,
                is_replaced: cause == RedialCause::Replaced,
            };
            match (self.redial)(attempt)? {
                Redialed::Connected(next) => return Ok(Some(next)),
                Redialed::Refused(reason) => self.session.refuse_host(&reason),
            }
            cause = RedialCause::Refused;
        }
        Ok(None)
    }
}
