//! Leases: the right to change values, which one process or task has at a time.

use std::{fs::File, io, thread, time::Duration};

use tokio::time::Instant;

use super::Store;

/// Interval of attempts to take a lease that another process has.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// A lease that ends when this is dropped, or with its process.
#[derive(Debug)]
pub(crate) struct StoreLease(File);

/// The reason that a lease was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("another process held the lock for {0:?}")]
    Held(Duration),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl StoreLease {
    /// Wraps a file that this process has locked.
    pub(super) fn of(locked: File) -> Self {
        Self(locked)
    }
}

impl Drop for StoreLease {
    fn drop(&mut self) {
        // Closing the file unlocks it too, unless a child process has inherited it.
        let _ = self.0.unlock();
    }
}

impl From<LeaseError> for io::Error {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Io(error) => error,
            LeaseError::Held(_) => Self::new(io::ErrorKind::TimedOut, error.to_string()),
        }
    }
}

/// Waits for a lease that processes hold while they use the network.
///
/// # Errors
/// If another process keeps it for this time, or leases cannot be had.
pub(crate) async fn lease(
    store: &dyn Store,
    name: &str,
    timeout: Duration,
) -> Result<StoreLease, LeaseError> {
    let deadline = Instant::now() + timeout;
    loop {
        match store.try_lease(name)? {
            Some(lease) => return Ok(lease),
            None if Instant::now() < deadline => tokio::time::sleep(RETRY_DELAY).await,
            None => return Err(LeaseError::Held(timeout)),
        }
    }
}

/// Waits on this thread for a lease that processes hold for milliseconds.
///
/// # Errors
/// As [`lease`].
pub(crate) fn lease_blocking(store: &dyn Store, name: &str) -> Result<StoreLease, LeaseError> {
    const TIMEOUT: Duration = Duration::from_secs(5);
    let deadline = std::time::Instant::now() + TIMEOUT;
    loop {
        match store.try_lease(name)? {
            Some(lease) => return Ok(lease),
            None if std::time::Instant::now() < deadline => thread::sleep(RETRY_DELAY),
            None => return Err(LeaseError::Held(TIMEOUT)),
        }
    }
}
