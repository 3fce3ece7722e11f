//! Waits for leases that other processes have.

use std::{io, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Store, StoreLease};
use crate::base::{LockError, run_blocking, wait_for_lock_blocking};

/// Delays before further attempts to take a lease, which double.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(10);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Waits for a lease that processes hold while they use the network. A store that cannot be reached
/// may be reached again.
///
/// # Errors
/// If another process keeps the lease for this time, or leases are not available.
pub(crate) async fn lease(
    store: &Arc<dyn Store>,
    name: &str,
    timeout: Duration,
) -> Result<StoreLease, LockError> {
    let until = Instant::now() + timeout;
    let mut delay = MIN_RETRY_DELAY;
    loop {
        let (asked, name) = (store.clone(), name.to_owned());
        // The work has no outcome only if the runtime is shutting down.
        let taken = run_blocking(move || asked.try_lease(&name)).await;
        let missed = match taken.unwrap_or(Err(io::ErrorKind::Interrupted.into())) {
            Ok(Some(lease)) => return Ok(lease),
            Ok(None) => LockError::Held(timeout),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => LockError::Io(error),
            Err(error) => return Err(LockError::Io(error)),
        };
        if Instant::now() >= until {
            return Err(missed);
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(MAX_RETRY_DELAY);
    }
}

/// Waits on this thread for a lease that processes hold for milliseconds.
///
/// # Errors
/// As [`lease`].
pub(crate) fn lease_blocking(store: &dyn Store, name: &str) -> Result<StoreLease, LockError> {
    wait_for_lock_blocking(|| store.try_lease(name))
}
