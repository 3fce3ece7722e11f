//! The lists that a server has announced as changed.

use std::sync::{
    MutexGuard,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use tokio::sync::{Notify, watch};

use crate::{base::Lock, protocol::method};

/// A set of lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListKinds(u8);

impl ListKinds {
    pub(crate) const TOOLS: Self = Self(1);
    pub(crate) const RESOURCES: Self = Self(2);
    pub(crate) const TEMPLATES: Self = Self(4);
    pub(crate) const PROMPTS: Self = Self(8);
    pub(crate) const ALL: Self = Self(15);

    /// Returns the lists that a server's notification announces as changed.
    pub(super) fn changed_by(method: &str) -> Option<Self> {
        match method {
            method::TOOLS_LIST_CHANGED => Some(Self::TOOLS),
            method::RESOURCES_LIST_CHANGED => Some(Self::RESOURCES.and(Self::TEMPLATES)),
            method::PROMPTS_LIST_CHANGED => Some(Self::PROMPTS),
            _ => None,
        }
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The lists that a server has announced as changed. A burst of announcements counts once.
#[derive(Default)]
pub(super) struct StaleLists {
    kinds: AtomicU8,
    marked: Notify,
    /// The number of announcements, and how many of them the last reading covers.
    announced: AtomicU64,
    read: watch::Sender<u64>,
    /// Held while lists are merged: a refresh and a host's list request may happen at once.
    merging: Lock<()>,
}

impl StaleLists {
    /// Waits until no lists are being merged, and lets no others be until the guard is dropped.
    pub(super) fn merge_alone(&self) -> MutexGuard<'_, ()> {
        self.merging.lock()
    }

    /// Notes that the server has announced a change of these lists.
    pub(super) fn announce(&self, kinds: ListKinds) {
        self.announced.fetch_add(1, Ordering::Relaxed);
        self.mark(kinds);
    }

    pub(super) fn mark(&self, kinds: ListKinds) {
        self.kinds.fetch_or(kinds.0, Ordering::Relaxed);
        self.marked.notify_one();
    }

    /// Returns the number of announcements. A reading that begins now covers them.
    pub(super) fn announced_count(&self) -> u64 {
        self.announced.load(Ordering::Relaxed)
    }

    /// Returns the number of announcements that the last reading covers.
    pub(super) fn last_read_count(&self) -> u64 {
        *self.read.borrow()
    }

    /// Tells waiting tasks that a reading that covers this many announcements has ended, with or
    /// without success.
    pub(super) fn note_read(&self, announced: u64) {
        self.read.send_replace(announced);
    }

    /// Resolves when a reading covers all announcements made so far.
    pub(super) async fn wait_until_read(&self) {
        let announced = self.announced_count();
        // Cannot fail, since `self` holds the sender.
        let _ = self.read.subscribe().wait_for(|read| *read >= announced).await;
    }

    /// Waits until a list is marked as changed, and takes the marks.
    pub(super) async fn take(&self) -> ListKinds {
        loop {
            match self.kinds.swap(0, Ordering::Relaxed) {
                0 => self.marked.notified().await,
                kinds => return ListKinds(kinds),
            }
        }
    }
}
