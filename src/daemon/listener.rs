//! The socket on which a daemon accepts its clients.

use std::{
    fs, io,
    os::unix::{fs::MetadataExt as _, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::Uid;
use tokio::net::UnixListener;

use super::{DaemonPlace, held_lock::HeldLock};
use crate::base::{LockError, bind_private};

/// Maximum time for an earlier daemon to let go of the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason that a daemon cannot accept clients.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    #[error("another daemon serves this config; end it with `dormouse daemon stop`")]
    Taken,
    #[error("cannot use {path}: {cause}")]
    Unusable { path: PathBuf, cause: io::Error },
}

/// The socket of a daemon, and the lock that makes it the only one.
pub(crate) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// The inode of the socket.
    inode: u64,
    lock: HeldLock,
}

impl Listener {
    /// Takes the lock and creates the socket.
    ///
    /// # Errors
    /// If another daemon has the lock, or the files cannot be created.
    pub(crate) fn bind(place: &DaemonPlace) -> Result<Self, ListenError> {
        let unusable = |path: &Path, cause| ListenError::Unusable { path: path.to_owned(), cause };
        place.prepare().map_err(|cause| unusable(place.directory(), cause))?;
        let lock_path = place.lock();
        let lock = HeldLock::wait(&lock_path, LOCK_TIMEOUT).map_err(|error| match error {
            LockError::Held(_) => ListenError::Taken,
            LockError::Io(error) => unusable(&lock_path, error),
        })?;
        let path = place.socket();
        let bound = || Ok((bind_private(&path)?, fs::metadata(&path)?.ino()));
        let (socket, inode) = bound().map_err(|cause| unusable(&path, cause))?;
        Ok(Self { socket, path, inode, lock })
    }

    /// Waits for a client of the same user.
    ///
    /// # Errors
    /// If no connection can be accepted now, for example for lack of descriptors.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.socket.accept().await?;
            let client = stream.peer_cred()?.uid();
            if client != Uid::current().as_raw() {
                tracing::warn!(user = client, "refused a client of another user");
                continue;
            }
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            return Ok(stream);
        }
    }

    /// Returns whether clients still find this daemon: its files are where they were.
    pub(crate) fn is_in_place(&self) -> bool {
        self.lock.is_in_place() && self.has_socket()
    }

    fn has_socket(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

impl Drop for Listener {
    /// Removes the socket, before the lock lets another daemon create one.
    fn drop(&mut self) {
        if self.has_socket() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
