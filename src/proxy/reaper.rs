//! The task that removes expired entries from a table.

use std::sync::Arc;

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::Fleet;

/// Calls `expire` at the times that it returns, until the fleet ends. While it returns `None`, the
/// table is empty, and `added` tells of the next entry.
pub(super) fn reap(
    fleet: &Fleet,
    added: Arc<Notify>,
    expire: impl Fn(&Fleet) -> Option<Instant> + Send + 'static,
) {
    let (weak, stop) = (fleet.this.clone(), fleet.context.stop.clone());
    fleet.context.tasks.spawn(async move {
        while let Some(fleet) = weak.upgrade() {
            let next = expire(&fleet);
            drop(fleet);
            let due = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => added.notified().await,
                }
            };
            if stop.run_until_cancelled(due).await.is_none() {
                return;
            }
        }
    });
}
