//! Catalogs that outlive the process: one stored value for each server, named by its
//! [`CatalogKey`].
//!
//! Several processes use the same store at once. A process that changes a value holds the lease of
//! all catalogs, so that no approval is lost.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use super::{
    CatalogKey, Digests, Inventory, Pins, Record, RecordError, ServerCatalog, StoredServer,
    definition_change::{DefinitionChange, changes, keep_former},
};
use crate::{
    base::Lock,
    config::ServerConfig,
    store::{PruneLimits, STORE_LEASE, Store, lease_blocking},
};

/// The extension of a stored catalog.
const CATALOG: &str = "catalog";
/// The extension of a stored catalog that could not be read.
const DAMAGED: &str = "damaged";
/// The extension of an empty value that records that a server hung while its catalog was fetched.
const HUNG: &str = "hung";
/// Enough for the catalogs of some thousand servers, each in several configs.
const LIMITS: PruneLimits = PruneLimits {
    extensions: &[CATALOG, DAMAGED, HUNG],
    max_values: 10_000,
    max_total_bytes: 1 << 30,
};
/// Maximum size of a stored catalog, in bytes. Larger catalogs are not stored.
const MAX_CATALOG_BYTES: usize = 16 * 1024 * 1024;
/// Number of new catalogs after which the oldest are removed.
const PRUNE_INTERVAL: usize = 100;
/// Maximum number of records of one server, for hosts that declare different capabilities.
const MAX_RECORDS: usize = 4;

/// The stored catalogs.
#[derive(Clone, Debug)]
pub struct Cache {
    store: Arc<dyn Store>,
    /// Number of catalogs that this process has added.
    added: Arc<AtomicUsize>,
    /// The names of the catalogs that could not be read the last time, which has been logged.
    unreadable: Arc<Lock<HashSet<String>>>,
}

/// The reason why a catalog cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cannot use {place}: {cause}")]
    Io { place: String, cause: io::Error },
    #[error("cannot read {place}: {reason}")]
    Unreadable { place: String, reason: RecordError },
}

impl Cache {
    /// Keeps catalogs in a store.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, added: Arc::default(), unreadable: Arc::default() }
    }

    /// Reads a record of a server: one for the same declared capabilities, or else one for a
    /// superset of them, or else the newest. With `declared: None` the newest is returned.
    pub fn read(&self, key: &CatalogKey, declared: Option<&[String]>) -> Option<Record> {
        Self::best(self.records(key), declared)
    }

    /// Returns all records of a server, the newest first; one for each set of declared
    /// capabilities.
    pub fn records(&self, key: &CatalogKey) -> Vec<Record> {
        self.stored(key).records
    }

    /// Selects the record that [`Cache::read`] returns.
    pub fn best(mut records: Vec<Record>, declared: Option<&[String]>) -> Option<Record> {
        let best = declared.and_then(|declared| {
            let exact = records.iter().position(|record| record.is_for(declared));
            exact.or_else(|| records.iter().position(|record| record.covers(declared)))
        });
        let best = best.unwrap_or(0);
        (best < records.len()).then(|| records.swap_remove(best))
    }

    /// Returns the newest record of a server with the inventory that results from it.
    pub fn last(&self, config: &ServerConfig) -> Option<(Record, Inventory)> {
        let StoredServer { records, pins, .. } = self.stored(&CatalogKey::of(config)?);
        let last = records.into_iter().next()?;
        let digests = Digests::of(&last.catalog);
        let changed = pins.suspicious(config.settings.pin, &digests);
        let inventory = Inventory::of(config, &last.catalog, &changed);
        Some((last, inventory))
    }

    /// Returns the digests of a server's tools as they were first seen and as they were approved
    /// later.
    pub fn pins(&self, key: &CatalogKey) -> Pins {
        self.stored(key).pins
    }

    /// Reads everything that is stored about a server. An unreadable file is logged once, and
    /// its pins count as lost.
    pub fn stored(&self, key: &CatalogKey) -> StoredServer {
        let loaded = self.load(key);
        let name = key.name(CATALOG);
        if loaded.is_ok() {
            self.unreadable.lock().remove(&name);
        }
        loaded.unwrap_or_else(|error| {
            if self.unreadable.lock().insert(name) {
                tracing::warn!(%error, "cannot read a stored catalog");
            }
            StoredServer { pins: Pins::lost(), ..StoredServer::default() }
        })
    }

    fn load(&self, key: &CatalogKey) -> Result<StoredServer, CacheError> {
        let name = key.name(CATALOG);
        let place = || self.store.describe(&name);
        // A build with a larger limit may have stored the catalog.
        let stored = match self.store.get(&name, 4 * MAX_CATALOG_BYTES as u64) {
            Ok(Some(stored)) => stored,
            Ok(None) => {
                // A damaged catalog was set aside, and the server has not been stored again since.
                let was_damaged = self.store.exists(&key.name(DAMAGED));
                let was_damaged = was_damaged.unwrap_or(true);
                let pins = if was_damaged { Pins::lost() } else { Pins::default() };
                return Ok(StoredServer { pins, ..StoredServer::default() });
            }
            // The path is a directory or a pipe, or the file is far too large.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge
                ) =>
            {
                return Err(CacheError::Unreadable {
                    place: place(),
                    reason: RecordError::Damaged,
                });
            }
            Err(cause) => return Err(CacheError::Io { place: place(), cause }),
        };
        StoredServer::decode(stored)
            .map_err(|reason| CacheError::Unreadable { place: place(), reason })
    }

    /// Stores a catalog that has just been fetched, and returns the names of the tools whose
    /// definitions have changed. The pins from the file and the pins `seen` by this process are
    /// preserved.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn learn(
        &self,
        key: &CatalogKey,
        server: &str,
        catalog: &ServerCatalog,
        seen: &Pins,
    ) -> Result<BTreeSet<String>, CacheError> {
        let digests = Digests::of(catalog);
        self.change(key, |StoredServer { records, pins, former }| {
            let is_replaced = |record: &Record| record.is_for(&catalog.discovery.declared);
            let replaced: Vec<Record> =
                records.extract_if(.., |record| is_replaced(record)).collect();
            let (server, catalog) = (server.to_owned(), catalog.clone());
            pins.add_missing(seen);
            pins.see(&digests);
            let changed = pins.changed(&digests);
            for old in &replaced {
                keep_former(former, &old.catalog, &catalog, pins);
            }
            records.insert(0, Record { server, learned: SystemTime::now(), catalog });
            records.truncate(MAX_RECORDS);
            changed
        })
    }

    /// Returns the changed tools: the named one, or all. [`Cache::approve`] approves them.
    pub fn changes(&self, key: &CatalogKey, tool: Option<&str>) -> Vec<DefinitionChange> {
        changes(&self.stored(key), tool)
    }

    /// Approves the current definition of the named tool, or of all tools. Returns the tools that
    /// had changed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn approve(
        &self,
        key: &CatalogKey,
        tool: Option<&str>,
    ) -> Result<Vec<DefinitionChange>, CacheError> {
        self.change(key, |stored| {
            let changes = approve(stored, tool);
            // Without a stored catalog the user has not seen any tool.
            if tool.is_none() && !stored.records.is_empty() {
                stored.pins.approve_all();
            }
            changes
        })
    }

    /// Approves the current definition of a tool if `is_seen` accepts all changes of the server.
    /// Returns whether it did.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn approve_seen(
        &self,
        key: &CatalogKey,
        tool: &str,
        is_seen: impl FnOnce(&[DefinitionChange]) -> bool,
    ) -> Result<bool, CacheError> {
        self.change(key, |stored| {
            let is_seen = is_seen(&changes(stored, None));
            if is_seen {
                approve(stored, Some(tool));
            }
            is_seen
        })
    }

    /// Changes the stored data of a server while holding the lease of all catalogs.
    fn change<T>(
        &self,
        key: &CatalogKey,
        change: impl FnOnce(&mut StoredServer) -> T,
    ) -> Result<T, CacheError> {
        let name = key.name(CATALOG);
        let failed = |cause| CacheError::Io { place: self.store.describe(&name), cause };
        let _lease = lease_blocking(self.store.as_ref(), STORE_LEASE)
            .map_err(|error| failed(error.into()))?;
        let mut stored = match self.load(key) {
            Err(CacheError::Unreadable { reason: RecordError::Damaged, .. }) => {
                self.set_aside(key);
                StoredServer { pins: Pins::lost(), ..StoredServer::default() }
            }
            loaded => loaded?,
        };
        let outcome = change(&mut stored);
        let is_new = !self.store.exists(&name).map_err(failed)?;
        self.store.put(&name, &encode_bounded(stored)).map_err(failed)?;
        if is_new && self.added.fetch_add(1, Ordering::Relaxed).is_multiple_of(PRUNE_INTERVAL) {
            self.store.prune(&LIMITS);
        }
        Ok(outcome)
    }

    /// Returns whether the store cannot be reached now.
    pub fn is_cut_off(&self) -> bool {
        let asked = self.store.exists(DAMAGED);
        asked.is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)
    }

    /// Returns whether the last attempt to fetch the server's catalog timed out.
    pub fn is_hung(&self, key: &CatalogKey) -> bool {
        self.store.exists(&key.name(HUNG)).unwrap_or(false)
    }

    /// Records for later runs whether the attempt to fetch the server's catalog timed out.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn note_hung(&self, key: &CatalogKey, is_hung: bool) -> io::Result<()> {
        let name = key.name(HUNG);
        if self.store.exists(&name)? == is_hung {
            return Ok(());
        }
        let _lease = lease_blocking(self.store.as_ref(), STORE_LEASE)?;
        if is_hung { self.store.put(&name, b"") } else { self.store.remove(&name).map(|_| ()) }
    }

    fn set_aside(&self, key: &CatalogKey) {
        let (name, aside) = (key.name(CATALOG), key.name(DAMAGED));
        match self.store.rename(&name, &aside) {
            Ok(true) => {
                tracing::warn!(
                    path = self.store.describe(&aside),
                    "stored catalog was damaged and has been set aside; with `pin: block` its \
                        tools are blocked until `dormouse approve`"
                );
            }
            // Another process has set it aside.
            Ok(false) => {}
            Err(error) => {
                let path = self.store.describe(&name);
                tracing::warn!(path, %error, "stored catalog is damaged");
            }
        }
    }
}

/// Encodes what is stored about a server, without the parts for which it is too large.
fn encode_bounded(mut stored: StoredServer) -> Vec<u8> {
    let mut encoded = stored.encode();
    let size = encoded.len();
    if size > MAX_CATALOG_BYTES {
        stored.former.clear();
        encoded = stored.encode();
    }
    while encoded.len() > MAX_CATALOG_BYTES && stored.records.pop().is_some() {
        encoded = stored.encode();
    }
    if encoded.len() > MAX_CATALOG_BYTES {
        stored.pins = Pins::lost();
        encoded = stored.encode();
    }
    if stored.records.is_empty() && size > MAX_CATALOG_BYTES {
        tracing::warn!(size, "catalog too large to be stored; storing only the digests for `pin`");
    }
    encoded
}

/// Approves the changed tools: the named one, or all. Returns them.
fn approve(stored: &mut StoredServer, tool: Option<&str>) -> Vec<DefinitionChange> {
    let changes = changes(stored, tool);
    for change in &changes {
        stored.pins.approve(&change.now);
        stored.former.retain(|former| former.name != change.now.name);
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        path::Path,
    };

    use serde_json::json;

    use super::*;
    use crate::{
        catalog::{Item as _, Tool},
        config::{Launch, Transport},
        store::FileStore,
        wire::Raw,
    };

    fn cache_in(directory: &Path) -> Cache {
        Cache::new(Arc::new(FileStore::new(directory)))
    }

    fn names(changes: &[DefinitionChange]) -> Vec<&str> {
        changes.iter().map(|change| change.now.name.as_str()).collect()
    }

    fn config(command: &str) -> ServerConfig {
        let launch = Launch::new(command, Arc::default());
        ServerConfig::new("s", Transport::Stdio(launch))
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        assert!(cache.read(&key, None).is_none());
        let catalog = ServerCatalog::unknown();
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert_eq!(cache.read(&key, None).unwrap().catalog, catalog);
        fs::write(directory.path().join(key.name(CATALOG)), "{").unwrap();
        assert!(cache.read(&key, None).is_none());
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert!(cache.store.exists(&key.name(DAMAGED)).unwrap());
        assert_eq!(cache.read(&key, None).unwrap().catalog, catalog);
    }

    #[test]
    fn tools_of_a_damaged_file_are_unverified_until_all_are_approved() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        let catalog = tool("good", "roots");
        let unverified = || Vec::from_iter(cache.pins(&key).unverified(&Digests::of(&catalog)));
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert!(unverified().is_empty());
        fs::write(directory.path().join(key.name(CATALOG)), "{").unwrap();
        assert_eq!(unverified(), ["a"]);
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert_eq!(unverified(), ["a"], "what was lost is not learned again");
        assert_eq!(names(&cache.approve(&key, None).unwrap()), ["a"]);
        assert!(unverified().is_empty());
    }

    #[test]
    fn pins_of_an_oversized_catalog_are_stored_without_it() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        let large = tool(&"x".repeat(MAX_CATALOG_BYTES), "roots");
        cache.learn(&key, "s", &large, &Pins::default()).unwrap();
        assert!(cache.read(&key, None).is_none());
        let changed = cache.pins(&key).unverified(&Digests::of(&tool("other", "roots")));
        assert_eq!(Vec::from_iter(changed), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_sparse_file_of_many_gigabytes_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        File::create(directory.path().join(key.name(CATALOG))).unwrap().set_len(20 << 30).unwrap();
        assert!(cache.read(&key, None).is_none());
        assert!(cache.pins(&key).is_incomplete());
    }

    #[test]
    fn a_record_for_the_same_capabilities_is_preferred_to_a_superset() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        let sets = [vec!["roots", "sampling"], vec!["roots"], vec![]];
        for declared in &sets {
            let mut catalog = ServerCatalog::unknown();
            catalog.discovery.declared = declared.iter().map(|name| (*name).to_owned()).collect();
            cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        }
        for (wanted, expected) in [
            (vec![], sets[2].clone()),
            (vec!["roots"], sets[1].clone()),
            (vec!["sampling"], sets[0].clone()),
            (vec!["elicitation"], sets[2].clone()),
        ] {
            let names: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            let read = cache.read(&key, Some(&names)).unwrap().catalog.discovery.declared;
            assert_eq!(read, expected, "{wanted:?}");
        }
    }

    fn tool(description: &str, declared: &str) -> ServerCatalog {
        let mut catalog = ServerCatalog::unknown();
        let definition = json!({"name": "a", "description": description, "inputSchema": {}});
        catalog.tools = vec![Tool::read(&Raw::encode(&definition)).unwrap()];
        catalog.discovery.declared = vec![declared.to_owned()];
        catalog
    }

    #[test]
    fn a_changed_tool_is_reported_for_all_capabilities_until_approved() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        let learn = |catalog: &ServerCatalog| {
            Vec::from_iter(cache.learn(&key, "s", catalog, &Pins::default()).unwrap())
        };
        assert!(learn(&tool("good", "roots")).is_empty());
        for number in 0..MAX_RECORDS + 2 {
            assert_eq!(learn(&tool("evil", &number.to_string())), ["a"]);
        }
        assert_eq!(names(&cache.approve(&key, None).unwrap()), ["a"]);
        assert!(learn(&tool("evil", "another")).is_empty());
        assert_eq!(learn(&tool("worse", "another")), ["a"]);
    }

    #[test]
    fn a_file_of_a_newer_version_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("a")).unwrap();
        let newer = "{\"dormouse-catalog\":99,\"sha256\":\"\"}\n{}\n";
        fs::write(directory.path().join(key.name(CATALOG)), newer).unwrap();
        assert!(cache.read(&key, None).is_none());
        assert!(cache.learn(&key, "s", &ServerCatalog::unknown(), &Pins::default()).is_err());
        assert_eq!(fs::read_to_string(directory.path().join(key.name(CATALOG))).unwrap(), newer);
    }

    #[test]
    fn temporary_files_of_killed_processes_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let abandoned = directory.path().join(".writing-1");
        let file = File::create(&abandoned).unwrap();
        file.set_modified(SystemTime::now() - std::time::Duration::from_hours(2)).unwrap();
        let cache = cache_in(directory.path());
        let key = CatalogKey::of(&config("new")).unwrap();
        cache.learn(&key, "s", &ServerCatalog::unknown(), &Pins::default()).unwrap();
        assert!(!abandoned.exists() && cache.read(&key, None).is_some());
    }
}
