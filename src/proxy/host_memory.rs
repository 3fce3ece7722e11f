//! The state that a host would lose with its replica: its own loads, and the results that were cut
//! for it. The shared store keeps it for the other replicas. This part does not know the fleet.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, OnceCell, Semaphore};

use super::Principal;
use crate::{
    base::{Lock, hex},
    store::HostStores,
};

/// Maximum length of the text of a result that is kept, in bytes.
const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// Maximum number of results that are written at a time.
const MAX_RESULT_WRITES: usize = 2;

/// The name by which all replicas know a host. It is a hash: names in a store can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostName(String);

impl HostName {
    /// Returns the name of the host that a digest stands for.
    pub(crate) fn of(digest: [u8; 32]) -> Self {
        Self(hex(&digest))
    }

    /// Returns the name under which a result of the host is kept. No other host gets it.
    fn of_result(&self, id: &str) -> String {
        hex(&Sha256::new().chain_update(&self.0).chain_update(id).finalize())
    }
}

/// The state of a host, without its results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HostRecord {
    /// The names of the offers that the host has loaded for itself.
    #[serde(default)]
    pub(super) loads: BTreeSet<String>,
    /// True if a result was cut for the host, so that its list has `read_result`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_cut_results: bool,
}

/// The hosts of this replica whose state is kept.
#[derive(Debug)]
pub(super) struct HostMemory {
    /// `None` without a shared store: nothing is kept.
    stores: Option<HostStores>,
    hosts: Lock<HashMap<Principal, KnownHost>>,
    /// Notifies the writer of a record that has changed.
    changed: Arc<Notify>,
    result_writes: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
struct KnownHost {
    name: HostName,
    /// Set when the host has the state that other replicas have kept.
    recalled: Arc<OnceCell<()>>,
    record: RecordState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordState {
    /// The host has nothing that is kept.
    Empty,
    Stored,
    /// The record has changed since it was stored, or has to be stored again before it expires.
    Unsaved,
}

/// The place at which the state of one host is kept. Its methods block.
#[derive(Clone, Debug)]
pub(super) struct HostPlace {
    stores: HostStores,
    name: HostName,
}

impl HostMemory {
    pub(super) fn new(stores: Option<HostStores>) -> Self {
        Self {
            stores,
            hosts: Lock::default(),
            changed: Arc::default(),
            result_writes: Arc::new(Semaphore::new(MAX_RESULT_WRITES)),
        }
    }

    /// Returns the notice of records that have changed, for the writer; `None` without a shared
    /// store.
    pub(super) fn changed(&self) -> Option<Arc<Notify>> {
        self.stores.as_ref().map(|_| self.changed.clone())
    }

    /// Returns the permits to write results.
    pub(super) fn result_writes(&self) -> Arc<Semaphore> {
        self.result_writes.clone()
    }

    /// Adds a new host. No other replica has served it.
    pub(super) fn add(&self, principal: Principal, name: impl FnOnce() -> HostName) {
        if self.stores.is_some() {
            let recalled = Arc::new(OnceCell::new_with(Some(())));
            let known = KnownHost { name: name(), recalled, record: RecordState::Empty };
            self.hosts.lock().insert(principal, known);
        }
    }

    /// Adds a host that another replica may have served, unless it is known. Returns the cell to
    /// set when the host has its state; `None` without a shared store.
    pub(super) fn recall(
        &self,
        principal: Principal,
        name: impl FnOnce() -> HostName,
    ) -> Option<Arc<OnceCell<()>>> {
        self.stores.as_ref()?;
        let mut hosts = self.hosts.lock();
        let new = || {
            let (name, recalled) = (name(), Arc::default());
            KnownHost { name, recalled, record: RecordState::Empty }
        };
        Some(hosts.entry(principal).or_insert_with(new).recalled.clone())
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.hosts.lock().remove(&principal);
    }

    /// Returns the place of a host's state; `None` if it is not kept.
    pub(super) fn place(&self, principal: Principal) -> Option<HostPlace> {
        let stores = self.stores.clone()?;
        let name = self.hosts.lock().get(&principal)?.name.clone();
        Some(HostPlace { stores, name })
    }

    /// Notes that the record of a host has changed, or could not be stored.
    pub(super) fn note_unsaved(&self, principal: Principal) {
        if let Some(known) = self.hosts.lock().get_mut(&principal) {
            known.record = RecordState::Unsaved;
            self.changed.notify_one();
        }
    }

    /// Returns a host whose record has to be stored, and takes it for stored.
    pub(super) fn take_unsaved(&self) -> Option<Principal> {
        let mut hosts = self.hosts.lock();
        let (principal, known) =
            hosts.iter_mut().find(|(_, known)| known.record == RecordState::Unsaved)?;
        known.record = RecordState::Stored;
        Some(*principal)
    }

    /// Has the state of all hosts read again.
    pub(super) fn recall_again(&self) {
        for known in self.hosts.lock().values_mut() {
            known.recalled = Arc::default();
        }
    }

    /// Has the state of a host read again.
    pub(super) fn recall_host_again(&self, host: Principal) {
        if let Some(known) = self.hosts.lock().get_mut(&host) {
            known.recalled = Arc::default();
        }
    }

    /// Has all records stored again, so that those of hosts in use do not expire.
    pub(super) fn renew(&self) {
        for known in self.hosts.lock().values_mut() {
            if known.record == RecordState::Stored {
                known.record = RecordState::Unsaved;
            }
        }
    }
}

impl HostPlace {
    /// Reads the record of the host.
    ///
    /// # Errors
    /// If the store cannot be used, or the record cannot be read.
    pub(super) fn record(&self) -> io::Result<HostRecord> {
        match self.stores.records.get(&self.name.0)? {
            Some(value) => Ok(serde_json::from_slice(&value)?),
            None => Ok(HostRecord::default()),
        }
    }

    /// Adds to the record of the host, and returns all of it.
    ///
    /// # Errors
    /// If the store cannot be used, or the record cannot be read or is too large.
    pub(super) fn add_to_record(&self, added: HostRecord) -> io::Result<HostRecord> {
        let mut record = self.record()?;
        record.loads.extend(added.loads);
        record.has_cut_results |= added.has_cut_results;
        self.stores.records.put(&self.name.0, &serde_json::to_vec(&record)?)?;
        Ok(record)
    }

    /// Removes the record of a host that has ended.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub(super) fn remove_record(&self) -> io::Result<()> {
        self.stores.records.remove(&self.name.0)
    }

    /// Returns the kept form of a result of the host; `None` if there is none.
    ///
    /// # Errors
    /// If the store cannot be used, or what is kept cannot be read.
    pub(super) fn result(&self, id: &str) -> io::Result<Option<Vec<u8>>> {
        self.stores.results.get(&self.name.of_result(id))
    }

    /// Keeps a result of the host.
    ///
    /// # Errors
    /// If the store cannot be used, or the result is too large.
    pub(super) fn write_result(&self, id: &str, result: &[u8]) -> io::Result<()> {
        self.stores.results.put(&self.name.of_result(id), result)
    }
}

/// Returns whether a result with a text of this length is kept.
pub(super) fn is_kept(bytes: usize) -> bool {
    bytes <= MAX_RESULT_BYTES
}
