//! Files that several processes change.

use std::{
    fs::{File, TryLockError},
    io, thread,
    time::{Duration, Instant},
};

/// Maximum time to wait for a lock, which other processes hold for milliseconds, and the interval
/// of the checks.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until no other process holds the file. The lock ends when the file is closed, also if its
/// process is killed.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if another process keeps it; others if the file cannot be locked.
pub(crate) fn lock_file(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    while let Err(refusal) = file.try_lock() {
        match refusal {
            TryLockError::WouldBlock if Instant::now() < deadline => thread::sleep(PAUSE),
            TryLockError::WouldBlock => {
                let message = format!("another process held the lock for {LOCK_TIMEOUT:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            TryLockError::Error(error) => return Err(error),
        }
    }
    Ok(())
}
