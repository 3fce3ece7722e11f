//! Changes of values by other processes.

use std::{sync::Arc, time::Duration};

use super::{Store, StoredVersion};
use crate::base::run_blocking;

/// Interval of the checks whether another process has changed a value.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until a value has another version than `seen`, and returns that version.
///
/// Stores do not tell one process of the changes by another, so that the version is compared at
/// intervals. Several changes within one interval are noticed as one.
pub(crate) async fn wait_for_change(
    store: &Arc<dyn Store>,
    name: &str,
    seen: StoredVersion,
) -> StoredVersion {
    loop {
        let (store, name) = (store.clone(), name.to_owned());
        // The work has no outcome only if the runtime is shutting down. A store that cannot be used
        // now is asked again.
        let version = run_blocking(move || store.version(&name)).await;
        let version = version.and_then(Result::ok);
        if let Some(version) = version.filter(|version| *version != seen) {
            return version;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}
