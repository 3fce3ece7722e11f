//! The way of a client to its daemon: connects to the one that runs, or starts one.

use std::{
    io,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use nix::unistd::Uid;

use serde::de::DeserializeOwned;

use super::{
    ClientGreeting, ClientWorld, CommandAnswer, DaemonCommand, DaemonPlace, DaemonStatus, Hello,
    JoinAnswer, StartError, Welcome, greeting, held_lock::HeldLock,
};
use crate::base::connect_at_once;

/// Time after which no further attempt to reach or start a daemon begins.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of starts that fail before there is no daemon: one may be killed at its start, or
/// another one may be there first.
const MAX_FAILED_STARTS: u32 = 3;
/// Maximum time for a daemon to answer the greeting. A daemon that takes longer is not replaced,
/// since it holds its lock: the host is served without it.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after the first attempt that another process prevents; each further one is twice as long.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(5);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The outcome of a greeting that a daemon has answered.
pub(crate) enum Dialed {
    Serving(Connection),
    /// The config requires that this process serves its host itself.
    InProcess,
    Refused {
        message: String,
        exit_code: u8,
    },
}

/// A connection on which the messages of the host follow.
pub(crate) struct Connection {
    pub reading: UnixStream,
    pub writing: UnixStream,
    /// The method of notices in both directions.
    pub notices: String,
    /// The size limit of a line of the host, in bytes.
    pub max_line: usize,
}

/// The reason that no daemon serves the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the daemon {0} does not answer; if that does not pass, kill its process")]
    Silent(String),
    #[error("cannot connect to the daemon in {path}: {cause}")]
    Connect { path: String, cause: io::Error },
    #[error("cannot prepare the start of the daemon in {path}: {cause}")]
    Prepare { path: String, cause: io::Error },
    #[error(transparent)]
    Start(StartError),
    #[error("cannot use the connection to the daemon: {0}")]
    NoDescriptor(io::Error),
    #[error(
        "no daemon at {0} accepted a connection within {DIAL_TIMEOUT:?}; see `dormouse daemon logs`"
    )]
    Timeout(String),
}

/// The answer to a command, and the connection, which ends with the daemon if the command ends it.
pub(crate) struct AnsweredCommand {
    pub status: DaemonStatus,
    pub connection: UnixStream,
}

/// The outcome of a greeting.
enum GreetOutcome<T> {
    Answered(T, UnixStream),
    /// There is no daemon, or it has just ended.
    Absent,
    /// The daemon has more connections than it has accepted.
    Busy,
}

/// Connects to the daemon. `start` starts one, and returns once it accepts connections; it is
/// called by one process at a time, and if there is still no daemon after `patience`.
///
/// # Errors
/// If no daemon can be reached or started.
pub(crate) fn dial(
    place: &DaemonPlace,
    hello: Hello,
    mut patience: Duration,
    start: impl Fn() -> Result<(), StartError>,
) -> Result<Dialed, DialError> {
    let greeting = ClientGreeting::Hello(Box::new(hello));
    let mut starter = Starter { place, start, failures: 0 };
    let begun = Instant::now();
    for () in retries() {
        match greet(place, &greeting)? {
            GreetOutcome::Answered(Welcome::Serving { notices, max_line }, reading) => {
                let writing = reading.try_clone().map_err(DialError::NoDescriptor)?;
                return Ok(Dialed::Serving(Connection { reading, writing, notices, max_line }));
            }
            GreetOutcome::Answered(Welcome::InProcess, _) => return Ok(Dialed::InProcess),
            GreetOutcome::Answered(Welcome::Refused { message, exit_code }, _) => {
                return Ok(Dialed::Refused { message, exit_code });
            }
            GreetOutcome::Answered(Welcome::Yields, _) => patience = Duration::ZERO,
            GreetOutcome::Answered(Welcome::Ending, _) | GreetOutcome::Busy => {}
            GreetOutcome::Absent if begun.elapsed() < patience => {}
            GreetOutcome::Absent => starter.start()?,
        }
    }
    Err(timed_out(place))
}

/// Yields until the time of [`dial`] is over, with a pause after each item.
fn retries() -> impl Iterator<Item = ()> {
    let begun = Instant::now();
    let mut pause = None;
    std::iter::from_fn(move || {
        if let Some(last) = pause {
            thread::sleep(last);
        }
        pause = Some(pause.map_or(FIRST_RETRY_DELAY, |last| MAX_RETRY_DELAY.min(last * 2)));
        (begun.elapsed() < DIAL_TIMEOUT).then_some(())
    })
}

/// Ensures that a daemon runs. `start` is as in [`dial`].
///
/// # Errors
/// As [`dial`].
pub(crate) fn ensure_running(
    place: &DaemonPlace,
    start: impl Fn() -> Result<(), StartError>,
) -> Result<(), DialError> {
    let mut starter = Starter { place, start, failures: 0 };
    for () in retries() {
        if send(place, DaemonCommand::Status)?.is_some() {
            return Ok(());
        }
        starter.start()?;
    }
    Err(timed_out(place))
}

fn timed_out(place: &DaemonPlace) -> DialError {
    DialError::Timeout(place.socket().display().to_string())
}

/// Sends a command to the daemon. Returns `None` if there is none that accepts hosts.
///
/// # Errors
/// If the daemon cannot be reached.
pub(crate) fn send(
    place: &DaemonPlace,
    command: DaemonCommand,
) -> Result<Option<AnsweredCommand>, DialError> {
    match greet(place, &ClientGreeting::Command(command))? {
        GreetOutcome::Answered(CommandAnswer::Done(status), connection) => {
            Ok(Some(AnsweredCommand { status, connection }))
        }
        GreetOutcome::Answered(CommandAnswer::Ending, _) | GreetOutcome::Absent => Ok(None),
        GreetOutcome::Busy => Err(silent(place, None)),
    }
}

/// Returns a stream to a server that hosts of the running daemon share. Returns `None` if no daemon
/// runs, or the server is not shared.
///
/// # Errors
/// If the daemon cannot be reached.
pub(crate) fn join(
    place: &DaemonPlace,
    world: ClientWorld,
    server: &str,
) -> Result<Option<UnixStream>, DialError> {
    let greeting = ClientGreeting::Join { world: Box::new(world), server: server.to_owned() };
    match greet(place, &greeting)? {
        GreetOutcome::Answered(JoinAnswer::Joined, stream) => Ok(Some(stream)),
        GreetOutcome::Answered(JoinAnswer::NotShared, _)
        | GreetOutcome::Absent
        | GreetOutcome::Busy => Ok(None),
    }
}

/// Starts the daemon, one process at a time.
struct Starter<'a, F> {
    place: &'a DaemonPlace,
    start: F,
    failures: u32,
}

impl<F: Fn() -> Result<(), StartError>> Starter<'_, F> {
    /// Starts the daemon, unless another process does so.
    fn start(&mut self) -> Result<(), DialError> {
        let Self { place, start, failures } = self;
        let prepare =
            |cause| DialError::Prepare { path: place.directory().display().to_string(), cause };
        place.prepare().map_err(prepare)?;
        let Some(_lock) = HeldLock::try_take(&place.start_lock()).map_err(prepare)? else {
            return Ok(());
        };
        // Another process may have started it since the attempt to connect.
        if matches!(connect_at_once(&place.socket()), Ok(Some(_)) | Err(_)) {
            return Ok(());
        }
        match start() {
            Ok(()) => Ok(()),
            Err(error) => {
                *failures += 1;
                if *failures < MAX_FAILED_STARTS { Ok(()) } else { Err(DialError::Start(error)) }
            }
        }
    }
}

fn greet<T: DeserializeOwned>(
    place: &DaemonPlace,
    greeting: &ClientGreeting,
) -> Result<GreetOutcome<T>, DialError> {
    let failed =
        |cause| DialError::Connect { path: place.directory().display().to_string(), cause };
    // The greeting has the environment, which only a daemon of this user may see.
    if place.directory().exists() {
        place.prepare().map_err(failed)?;
    }
    let stream = match connect_at_once(&place.socket()) {
        Ok(Some(stream)) => stream,
        Ok(None) => return Ok(GreetOutcome::Absent),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(GreetOutcome::Busy),
        Err(error) => return Err(failed(error)),
    };
    let peer = peer_of(&stream).ok().filter(|peer| peer.user == Uid::current());
    let Some(peer) = peer else {
        let message = "the process that listens there belongs to another user";
        return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, message)));
    };
    stream.set_read_timeout(Some(GREETING_TIMEOUT)).map_err(failed)?;
    stream.set_write_timeout(Some(GREETING_TIMEOUT)).map_err(failed)?;
    let answered = greeting::write(&stream, greeting).and_then(|()| greeting::read(&stream));
    stream.set_read_timeout(None).map_err(failed)?;
    stream.set_write_timeout(None).map_err(failed)?;
    match answered {
        Ok(answer) => Ok(GreetOutcome::Answered(answer, stream)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(silent(place, peer.process)),
            // The daemon has ended after the connection was made, and served nothing on it.
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => Ok(GreetOutcome::Absent),
            _ => Err(failed(error)),
        },
    }
}

/// Returns the error about a daemon that does not answer. `process`: its id, if known.
fn silent(place: &DaemonPlace, process: Option<i32>) -> DialError {
    let process = process.map_or(String::new(), |id| format!("(process {id}) "));
    DialError::Silent(format!("{process}at {}", place.socket().display()))
}

/// The process at the other end of a stream.
struct Peer {
    user: Uid,
    /// `None` where the system does not tell.
    process: Option<i32>,
}

#[cfg(target_os = "linux")]
fn peer_of(stream: &UnixStream) -> nix::Result<Peer> {
    use nix::sys::socket::{getsockopt, sockopt};

    let peer = getsockopt(stream, sockopt::PeerCredentials)?;
    Ok(Peer { user: Uid::from_raw(peer.uid()), process: Some(peer.pid()) })
}

#[cfg(not(target_os = "linux"))]
fn peer_of(stream: &UnixStream) -> nix::Result<Peer> {
    let (user, _) = nix::unistd::getpeereid(stream)?;
    Ok(Peer { user, process: None })
}
