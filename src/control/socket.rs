//! The socket of a running dormouse, and the way in for other commands.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::Pid;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixListener;

use super::{BASE_PATH, Control, router};
use crate::config::make_private_directory;

/// A path of a socket may have about a hundred bytes.
const MAX_FINGERPRINT_CHARS: usize = 12;
/// How long answers may take once we are told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the sockets of the processes that serve one config are.
#[derive(Clone, Debug)]
pub struct SocketDirectory {
    directory: PathBuf,
    /// Begins the name of each of them.
    config: String,
}

impl SocketDirectory {
    /// `fingerprint`: a name for the config.
    pub fn new(directory: impl Into<PathBuf>, fingerprint: &str) -> Self {
        let config = fingerprint.chars().take(MAX_FINGERPRINT_CHARS).collect();
        Self { directory: directory.into(), config }
    }

    fn path_of_this_process(&self) -> PathBuf {
        self.directory.join(format!("{}-{}.sock", self.config, std::process::id()))
    }

    fn all_sockets(&self) -> Vec<PathBuf> {
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

/// Answers whoever asks, until `control.stop`.
///
/// # Errors
/// When the socket cannot be made.
pub async fn serve(control: Control, place: SocketDirectory) -> io::Result<()> {
    let path = place.path_of_this_process();
    let listener = bind(&place.directory, &path)?;
    remove_stale_sockets(&place.directory);
    let _removed = RemoveOnDrop(path);
    let stop = control.stop.clone();
    let stopping = stop.clone().cancelled_owned();
    let serving = axum::serve(listener, router(control)).with_graceful_shutdown(stopping);
    tokio::select! {
        served = serving => served,
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        } => Ok(()),
    }
}

/// Nobody but the user may connect: neither the directory nor the socket lets others in.
fn bind(directory: &Path, path: &Path) -> io::Result<UnixListener> {
    make_private_directory(directory)?;
    // What a process of the same number has left behind.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Removes what killed processes have left behind, whatever config they served.
fn remove_stale_sockets(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| !is_owner_alive(path)) {
        // Another process may have done so.
        let _ = fs::remove_file(path);
    }
}

/// Takes the socket away at the end.
struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A process that serves the config.
#[derive(Clone, Debug)]
pub struct RunningDormouse {
    pub path: PathBuf,
}

/// A process that runs and does not answer, or refuses.
#[derive(Debug, thiserror::Error)]
pub enum ControlRequestError {
    #[error("it does not answer")]
    Unreachable(#[from] reqwest::Error),
    #[error("it answers something else")]
    Strange(#[from] serde_json::Error),
    #[error("{0}")]
    Refused(String),
}

impl SocketDirectory {
    /// Those that run.
    pub fn running(&self) -> Vec<RunningDormouse> {
        let (alive, gone): (Vec<_>, Vec<_>) =
            self.all_sockets().into_iter().partition(|path| is_owner_alive(path));
        for path in gone {
            // It was killed; another process may have done so.
            let _ = fs::remove_file(&path);
        }
        alive.into_iter().map(|path| RunningDormouse { path }).collect()
    }
}

impl RunningDormouse {
    /// Asks or tells it something; `path` is below [`BASE`].
    ///
    /// # Errors
    /// When it does not answer in time, or refuses.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<T, ControlRequestError> {
        // No client is made without one, though nothing is encrypted here. One may have been installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().unix_socket(self.path.as_path()).timeout(patience);
        let url = format!("http://dormouse{BASE_PATH}{path}");
        let answer = client.build()?.request(method, url).send().await?;
        let is_done = answer.status().is_success();
        let body = answer.bytes().await?;
        if is_done {
            return Ok(serde_json::from_slice(&body)?);
        }
        let refused: Value = serde_json::from_slice(&body)?;
        Err(ControlRequestError::Refused(refused["error"].as_str().unwrap_or_default().to_owned()))
    }
}

/// Whether the process runs that has made the socket; its number is part of the name.
fn is_owner_alive(path: &Path) -> bool {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let process = name.and_then(|name| name.rsplit('-').next()?.parse().ok());
    process.is_some_and(|process| nix::sys::signal::kill(Pid::from_raw(process), None).is_ok())
}
