//! The other replicas, as they were last seen.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::held_hosts::HostNumber;
use crate::base::counted;

/// Time without a new record after which a replica is taken for gone.
pub(super) const BEAT_TIMEOUT: Duration = Duration::from_secs(7);
/// Maximum number of replicas that are read, the newest first.
pub(super) const MAX_REPLICAS: usize = 200;
/// Maximum number of marks that are looked up between two readings of all records.
const MAX_MISSING: usize = 1000;

/// A replica as it has told of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replica {
    /// A random text that no other process has.
    pub mark: String,
    /// The address at which other replicas reach it; `None` if they cannot.
    pub url: Option<String>,
    /// The number of the record, which increases.
    pub beat: u64,
    /// The time of the record, in seconds since 1970. Older records may have been put back.
    pub at: u64,
    /// The names of the offers that its hosts have loaded for all hosts.
    #[serde(default)]
    pub loads: Vec<String>,
    /// The hosts for which it keeps something.
    #[serde(default)]
    pub(super) hosts: BTreeSet<HostNumber>,
}

/// The replicas whose records were read, those that could not be connected, and the marks without a
/// record.
#[derive(Debug)]
pub(super) struct KnownReplicas {
    /// Each with the time at which a new record of it was last seen.
    seen: Vec<(Arc<Replica>, Instant)>,
    /// The beats of replicas that could not be connected, by their marks.
    unreachable: HashMap<String, u64>,
    /// The marks that were looked up since all records were last read, and have none.
    missing: HashSet<String>,
    /// The time at which all records were last read.
    last_read: Instant,
}

impl KnownReplicas {
    pub(super) fn new(now: Instant) -> Self {
        let (unreachable, missing) = (HashMap::new(), HashSet::new());
        Self { seen: Vec::new(), unreachable, missing, last_read: now }
    }

    pub(super) fn count(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether a replica has told lately that it is there.
    pub(super) fn contains(&self, mark: &str) -> bool {
        self.seen.iter().any(|(other, _)| other.mark == mark)
    }

    /// Returns those that could be connected, as far as was tried.
    pub(super) fn reachable(&self) -> impl Iterator<Item = &Arc<Replica>> {
        let all = self.seen.iter().map(|(other, _)| other);
        all.filter(|other| !self.unreachable.contains_key(&other.mark))
    }

    /// Returns those that can be sent a request.
    pub(super) fn addressable(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.reachable().filter(|other| other.url.is_some())
    }

    /// Takes over all records. A replica without a record stays for as long as its record would
    /// have: the store may have been emptied. If the store could not be read for as long, the time
    /// begins again: the records of all have expired, and each replica has to write its own.
    pub(super) fn replace(&mut self, read: Vec<Replica>, now: Instant) {
        let was = self.count();
        if now.duration_since(self.last_read) >= BEAT_TIMEOUT {
            self.seen.iter_mut().for_each(|(_, seen)| *seen = now);
        }
        self.last_read = now;
        self.missing.clear();
        self.seen.retain(|(other, seen)| {
            let is_read = read.iter().any(|it| it.mark == other.mark);
            !is_read && now.duration_since(*seen) < BEAT_TIMEOUT
        });
        self.seen.extend(read.into_iter().map(|it| (Arc::new(it), now)));
        let seen = &self.seen;
        self.unreachable.retain(|mark, beat| {
            seen.iter().any(|(other, _)| other.mark == *mark && other.beat <= *beat)
        });
        self.log_change_from(was);
    }

    /// Takes over a new record of a replica.
    pub(super) fn renew(&mut self, record: Replica, now: Instant) {
        let was = self.count();
        if self.unreachable.get(&record.mark).is_some_and(|beat| record.beat > *beat) {
            self.unreachable.remove(&record.mark);
        }
        self.seen.retain(|(other, _)| other.mark != record.mark);
        if self.seen.len() < MAX_REPLICAS {
            self.seen.push((Arc::new(record), now));
        }
        self.log_change_from(was);
    }

    /// Returns whether the record of a replica that is not known should be looked up.
    pub(super) fn may_look_up(&self, mark: &str) -> bool {
        let is_known = self.addressable().any(|other| other.mark == mark);
        !is_known && !self.missing.contains(mark) && self.missing.len() < MAX_MISSING
    }

    /// Adds a replica whose record was looked up, unless that is as old as a failure to connect it.
    pub(super) fn add(&mut self, record: Replica, now: Instant) {
        let is_older = |beat: &u64| record.beat <= *beat;
        let was = self.count();
        // The regular reading may have been faster.
        if !self.unreachable.get(&record.mark).is_some_and(is_older) && !self.contains(&record.mark)
        {
            self.seen.push((Arc::new(record), now));
        }
        self.log_change_from(was);
    }

    /// Notes that a mark that was looked up has no record.
    pub(super) fn note_missing(&mut self, mark: &str) {
        self.missing.insert(mark.to_owned());
    }

    /// Notes that a replica cannot be connected, until it has a newer record.
    pub(super) fn note_unreachable(&mut self, replica: &Replica) {
        self.unreachable.insert(replica.mark.clone(), replica.beat);
    }

    fn log_change_from(&self, was: usize) {
        if self.count() != was {
            tracing::info!("sees {}", counted(self.count(), "other replica"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(mark: &str, beat: u64) -> Replica {
        let (mark, url) = (mark.to_owned(), Some("http://127.0.0.1:1".to_owned()));
        Replica { mark, url, beat, at: 0, loads: Vec::new(), hosts: BTreeSet::new() }
    }

    #[test]
    fn others_stay_while_no_record_can_be_read_and_go_when_theirs_stay_away() {
        let mut now = Instant::now();
        let mut known = KnownReplicas::new(now);
        known.replace(vec![record("other", 0)], now);
        now += Duration::from_mins(1);
        known.replace(Vec::new(), now);
        assert_eq!(known.count(), 1, "the store was away, and the records have expired");
        now += BEAT_TIMEOUT / 2;
        known.replace(Vec::new(), now);
        assert_eq!(known.count(), 1, "its time is not over");
        now += BEAT_TIMEOUT / 2;
        known.replace(Vec::new(), now);
        assert_eq!(known.count(), 0);
    }

    #[test]
    fn unreachable_replica_gets_no_request_until_it_tells_again_that_it_is_there() {
        let now = Instant::now();
        let mut known = KnownReplicas::new(now);
        known.replace(vec![record("other", 1)], now);
        known.note_unreachable(&record("other", 1));
        for (beat, expected) in [(1, 0), (2, 1)] {
            known.replace(vec![record("other", beat)], now);
            assert_eq!((known.addressable().count(), known.count()), (expected, 1));
        }
        known.note_unreachable(&record("other", 2));
        for (beat, expected) in [(2, 0), (3, 1)] {
            known.renew(record("other", beat), now);
            assert_eq!((known.addressable().count(), known.count()), (expected, 1));
        }
    }

    #[test]
    fn mark_without_a_record_is_looked_up_once_between_two_readings() {
        let now = Instant::now();
        let mut known = KnownReplicas::new(now);
        assert!(known.may_look_up("new"));
        known.note_missing("new");
        assert!(!known.may_look_up("new"));
        known.replace(Vec::new(), now);
        assert!(known.may_look_up("new"));
        known.add(record("new", 0), now);
        assert!(!known.may_look_up("new") && known.contains("new"));
    }
}
