//! The socket: one connection, one report.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::{
        fs::{DirBuilderExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nix::unistd::Pid;
use tokio::{io::AsyncWriteExt as _, net::UnixListener};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Report;
use crate::proxy::Fleet;

/// A path of a socket may have about a hundred bytes.
const DIGITS: usize = 12;
/// After a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(200);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that runs and does not answer.
#[derive(Debug)]
pub struct Silent {
    pub path: PathBuf,
    pub cause: io::Error,
}

/// Where the sockets of the processes that serve one config are.
#[derive(Clone, Debug)]
pub struct Place {
    directory: PathBuf,
    /// Begins the name of each of them.
    config: String,
}

impl Place {
    /// `fingerprint`: a name for the config.
    pub fn new(directory: impl Into<PathBuf>, fingerprint: &str) -> Self {
        let config = fingerprint.chars().take(DIGITS).collect();
        Self { directory: directory.into(), config }
    }

    fn of_process(&self) -> PathBuf {
        self.directory.join(format!("{}-{}.sock", self.config, std::process::id()))
    }

    fn all(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let start = format!("{}-", self.config);
        let mut sockets: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
            .map(|entry| entry.path())
            .collect();
        sockets.sort();
        sockets
    }
}

/// Answers whoever asks, until `stop`.
///
/// # Errors
/// When the socket cannot be made.
pub async fn serve(
    fleet: Arc<Fleet>,
    place: Place,
    config: PathBuf,
    stop: CancellationToken,
) -> io::Result<()> {
    let path = place.of_process();
    let listener = bind(&place.directory, &path)?;
    sweep(&place.directory);
    let _removed = Removed(path);
    let answers = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // No descriptors are left, say, and there will be some again.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let answer = answer(stream, fleet.clone(), config.clone());
        let stop = stop.clone();
        answers.spawn(async move { stop.run_until_cancelled(answer).await });
    }
    answers.close();
    answers.wait().await;
    Ok(())
}

async fn answer(mut stream: tokio::net::UnixStream, fleet: Arc<Fleet>, config: PathBuf) {
    let report = tokio::task::spawn_blocking(move || Report::of(&fleet, config)).await;
    let text = report.ok().and_then(|report| serde_json::to_vec(&report).ok());
    // Whoever does not take the answer has gone.
    let _ = tokio::time::timeout(PATIENCE, stream.write_all(&text.unwrap_or_default())).await;
}

/// Nobody but the user may connect: neither the directory nor the socket lets others in.
fn bind(directory: &Path, path: &Path) -> io::Result<UnixListener> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // What a process of the same number has left behind.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes what killed processes have left behind, whatever config they served.
fn sweep(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| !is_alive(path)) {
        // Another process may have done so.
        let _ = fs::remove_file(path);
    }
}

/// Takes the socket away at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What all processes say that serve the config, and those of them that say nothing.
pub fn ask(place: &Place) -> (Vec<Report>, Vec<Silent>) {
    let mut answers = (Vec::new(), Vec::new());
    for path in place.all() {
        match ask_one(&path) {
            Ok(report) => answers.0.push(report),
            // It was killed.
            Err(_) if !is_alive(&path) => drop(fs::remove_file(&path)),
            Err(cause) => answers.1.push(Silent { path, cause }),
        }
    }
    answers
}

fn ask_one(path: &Path) -> io::Result<Report> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Whether the process runs that has made the socket; its number is part of the name.
fn is_alive(path: &Path) -> bool {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let process = name.and_then(|name| name.rsplit('-').next()?.parse().ok());
    process.is_some_and(|process| nix::sys::signal::kill(Pid::from_raw(process), None).is_ok())
}
