//! Files that several processes change.

use std::{
    fs::{File, TryLockError},
    io, thread,
    time::{Duration, Instant},
};

/// How long another process may hold a lock, which it does for milliseconds, and how often to look.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until no other process holds the file. It is given back when the file is closed, also by a process that is
/// killed.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] when another process does not give it back; others when it cannot be locked.
pub fn lock(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    while let Err(refusal) = file.try_lock() {
        match refusal {
            TryLockError::WouldBlock if Instant::now() < deadline => thread::sleep(PAUSE),
            TryLockError::WouldBlock => {
                let message = format!("another process has held the lock for {LOCK_TIMEOUT:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            TryLockError::Error(error) => return Err(error),
        }
    }
    Ok(())
}
