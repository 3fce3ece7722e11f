//! Forgetting what has expired, for as long as there is something.

use tokio::time::{Instant, sleep_until};

use super::Fleet;

/// Calls `expire` now and at the times that it returns, until it returns `None` or the fleet ends.
pub(super) fn reap(fleet: &Fleet, expire: impl Fn(&Fleet) -> Option<Instant> + Send + 'static) {
    let (weak, stop) = (fleet.this.clone(), fleet.context.stop.clone());
    fleet.context.tasks.spawn(async move {
        while let Some(fleet) = weak.upgrade() {
            let next = expire(&fleet);
            drop(fleet);
            let Some(next) = next else { return };
            if stop.run_until_cancelled(sleep_until(next)).await.is_none() {
                return;
            }
        }
    });
}
