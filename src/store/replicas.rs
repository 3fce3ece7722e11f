//! The replicas that share a store: each tells the others at intervals that it is there.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{SharedStores, Store as _, StoreHealth, redis_store::RedisStore};
use crate::base::{Lock, SealingKeys, counted, run_blocking};

/// Interval at which a replica tells that it is there, and reads which others are.
const BEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Time after which a replica that has not told so is gone.
const BEAT_TIMEOUT: Duration = Duration::from_secs(7);
/// Maximum size of what a replica tells, in bytes.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

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
    /// The names of the offers that its hosts have loaded for all hosts.
    #[serde(default)]
    pub loads: Vec<String>,
}

/// The replica that handles something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Here,
    At(Replica),
}

/// This replica, and the others as they were last seen.
///
/// The list is read from the store at intervals, and never on the path of a request. While the
/// store cannot be used, the last list is kept.
#[derive(Debug)]
pub(crate) struct Replicas {
    mark: String,
    url: Option<String>,
    beats: AtomicU64,
    store: RedisStore,
    health: Arc<StoreHealth>,
    keys: SealingKeys,
    others: Lock<Arc<[Replica]>>,
    /// The beats of replicas that could not be connected, by their marks.
    unreachable: Lock<HashMap<String, u64>>,
}

impl Replicas {
    /// Returns the replicas of a store, of which this process is one.
    pub(crate) fn new(stores: &SharedStores, mark: String, url: Option<String>) -> Arc<Self> {
        let (store, keys) = stores.replicas();
        Arc::new(Self {
            mark,
            url,
            beats: AtomicU64::new(0),
            store,
            health: stores.health().clone(),
            keys,
            others: Lock::new(Arc::new([])),
            unreachable: Lock::default(),
        })
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) fn health(&self) -> &Arc<StoreHealth> {
        &self.health
    }

    /// Returns the number of replicas, of which this is one.
    pub(crate) fn count(&self) -> usize {
        self.others().len() + 1
    }

    /// Returns the keys that all replicas have.
    pub(crate) fn keys(&self) -> &SealingKeys {
        &self.keys
    }

    /// Tells the others at intervals of this replica, until `stop` is cancelled, and then that it
    /// is gone. `loads` returns what hosts have loaded here; `adopt` gets what they have loaded at
    /// the others.
    pub(crate) async fn run(
        self: Arc<Self>,
        loads: impl Fn() -> Vec<String>,
        adopt: impl Fn(&[String]),
        stop: CancellationToken,
    ) {
        loop {
            let (this, own_loads) = (self.clone(), loads());
            // A store that cannot be used has been logged.
            let beaten = run_blocking(move || this.beat(own_loads)).await;
            if let Some(Ok(())) = beaten {
                let others = self.others();
                let loaded: Vec<String> =
                    others.iter().flat_map(|other| other.loads.iter().cloned()).collect();
                adopt(&loaded);
            }
            if stop.run_until_cancelled(tokio::time::sleep(BEAT_INTERVAL)).await.is_none() {
                break;
            }
        }
        let this = self.clone();
        let _ = run_blocking(move || this.store.remove(&this.mark)).await;
    }

    /// Writes the record of this replica, and reads those of the others.
    fn beat(&self, loads: Vec<String>) -> io::Result<()> {
        let beat = self.beats.fetch_add(1, Ordering::Relaxed);
        let own = Replica { mark: self.mark.clone(), url: self.url.clone(), beat, loads };
        let record = serde_json::to_vec(&own)?;
        self.store.put_for(&self.mark, &record, BEAT_TIMEOUT)?;
        let mut others = Vec::new();
        for name in self.store.present_names()? {
            if name == self.mark {
                continue;
            }
            // A record that cannot be read is of another version, or has just expired.
            let Ok(Some(record)) = self.store.get(&name, MAX_RECORD_BYTES) else { continue };
            if let Ok(other) = serde_json::from_slice::<Replica>(&record) {
                others.push(other);
            }
        }
        self.note(others);
        Ok(())
    }

    fn note(&self, others: Vec<Replica>) {
        let mut unreachable = self.unreachable.lock();
        unreachable.retain(|mark, beat| {
            others.iter().any(|other| other.mark == *mark && other.beat <= *beat)
        });
        let reachable = others.into_iter().filter(|other| !unreachable.contains_key(&other.mark));
        let reachable: Arc<[Replica]> = reachable.collect();
        drop(unreachable);
        let count = reachable.len();
        let was = std::mem::replace(&mut *self.others.lock(), reachable).len();
        if count != was {
            tracing::info!("sees {}", counted(count, "other replica"));
        }
    }

    fn others(&self) -> Arc<[Replica]> {
        self.others.lock().clone()
    }

    /// Notes that a replica cannot be connected. It is left out until it tells again that it is
    /// there.
    pub(crate) fn note_unreachable(&self, replica: &Replica) {
        self.unreachable.lock().insert(replica.mark.clone(), replica.beat);
        let mut others = self.others.lock();
        *others = others.iter().filter(|other| other.mark != replica.mark).cloned().collect();
    }

    /// Returns the first other replica that is there and whose mark fits.
    pub(crate) fn find(&self, fits: impl Fn(&str) -> bool) -> Option<Replica> {
        let others = self.others();
        others.iter().find(|other| other.url.is_some() && fits(&other.mark)).cloned()
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
        let others = self.others();
        let reachable = others.iter().filter(|other| other.url.is_some());
        let best = reachable.max_by_key(|other| weight(&other.mark, key));
        match best.filter(|best| weight(&best.mark, key) > weight(&self.mark, key)) {
            Some(best) => Home::At(best.clone()),
            None => Home::Here,
        }
    }
}

/// Returns the weight of a replica for a key (rendezvous hashing): the one with the highest weight
/// is chosen, so that the others keep what they have when one of them goes.
fn weight(mark: &str, key: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(mark).chain_update([0]).chain_update(key).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
