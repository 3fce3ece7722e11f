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

use tokio::{io::AsyncWriteExt as _, net::UnixListener};
use tokio_util::sync::CancellationToken;

use super::Report;
use crate::proxy::Fleet;

/// A path of a socket may have about a hundred bytes.
const DIGITS: usize = 12;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let _removed = Removed(path);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        let Ok((mut stream, _)) = accepted else { continue };
        let (fleet, config) = (fleet.clone(), config.clone());
        let report = tokio::task::spawn_blocking(move || Report::of(&fleet, config)).await;
        let text = report.ok().and_then(|report| serde_json::to_vec(&report).ok());
        // Whoever does not take the answer has gone.
        let _ = tokio::time::timeout(PATIENCE, stream.write_all(&text.unwrap_or_default())).await;
    }
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

/// Takes the socket away at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What all processes say that serve the config.
pub fn ask(place: &Place) -> Vec<Report> {
    place.all().iter().filter_map(|path| ask_one(path)).collect()
}

fn ask_one(path: &Path) -> Option<Report> {
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) => {
            // Its process was killed.
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(path);
            }
            return None;
        }
    };
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
