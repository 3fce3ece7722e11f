//! The replicas that share a store: each tells the others at intervals that it is there.

use std::{
    cmp::Reverse,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    SharedStores, Store as _, StoreHealth,
    held_hosts::{HeldHosts, HostNumber},
    known_replicas::{BEAT_TIMEOUT, KnownReplicas, MAX_REPLICAS, Replica},
    redis_store::RedisStore,
    replica_news::ReplicaNews,
};
use crate::base::{Lock, SealingKeys, now_seconds, run_blocking};

/// Interval at which a replica tells that it is there, and reads which others are.
const BEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum interval between two early records.
const MIN_EARLY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum age of a record that is believed, in seconds. Clocks of replicas may differ by 2 min.
const MAX_RECORD_AGE: u64 = 127;
/// Maximum number of replicas that are asked whether they have stood in for this one. One that has
/// may not be the first any more, because others have come or gone.
const MAX_STAND_INS: usize = 3;
/// Maximum size of what a replica tells, in bytes.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// The reason for which a replica tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// It is still there.
    Regular,
    /// The others should read the record at once.
    News,
}

/// The replica that handles something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Here,
    At(Arc<Replica>),
}

/// The state of this replica that the others are told of, and that they change.
pub(crate) trait SharedState: Send + Sync {
    /// Returns the names of the offers that hosts have loaded here for all hosts.
    fn loads(&self) -> Vec<String>;

    /// Loads offers that hosts have loaded at other replicas.
    fn adopt_loads(&self, names: &[String]);

    /// Notes that the others may have taken this replica for gone.
    fn note_absence(&self);

    /// Notes that another replica has stored the catalog of a server. Returns at once.
    fn note_stored_catalog(&self, server: &str);
}

/// This replica, and the others as they were last seen.
///
/// The list is read from the store at intervals, and not on the path of a request; one record is,
/// if a request names a replica that is not in the list. While the store cannot be used, the last
/// list is kept.
#[derive(Debug)]
pub(crate) struct Replicas {
    mark: String,
    url: Option<String>,
    beats: AtomicU64,
    store: RedisStore,
    others: Lock<KnownReplicas>,
    /// The hosts for which this replica keeps something.
    hosts: HeldHosts,
    /// There is something that the others should be told soon.
    news: Notify,
}

impl Replicas {
    /// Returns the replicas of a store, of which this process is one.
    pub(crate) fn new(stores: &SharedStores, mark: String, url: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            mark,
            url,
            beats: AtomicU64::new(0),
            store: stores.replicas(),
            others: Lock::new(KnownReplicas::new(Instant::now())),
            hosts: HeldHosts::default(),
            news: Notify::new(),
        })
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) fn health(&self) -> &Arc<StoreHealth> {
        self.store.health()
    }

    /// Returns the number of replicas, of which this is one.
    pub(crate) fn count(&self) -> usize {
        self.others.lock().count() + 1
    }

    /// Returns the keys that all replicas have.
    pub(crate) fn keys(&self) -> &SealingKeys {
        self.store.keys()
    }

    /// Tells the others at intervals of this replica, until `stop` is cancelled, and then that it
    /// is gone.
    pub(crate) async fn run(self: Arc<Self>, state: impl SharedState, stop: CancellationToken) {
        let mut changes = self.store.listen();
        // A replica that has just started is news.
        let (mut occasion, mut last_early) = (Occasion::News, None);
        let mut last_told = Instant::now();
        loop {
            let began = Instant::now();
            if began.duration_since(last_told) > BEAT_TIMEOUT {
                state.note_absence();
                occasion = Occasion::News;
            }
            if self.clone().tell(state.loads(), occasion).await {
                last_told = began;
                state.adopt_loads(&self.loads_of_others());
            }
            let next = async {
                let due = Instant::now() + BEAT_INTERVAL;
                loop {
                    tokio::select! {
                        () = tokio::time::sleep_until(due) => return Occasion::Regular,
                        () = self.wait_for_news(&mut last_early) => return Occasion::News,
                        Some(message) = changes.recv() => self.hear(&message, &state).await,
                    }
                }
            };
            match stop.run_until_cancelled(next).await {
                Some(next) => occasion = next,
                None => break,
            }
        }
        let this = self.clone();
        let _ = run_blocking(move || this.store.delete(&this.mark)).await;
    }

    async fn hear(self: &Arc<Self>, message: &str, state: &impl SharedState) {
        match ReplicaNews::parse(message) {
            ReplicaNews::Record { mark } => {
                if self.read_again(mark).await {
                    state.adopt_loads(&self.loads_of_others());
                }
            }
            ReplicaNews::Catalog { mark, server } => {
                if mark != self.mark {
                    state.note_stored_catalog(server);
                }
            }
        }
    }

    /// Tells the others that this replica has stored the catalog of a server.
    pub(crate) fn tell_of_catalog(&self, server: &str) {
        self.store.publish(&ReplicaNews::Catalog { mark: &self.mark, server }.encode());
    }

    /// Schedules an early record, so that the others learn of a change here.
    pub(crate) fn tell_soon(&self) {
        self.news.notify_one();
    }

    /// Waits until there is something to tell before the regular time.
    async fn wait_for_news(&self, last: &mut Option<Instant>) {
        if let Some(last) = *last {
            tokio::time::sleep(MIN_EARLY_INTERVAL.saturating_sub(last.elapsed())).await;
        }
        self.news.notified().await;
        *last = Some(Instant::now());
    }

    /// Returns the names of the offers that hosts have loaded for all hosts at other replicas.
    pub(crate) fn loads_of_others(&self) -> Vec<String> {
        let others = self.others.lock();
        others.reachable().flat_map(|other| other.loads.iter().cloned()).collect()
    }

    /// Reads the record of a replica that has told something new. Returns whether there is one.
    async fn read_again(self: &Arc<Self>, mark: &str) -> bool {
        if mark == self.mark {
            return false;
        }
        let Some(found) = self.fetch(mark).await else { return false };
        self.others.lock().renew(found, Instant::now());
        true
    }

    /// Tells the others of this replica, and reads which others there are. Returns whether that has
    /// succeeded; a store that cannot be used has been logged.
    pub(crate) async fn tell(self: Arc<Self>, loads: Vec<String>, occasion: Occasion) -> bool {
        let telling = run_blocking(move || {
            self.beat(loads)?;
            if occasion == Occasion::News {
                self.store.publish(&ReplicaNews::Record { mark: &self.mark }.encode());
            }
            io::Result::Ok(())
        });
        matches!(telling.await, Some(Ok(())))
    }

    /// Writes the record of this replica, and reads those of the others.
    fn beat(&self, loads: Vec<String>) -> io::Result<()> {
        let beat = self.beats.fetch_add(1, Ordering::Relaxed);
        let (mark, url) = (self.mark.clone(), self.url.clone());
        let hosts = self.hosts.told();
        let own = Replica { mark, url, beat, at: now_seconds(), loads, hosts };
        let record = serde_json::to_vec(&own)?;
        self.store.put_for(&self.mark, &record, BEAT_TIMEOUT)?;
        let mut others = Vec::new();
        for name in self.store.present_names()?.into_iter().take(MAX_REPLICAS) {
            if name == self.mark {
                continue;
            }
            others.extend(self.read(&name));
        }
        self.others.lock().replace(others, Instant::now());
        Ok(())
    }

    /// Returns the record of a replica. `None` if there is none that can be read: it may be of
    /// another version, or has just expired.
    fn read(&self, mark: &str) -> Option<Replica> {
        let record = self.store.get(mark, MAX_RECORD_BYTES).ok()??;
        let other: Replica = serde_json::from_slice(&record).ok()?;
        let is_current = now_seconds().abs_diff(other.at) <= MAX_RECORD_AGE;
        (is_current && other.mark == mark).then_some(other)
    }

    /// As [`Self::read`], without blocking the caller.
    async fn fetch(self: &Arc<Self>, mark: &str) -> Option<Replica> {
        let (this, mark) = (self.clone(), mark.to_owned());
        run_blocking(move || this.read(&mark)).await.flatten()
    }

    /// Learns of the replica with this mark, if it has started since the last beat. A mark without
    /// a record is looked up once between two beats.
    pub(crate) async fn look_up(self: &Arc<Self>, mark: &str) {
        let is_wanted = mark != self.mark && self.others.lock().may_look_up(mark);
        if !is_wanted || self.health().outage().is_some() {
            return;
        }
        match self.fetch(mark).await {
            Some(found) => self.others.lock().add(found, Instant::now()),
            None => self.others.lock().note_missing(mark),
        }
    }

    /// Notes that a replica cannot be connected. It gets no request until it tells again that it is
    /// there. It may still answer those that it has, before it ends.
    pub(crate) fn note_unreachable(&self, replica: &Replica) {
        self.others.lock().note_unreachable(replica);
    }

    /// Returns whether a replica has told lately that it is there.
    pub(crate) fn is_there(&self, mark: &str) -> bool {
        self.others.lock().contains(mark)
    }

    /// Returns the first other replica that can be connected and whose mark fits.
    pub(crate) fn find(&self, fits: impl Fn(&str) -> bool) -> Option<Arc<Replica>> {
        self.addressable().into_iter().find(|other| fits(&other.mark))
    }

    /// Returns the home of a host for which something is kept: the replica that has it, or else one
    /// on which all replicas agree.
    pub(crate) fn home_of_host(&self, host: HostNumber) -> Home {
        let key = host.to_be_bytes();
        let having = self.addressable().into_iter().filter(|other| other.hosts.contains(&host));
        // Several replicas have served the host if one of them could not be reached for some time.
        let other = having.max_by_key(|other| weight(&other.mark, &key));
        match (other, self.hosts.has(host)) {
            (Some(other), true) if weight(&other.mark, &key) < weight(&self.mark, &key) => {
                Home::Here
            }
            (Some(other), _) => Home::At(other),
            (None, true) => Home::Here,
            (None, false) => self.agreed_home(&key),
        }
    }

    /// Notes that this replica keeps something for a host.
    pub(crate) fn keep_host(&self, host: HostNumber) {
        if self.hosts.add(host) {
            self.tell_soon();
        }
    }

    /// Returns whether this replica keeps something for a host.
    pub(crate) fn keeps_host(&self, host: HostNumber) -> bool {
        self.hosts.has(host)
    }

    /// Notes that this replica keeps nothing for a host any more.
    pub(crate) fn forget_host(&self, host: HostNumber) {
        self.hosts.remove(host);
    }

    /// Returns the home of something that the replica `mark` has made, and that `key` names: that
    /// replica, or while it is gone another one, on which all replicas agree.
    pub(crate) fn home_of(&self, mark: &str, key: &[u8]) -> Home {
        if mark == self.mark {
            return Home::Here;
        }
        if let Some(other) = self.find(|other| other == mark) {
            return Home::At(other);
        }
        self.agreed_home(key)
    }

    /// Returns the replica on which all agree for a key.
    fn agreed_home(&self, key: &[u8]) -> Home {
        let best = self.addressable().into_iter().max_by_key(|other| weight(&other.mark, key));
        best.filter(|best| weight(&best.mark, key) > weight(&self.mark, key))
            .map_or(Home::Here, Home::At)
    }

    /// Returns the replicas that may have stood in for this one, for a key: the one on which the
    /// others agree while this one is gone, and those that would be the next.
    pub(crate) fn stand_ins(&self, key: &[u8]) -> Vec<Arc<Replica>> {
        let mut others = self.addressable();
        others.sort_by_cached_key(|other| Reverse(weight(&other.mark, key)));
        others.truncate(MAX_STAND_INS);
        others
    }

    /// Returns the others that can be sent a request. They are compared without the lock.
    fn addressable(&self) -> Vec<Arc<Replica>> {
        self.others.lock().addressable().cloned().collect()
    }
}

/// Returns the weight of a replica for a key (rendezvous hashing): the one with the highest weight
/// is chosen, so that the others keep what they have when one of them goes.
fn weight(mark: &str, key: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(mark).chain_update([0]).chain_update(key).finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::store::redis_server::RedisServer;

    #[tokio::test]
    async fn record_that_a_replica_tells_of_is_read_at_once() {
        let Some(server) = RedisServer::start() else { return };
        let replica = |mark: &str| Replicas::new(&server.stores(), mark.to_owned(), None);
        let (teller, listener) = (replica("t"), replica("l"));
        let stores = server.stores();
        let mut changes = stores.replicas().listen();
        let telling = async {
            // It may have just begun to listen.
            loop {
                assert!(teller.clone().tell(vec!["s".to_owned()], Occasion::News).await);
            }
        };
        let mark = tokio::select! {
            () = telling => unreachable!("it has no end"),
            mark = changes.recv() => mark.unwrap(),
            () = tokio::time::sleep(Duration::from_mins(1)) => panic!("nothing was heard"),
        };
        assert_eq!(listener.count(), 1);
        assert!(listener.read_again(&mark).await && !listener.read_again("l").await);
        assert_eq!((listener.count(), listener.loads_of_others()), (2, vec!["s".to_owned()]));
    }

    #[test]
    fn key_moves_only_when_its_replica_goes() {
        let marks = ["a", "b", "c", "d"];
        let best = |among: &[&'static str], key: u32| {
            *among.iter().max_by_key(|mark| weight(mark, &key.to_be_bytes())).unwrap()
        };
        let mut counts = HashMap::new();
        for key in 0..4000 {
            let chosen = best(&marks, key);
            *counts.entry(chosen).or_insert(0) += 1;
            let without_d = best(&marks[..3], key);
            assert!(chosen == "d" || chosen == without_d);
        }
        assert!(counts.values().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
