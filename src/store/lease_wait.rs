//! Waits for leases that other processes have.

use std::time::Duration;

use super::{Store, StoreLease};
use crate::base::{LockError, wait_for_lock, wait_for_lock_blocking};

/// Waits for a lease that processes hold while they use the network.
///
/// # Errors
/// If another process keeps it for this time, or leases are not available.
pub(crate) async fn lease(
    store: &dyn Store,
    name: &str,
    timeout: Duration,
) -> Result<StoreLease, LockError> {
    wait_for_lock(timeout, || store.try_lease(name)).await
}

/// Waits on this thread for a lease that processes hold for milliseconds.
///
/// # Errors
/// As [`lease`].
pub(crate) fn lease_blocking(store: &dyn Store, name: &str) -> Result<StoreLease, LockError> {
    wait_for_lock_blocking(|| store.try_lease(name))
}
