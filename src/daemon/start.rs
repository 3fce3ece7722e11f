//! The start of a daemon that outlives the process that starts it.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader},
    os::{fd::AsFd as _, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::DaemonPlace;
use crate::base::{make_private_directory, own_program};

/// The hidden argument of the process that starts the daemon and ends; the arguments of the daemon
/// follow.
pub(crate) const LAUNCHER_ARGUMENT: &str = "__start-daemon";

/// Maximum time for a daemon to accept connections.
const READY_TIMEOUT: Duration = Duration::from_secs(8);
/// The size above which the log of earlier daemons is set aside, in bytes.
const MAX_LOG_BYTES: u64 = 1024 * 1024;

/// The line on standard output by which a daemon reports that it accepts connections.
pub(crate) const READY: &str = "ready";

/// The reason that a daemon could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot start the daemon: {0}")]
    Spawn(#[from] io::Error),
    #[error("the daemon is not ready after {READY_TIMEOUT:?}; its log is {}", .log.display())]
    NotReady { log: PathBuf },
    #[error("the daemon ended at its start; its log is {}", .log.display())]
    Ended { log: PathBuf },
}

/// Starts a daemon with these arguments and variables, and waits until it accepts connections.
/// `program` is its path, at which an update may have written another build.
///
/// # Errors
/// If it cannot be started, or does not accept connections in time.
pub(crate) fn start(
    place: &DaemonPlace,
    program: &Path,
    arguments: &[OsString],
    variables: &[(OsString, OsString)],
) -> Result<(), StartError> {
    let mut command = Command::new(program);
    command.arg(LAUNCHER_ARGUMENT).args(arguments);
    command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    // The daemon must not keep the file system of the client's directory busy.
    command.current_dir("/");
    let log = open_log(&place.log()).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut launcher = command.spawn()?;
    let started = wait_until_ready(&mut launcher, place);
    // The launcher has ended, or is not needed any more.
    let _ = launcher.kill();
    let _ = launcher.wait();
    started
}

fn wait_until_ready(launcher: &mut Child, place: &DaemonPlace) -> Result<(), StartError> {
    let Some(output) = launcher.stdout.take() else { return Ok(()) };
    let mut ready = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(READY_TIMEOUT).unwrap_or(PollTimeout::NONE);
    if poll(&mut ready, timeout).map_err(io::Error::from)? == 0 {
        return Err(StartError::NotReady { log: place.log() });
    }
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    if line.trim() == READY { Ok(()) } else { Err(StartError::Ended { log: place.log() }) }
}

/// Opens the log of the daemon. A log that has grown large is set aside before.
fn open_log(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        make_private_directory(directory)?;
    }
    if fs::metadata(path).is_ok_and(|log| log.len() > MAX_LOG_BYTES) {
        fs::rename(path, path.with_extension("old.log"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Runs the launcher: starts the daemon and ends. A host that ends all descendants of the process
/// that it has started does not find the daemon among them.
pub(crate) fn launch(arguments: &[OsString]) -> ExitCode {
    // Without a session of its own, the daemon would end with the client's terminal.
    let _ = nix::unistd::setsid();
    let started = own_program()
        .and_then(|program| Command::new::<&OsStr>(program.as_ref()).args(arguments).spawn());
    if started.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
