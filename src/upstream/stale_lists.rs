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

/// The numbers of announcements and of marks that a reading of the lists covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadingCover {
    announced: u64,
    marked: u64,
}

/// A reading of the lists that has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    cover: ReadingCover,
    has_failed: bool,
}

/// The lists that a server has announced as changed, or that may have changed while it slept. A
/// burst of announcements counts once.
#[derive(Default)]
pub(super) struct StaleLists {
    kinds: AtomicU8,
    marked: Notify,
    announced: AtomicU64,
    marked_count: AtomicU64,
    last_reading: watch::Sender<Reading>,
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

    /// Marks lists that have to be read again.
    pub(super) fn mark(&self, kinds: ListKinds) {
        self.marked_count.fetch_add(1, Ordering::Relaxed);
        self.kinds.fetch_or(kinds.0, Ordering::Relaxed);
        self.marked.notify_one();
    }

    /// Returns what a reading that begins now covers.
    pub(super) fn cover(&self) -> ReadingCover {
        ReadingCover {
            announced: self.announced.load(Ordering::Relaxed),
            marked: self.marked_count.load(Ordering::Relaxed),
        }
    }

    /// Returns whether a reading covers announcements that no earlier one does.
    pub(super) fn is_announced(&self, cover: ReadingCover) -> bool {
        cover.announced > self.last_reading.borrow().cover.announced
    }

    /// Tells waiting tasks that a reading has ended.
    pub(super) fn note_read(&self, cover: ReadingCover, has_failed: bool) {
        self.last_reading.send_replace(Reading { cover, has_failed });
    }

    /// Resolves when a reading covers all announcements made so far.
    pub(super) async fn wait_until_read(&self) {
        let wanted = self.cover().announced;
        // Cannot fail, since `self` holds the sender.
        let mut readings = self.last_reading.subscribe();
        let _ = readings.wait_for(|reading| reading.cover.announced >= wanted).await;
    }

    /// Resolves when a reading covers all marks made so far, also that of a start after a sleep.
    /// Returns whether it has succeeded.
    pub(super) async fn wait_until_current(&self) -> bool {
        let wanted = self.cover().marked;
        let covers = |reading: &Reading| reading.cover.marked >= wanted;
        let last = *self.last_reading.borrow();
        if covers(&last) {
            return !last.has_failed;
        }
        let mut readings = self.last_reading.subscribe();
        let read = readings.wait_for(covers).await;
        read.is_ok_and(|reading| !reading.has_failed)
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
