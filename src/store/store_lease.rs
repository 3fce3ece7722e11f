//! Leases: the right to change values, which one process or task has at a time.

use std::time::Duration;

use super::Store;
use crate::base::{LockError, wait_for_lock, wait_for_lock_blocking};

/// A lease that ends when this is dropped, or with its process.
pub(crate) struct StoreLease {
    _held: Box<dyn Send + Sync>,
}

impl StoreLease {
    /// Makes a lease that lasts as long as `held`.
    pub(super) fn of(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
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
