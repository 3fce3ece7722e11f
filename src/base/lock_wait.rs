//! Waits for locks that other processes hold.

use std::{
    fs::{File, TryLockError},
    io, thread,
    time::Duration,
};

/// Maximum time to wait on a thread for a lock, which other processes hold for milliseconds.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the attempts to take a lock.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// The reason that a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("timed out after {0:?} waiting for a lock that another process holds")]
    Held(Duration),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<LockError> for io::Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Io(error) => error,
            LockError::Held(_) => Self::new(io::ErrorKind::TimedOut, error.to_string()),
        }
    }
}

/// Waits on this thread for a lock that processes hold for milliseconds. `try_lock` returns `None`
/// while another process has it.
///
/// # Errors
/// If another process keeps it too long, or `try_lock` fails.
pub(crate) fn wait_for_lock_blocking<T>(
    try_lock: impl FnMut() -> io::Result<Option<T>>,
) -> Result<T, LockError> {
    wait_for_lock_on_thread(BLOCKING_TIMEOUT, try_lock)
}

/// Waits on this thread for a lock that processes may hold for seconds.
///
/// # Errors
/// If another process keeps it for this time, or `try_lock` fails.
pub(crate) fn wait_for_lock_on_thread<T>(
    timeout: Duration,
    mut try_lock: impl FnMut() -> io::Result<Option<T>>,
) -> Result<T, LockError> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(lock) = try_lock()? {
            return Ok(lock);
        }
        if waited >= timeout {
            return Err(LockError::Held(timeout));
        }
        thread::sleep(RETRY_DELAY);
        waited += RETRY_DELAY;
    }
}

/// Waits until no other process has locked the file. The lock ends when the file is closed, also if
/// its process is killed.
///
/// # Errors
/// As [`wait_for_lock_blocking`].
pub(crate) fn lock_file(file: &File) -> Result<(), LockError> {
    wait_for_lock_blocking(|| Ok(try_lock_file(file)?.then_some(())))
}

/// Locks a file. Returns `false` if another process has locked it.
///
/// # Errors
/// If the file cannot be locked.
pub(crate) fn try_lock_file(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
