//! Whether anything uses a connection, and since when nothing does.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// Counts the uses of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    uses: AtomicUsize,
    /// The connection is being closed; it must not be used any more.
    is_closing: AtomicBool,
    // A std mutex: held for one copy.
    last_end: Mutex<Instant>,
    unused: Notify,
}

/// One use; the connection is not idle while this lives.
#[derive(Debug)]
pub(super) struct InUse(Arc<Activity>);

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            uses: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            last_end: Mutex::new(Instant::now()),
            unused: Notify::new(),
        })
    }

    /// Begins a use; `None` when the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<InUse> {
        self.uses.fetch_add(1, Ordering::SeqCst);
        let in_use = InUse(self.clone());
        // Counted first and checked second: `try_close` does it the other way round, so one of the
        // two sees the other.
        (!self.is_closing.load(Ordering::SeqCst)).then_some(in_use)
    }

    /// Bars new uses, unless there is one at this moment.
    pub(super) fn try_close(&self) -> bool {
        self.is_closing.store(true, Ordering::SeqCst);
        let unused = self.uses.load(Ordering::SeqCst) == 0;
        if !unused {
            self.is_closing.store(false, Ordering::SeqCst);
        }
        unused
    }

    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Resolves once nothing has used the connection for `timeout`.
    pub(super) async fn idle_for(&self, timeout: Duration) {
        loop {
            let due = self.last_end() + timeout;
            if self.uses.load(Ordering::SeqCst) > 0 {
                self.unused.notified().await;
            } else if due <= Instant::now() {
                return;
            } else {
                tokio::time::sleep_until(due).await;
            }
        }
    }

    fn last_end(&self) -> Instant {
        *self.last_end.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let activity = &self.0;
        *activity.last_end.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            Instant::now();
        if activity.uses.fetch_sub(1, Ordering::SeqCst) == 1 {
            activity.unused.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idleness_counts_from_the_end_of_the_last_use() {
        let activity = Activity::new();
        let start = Instant::now();
        let in_use = activity.begin().unwrap();
        let waiting = tokio::spawn({
            let activity = activity.clone();
            async move { activity.idle_for(Duration::from_secs(5)).await }
        });
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(!activity.try_close());
        drop(in_use);
        waiting.await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(65));
        assert!(activity.try_close());
        assert!(activity.begin().is_none());
    }
}
