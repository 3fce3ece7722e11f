//! The first attempts to connect eager and hybrid servers, for which the first lists wait a while.

use std::{collections::HashSet, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::{base::Lock, catalog::ServerId};

pub(super) struct FirstAttempts {
    /// The number of first attempts that are not over.
    open: watch::Sender<usize>,
    /// The servers that hung in the last run; no list waits for them.
    unwaited: HashSet<ServerId>,
    /// The start of the attempts that lists wait for.
    began: Lock<Instant>,
}

/// An attempt that is over when this is dropped.
pub(super) struct OpenAttempt(watch::Sender<usize>);

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        end_one(&self.0);
    }
}

fn end_one(open: &watch::Sender<usize>) {
    open.send_modify(|open| *open = open.saturating_sub(1));
}

impl Default for FirstAttempts {
    fn default() -> Self {
        Self {
            open: watch::Sender::new(0),
            unwaited: HashSet::new(),
            began: Lock::new(Instant::now()),
        }
    }
}

impl FirstAttempts {
    /// Expects the first attempt of a server of the first config.
    pub(super) fn expect(&mut self, server: ServerId, has_hung: bool) {
        if has_hung {
            self.unwaited.insert(server);
        } else {
            self.add();
        }
    }

    pub(super) fn add(&self) {
        self.open.send_modify(|open| *open += 1);
    }

    /// Adds something else that the first lists wait for: it is over when the result is dropped.
    pub(super) fn begin_other(&self) -> OpenAttempt {
        self.add();
        OpenAttempt(self.open.clone())
    }

    /// Restarts the time for which lists wait.
    pub(super) fn begin_again(&self) {
        *self.began.lock() = Instant::now();
    }

    pub(super) fn finish(&self, server: ServerId) {
        if !self.unwaited.contains(&server) {
            end_one(&self.open);
        }
    }

    /// Waits until all are over, at most until the deadline. Returns whether they are.
    pub(super) async fn over(&self, limit: Duration) -> bool {
        let mut open = self.open.subscribe();
        let all = open.wait_for(|open| *open == 0);
        tokio::time::timeout_at(self.deadline(limit), all).await.is_ok()
    }

    pub(super) fn deadline(&self, limit: Duration) -> Instant {
        *self.began.lock() + limit
    }
}
