//! The uses of a connection, and the time since the last one.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Notify, time::Instant};

use crate::base::Lock;

/// Counts the uses of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Lock<ActivityState>,
    unused: Notify,
}

#[derive(Debug)]
enum ActivityState {
    InUse(usize),
    Unused {
        since: Instant,
    },
    /// The connection is being closed, and accepts no further use.
    Closed,
}

/// One use. The connection is not idle while this lives.
#[derive(Debug)]
pub(super) struct ActivityGuard(Arc<Activity>);

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        let state = Lock::new(ActivityState::Unused { since: Instant::now() });
        Arc::new(Self { state, unused: Notify::new() })
    }

    /// Begins a use; `None` if the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<ActivityGuard> {
        let mut state = self.state.lock();
        *state = match *state {
            ActivityState::InUse(uses) => ActivityState::InUse(uses + 1),
            ActivityState::Unused { .. } => ActivityState::InUse(1),
            ActivityState::Closed => return None,
        };
        Some(ActivityGuard(self.clone()))
    }

    /// Counts the time without use from now: a connection that is being made is not idle.
    pub(super) fn note_connected(&self) {
        if let ActivityState::Unused { since } = &mut *self.state.lock() {
            *since = Instant::now();
        }
    }

    /// Refuses further uses, unless the connection is in use now. Returns whether it did.
    pub(super) fn try_close(&self) -> bool {
        let mut state = self.state.lock();
        let is_in_use = matches!(*state, ActivityState::InUse(_));
        if !is_in_use {
            *state = ActivityState::Closed;
        }
        !is_in_use
    }

    /// Refuses further uses.
    pub(super) fn close(&self) {
        *self.state.lock() = ActivityState::Closed;
    }

    /// Resolves when nothing has used the connection for `timeout`.
    pub(super) async fn idle_for(&self, timeout: Duration) {
        loop {
            let due = match *self.state.lock() {
                ActivityState::InUse(_) => None,
                ActivityState::Unused { since } => Some(since + timeout),
                ActivityState::Closed => return,
            };
            match due {
                None => self.unused.notified().await,
                Some(due) if due <= Instant::now() => return,
                Some(due) => tokio::time::sleep_until(due).await,
            }
        }
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        match *state {
            ActivityState::InUse(1) => {
                *state = ActivityState::Unused { since: Instant::now() };
                self.0.unused.notify_one();
            }
            ActivityState::InUse(uses) => *state = ActivityState::InUse(uses - 1),
            ActivityState::Unused { .. } | ActivityState::Closed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_time_starts_at_the_end_of_the_last_use() {
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

    #[tokio::test(start_paused = true)]
    async fn time_of_connecting_is_not_idle_time() {
        let activity = Activity::new();
        tokio::time::sleep(Duration::from_mins(1)).await;
        activity.note_connected();
        let connected = Instant::now();
        activity.idle_for(Duration::from_secs(5)).await;
        assert_eq!(connected.elapsed(), Duration::from_secs(5));
    }
}
