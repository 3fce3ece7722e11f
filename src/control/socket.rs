//! The control socket of a running dormouse, and the client with which other commands use it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixListener;

use super::{ApiState, BASE_PATH, router};
use crate::base::{UNNAMED_EXTENSION, bind_private, connect_at_once, make_private_directory};

/// Maximum length of the fingerprint in a socket's name. The path of a socket is limited to about
/// 100 bytes.
const MAX_FINGERPRINT_CHARS: usize = 12;
/// Delay after the socket could not be created.
const BIND_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Maximum time for a process to answer the simplest request.
const ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to answer requests in progress when dormouse shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The directory with the sockets of all processes that serve one config.
#[derive(Clone, Debug)]
pub(crate) struct SocketDirectory {
    directory: PathBuf,
    /// Prefix of the sockets' names.
    config: String,
}

impl SocketDirectory {
    /// Makes a value for this config. `fingerprint`: a name that only this config has.
    pub(crate) fn new(directory: impl Into<PathBuf>, fingerprint: &str) -> Self {
        let config = fingerprint.chars().take(MAX_FINGERPRINT_CHARS).collect();
        Self { directory: directory.into(), config }
    }

    /// Returns the path of a new socket of this process, which may serve several fleets.
    fn new_path(&self) -> PathBuf {
        static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{}-{number}-{}.sock", self.config, std::process::id()))
    }

    fn all_sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let start = format!("{}-", self.config);
        let mut sockets: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
            .map(|entry| entry.path())
            .filter(|path| is_named(path))
            .collect();
        sockets.sort();
        sockets
    }
}

/// Serves the control API on the socket until `control.stop` is cancelled.
///
/// # Errors
/// When the socket cannot be used.
pub(crate) async fn serve(control: ApiState, sockets: SocketDirectory) -> io::Result<()> {
    let path = sockets.new_path();
    let stop = control.stop.clone();
    let Some(listener) = stop.run_until_cancelled(bind_at_last(&sockets.directory, &path)).await
    else {
        return Ok(());
    };
    remove_stale_sockets(&sockets.directory);
    let _removed = RemoveOnDrop(path);
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

/// Creates the socket, as soon as that is possible: the disk may be full now.
async fn bind_at_last(directory: &Path, path: &Path) -> UnixListener {
    let mut is_first = true;
    loop {
        match bind(directory, path) {
            Ok(listener) => return listener,
            Err(error) if std::mem::take(&mut is_first) => {
                tracing::info!(
                    directory = %directory.display(), %error,
                    "cannot open the control socket; other commands cannot reach this dormouse",
                );
            }
            Err(_) => {}
        }
        tokio::time::sleep(BIND_RETRY_DELAY).await;
    }
}

/// Creates the socket. The permissions of its directory exclude other users, too.
fn bind(directory: &Path, path: &Path) -> io::Result<UnixListener> {
    make_private_directory(directory)?;
    bind_private(path)
}

/// Removes the sockets that killed processes have left, whatever config they served.
fn remove_stale_sockets(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = entries.map(|entry| entry.path()).filter(|path| is_named(path));
    for path in sockets.filter(|path| is_abandoned(path)) {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
}

/// Removes the socket when it is dropped.
struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A process that serves the config.
#[derive(Clone, Debug)]
pub(crate) struct RunningDormouse {
    pub path: PathBuf,
}

/// The reason that a running process has not done what was requested.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlRequestError {
    #[error("the running dormouse does not answer")]
    Unreachable(#[from] reqwest::Error),
    #[error(
        "the running dormouse sent an answer that cannot be read (another version?): restart its \
            host"
    )]
    Strange(#[from] serde_json::Error),
    #[error("{0}")]
    Refused(String),
}

impl SocketDirectory {
    /// Returns the running processes that serve the config.
    pub(crate) fn running(&self) -> Vec<RunningDormouse> {
        let (abandoned, alive): (Vec<_>, Vec<_>) =
            self.all_sockets().into_iter().partition(|path| is_abandoned(path));
        for path in abandoned {
            // Another process may have removed it.
            let _ = fs::remove_file(&path);
        }
        alive.into_iter().map(|path| RunningDormouse { path }).collect()
    }
}

impl RunningDormouse {
    /// Sends a request to the process, unless the process hangs. `path` is below [`BASE_PATH`].
    ///
    /// # Errors
    /// When the process does not answer in time, or refuses.
    pub(crate) async fn send_if_alive<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<T, ControlRequestError> {
        if patience > ALIVE_TIMEOUT {
            self.send::<Value>(Method::GET, "/status", ALIVE_TIMEOUT).await?;
        }
        self.send(method, path, patience).await
    }

    /// Sends a request to the process; `path` is below [`BASE_PATH`].
    ///
    /// # Errors
    /// When the process does not answer in time, or refuses.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<T, ControlRequestError> {
        // `reqwest` requires a TLS provider, even though the socket is not encrypted. One may be
        // installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The certificates of the system take long to read.
        let client = reqwest::Client::builder().tls_certs_only([]);
        let client = client.unix_socket(self.path.as_path()).timeout(patience);
        let url = format!("http://dormouse{BASE_PATH}{path}");
        let answer = client.build()?.request(method, url).send().await;
        // The address means nothing to a user.
        let answer = answer.map_err(reqwest::Error::without_url)?;
        let is_done = answer.status().is_success();
        let body = answer.bytes().await?;
        if is_done {
            return Ok(serde_json::from_slice(&body)?);
        }
        let refused: Value = serde_json::from_slice(&body)?;
        Err(ControlRequestError::Refused(refused["error"].as_str().unwrap_or_default().to_owned()))
    }
}

fn is_named(path: &Path) -> bool {
    path.extension().is_none_or(|extension| extension != UNNAMED_EXTENSION)
}

/// Returns whether a killed process has left the socket. The process id in its name says nothing:
/// another process may have it now.
fn is_abandoned(path: &Path) -> bool {
    matches!(connect_at_once(path), Ok(None))
}
