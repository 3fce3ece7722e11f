//! The reference model of a server's lists: readings of changed and of expired lists.

use super::scenario::{Millis, Phased, REQUEST_TIMEOUT};

/// The shortest time between two readings, and between a wake and the first reading.
const READING_PAUSE: Millis = 100;
const WAKE_PAUSE: Millis = 50;
/// The shortest lifetime of a catalog of another run, and the delay after a failed reading.
const MIN_RECALLED_LIFETIME: Millis = 2000;
const RETRY_DELAY: Millis = 600_000;

#[derive(Debug)]
pub(super) struct ListsModel {
    /// The version that the server has now.
    version: u32,
    is_published: bool,
    /// True if a change was announced, or a reading is due, since the last reading began.
    is_stale: bool,
    reading: Option<Reading>,
    not_before: Millis,
    ttl: Option<Millis>,
    expires: Option<Millis>,
}

/// A reading in progress.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ends: Millis,
    end: ReadingEnd,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReadingEnd {
    Published,
    TimedOut,
    /// The server exits.
    Died,
}

impl ListsModel {
    pub(super) fn new(is_published: bool, ttl: Option<Millis>) -> Self {
        let (reading, expires) = (None, None);
        Self { version: 0, is_published, is_stale: false, reading, not_before: 0, ttl, expires }
    }

    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// Changes the lists at the server; `is_heard` if its announcement arrives.
    pub(super) fn change(&mut self, is_heard: bool) {
        self.version += 1;
        self.is_stale |= is_heard;
    }

    /// Notes that a connection has shown the lists.
    pub(super) fn fetched(&mut self, now: Millis) {
        self.is_published = true;
        self.expires = self.ttl.map(|ttl| now + ttl);
    }

    /// Notes a connection that has not shown the lists: they are read soon.
    pub(super) fn woken(&mut self, now: Millis) {
        self.not_before = now + WAKE_PAUSE;
        self.is_stale = true;
    }

    pub(super) fn recalled(&mut self, now: Millis) {
        self.is_published = true;
        self.expires = self.ttl.map(|ttl| now + ttl.max(MIN_RECALLED_LIFETIME));
    }

    /// Begins a reading on an open connection if one is due and none is in progress.
    pub(super) fn read(&mut self, now: Millis, lists: Phased) {
        if self.reading.is_some() || !std::mem::take(&mut self.is_stale) {
            return;
        }
        let begins = now.max(self.not_before);
        let (delay, end) = match lists {
            Phased::Takes(delay) => (delay, ReadingEnd::Published),
            Phased::Fails(delay, _) => (delay, ReadingEnd::Died),
            Phased::Hangs => (REQUEST_TIMEOUT, ReadingEnd::TimedOut),
        };
        self.reading = Some(Reading { ends: begins + delay, end });
    }

    /// Returns when the reading in progress ends.
    pub(super) fn reading_ends(&self) -> Option<Millis> {
        self.reading.map(|reading| reading.ends)
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    pub(super) fn finish_reading(&mut self, now: Millis) -> Option<ReadingEnd> {
        let end = self.reading.take()?.end;
        match end {
            ReadingEnd::Published => self.fetched(now),
            ReadingEnd::TimedOut => self.postpone(now),
            ReadingEnd::Died => return Some(end),
        }
        self.not_before = now + READING_PAUSE;
        Some(end)
    }

    pub(super) fn cancel_reading(&mut self, now: Millis) {
        self.reading = None;
        self.postpone(now);
    }

    /// Returns when the catalog expires.
    pub(super) fn expires(&self) -> Option<Millis> {
        self.expires
    }

    /// Notes that the catalog has expired. `is_awake`: the lists are read on the open connection.
    pub(super) fn expire(&mut self, is_awake: bool) {
        self.expires = None;
        self.is_stale |= is_awake;
    }

    /// Notes that lists were not read.
    pub(super) fn postpone(&mut self, now: Millis) {
        if self.is_published && self.expires.is_none() && self.ttl.is_some() {
            self.expires = Some(now + RETRY_DELAY);
        }
    }
}
