//! The catalogs of servers and the pins of their tools, from one run to the next.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::waiting_catalogs::{CatalogPlace, WaitingCatalogs};
use crate::{
    base::Lock,
    catalog::{
        Cache, CacheError, CatalogKey, Digests, ExposedCatalog, Offer, Pins, Record, ServerCatalog,
        ServerId,
    },
    config::{Pin, ServerConfig},
};

/// The age at which an unchanged catalog is written again, so that its file shows when it was last
/// seen.
const REWRITE_INTERVAL: Duration = Duration::from_mins(10);

struct LastCatalog {
    catalog: Arc<ServerCatalog>,
    /// The time at which it was given to be written; `None` after that has failed.
    written: Option<Instant>,
}

/// A server's config and the key of its catalog, which is made at the first use because it reads
/// the disk.
struct KeyedServer {
    config: Arc<ServerConfig>,
    key: OnceLock<Option<CatalogKey>>,
}

impl KeyedServer {
    /// Returns `None` for a server whose config cannot be expanded.
    fn key(&self) -> Option<&CatalogKey> {
        self.key.get_or_init(|| CatalogKey::of(&self.config)).as_ref()
    }
}

/// The catalogs on disk, read and written for the servers of the config, and what is kept with
/// them: pins, and the reports about tools that were logged.
pub(super) struct CatalogMemory {
    /// The files; `None` where there is no cache directory.
    cache: Option<Cache>,
    keys: Lock<HashMap<ServerId, Arc<KeyedServer>>>,
    kept: Lock<HashMap<CatalogPlace, LastCatalog>>,
    waiting: Arc<WaitingCatalogs>,
    /// The pins of servers with `pin: block`.
    pins: Lock<HashMap<ServerId, Pins>>,
    /// The records that were read at the start for hybrid servers, until their instance asks for
    /// them.
    seeds: Lock<HashMap<ServerId, Vec<Record>>>,
    /// Reports about tools that have been logged, so that none is repeated.
    reported: Lock<HashSet<(ServerId, String)>>,
    /// The names of servers whose catalogs were written, until they are taken.
    written: Lock<BTreeSet<String>>,
    has_written: Notify,
}

impl CatalogMemory {
    pub(super) fn new(cache: Option<Cache>) -> Self {
        let (keys, kept, waiting, pins, seeds, reported) = Default::default();
        let (written, has_written) = Default::default();
        Self { cache, keys, kept, waiting, pins, seeds, reported, written, has_written }
    }

    /// Begins to keep a server, under the key of its present config.
    pub(super) fn adopt(&self, server: ServerId, config: &Arc<ServerConfig>) {
        let keyed = Arc::new(KeyedServer { config: config.clone(), key: OnceLock::new() });
        let was = self.keys.lock().insert(server, keyed.clone());
        if was.is_some_and(|was| was.key().is_none() || was.key() != keyed.key()) {
            self.forget(server);
        }
        if config.settings.pin == Pin::Block {
            if self.cache.is_none() {
                let server = &config.name;
                tracing::warn!(
                    server,
                    "no cache directory for tool definitions; `pin: block` compares only with \
                        definitions seen by this process"
                );
            }
            let pins = self.pins_now(server);
            self.pins.lock().insert(server, pins);
        } else {
            self.pins.lock().remove(&server);
        }
    }

    /// Forgets everything about a server whose catalog is no longer valid.
    pub(super) fn forget(&self, server: ServerId) {
        self.kept.lock().retain(|(other, _), _| *other != server);
        self.pins.lock().remove(&server);
        self.seeds.lock().remove(&server);
    }

    fn place(&self, server: ServerId) -> Option<(&Cache, CatalogKey)> {
        let keyed = self.keys.lock().get(&server)?.clone();
        Some((self.cache.as_ref()?, keyed.key()?.clone()))
    }

    /// Reads the record of a server that fits best for hosts that declare these capabilities.
    pub(super) fn read(&self, server: ServerId, declared: &[String]) -> Option<Record> {
        let seeds = self.seeds.lock().remove(&server);
        if let Some(records) = seeds {
            return Cache::best(records, Some(declared));
        }
        let (cache, key) = self.place(server)?;
        cache.read(&key, Some(declared))
    }

    /// Returns whether the store cannot be reached now.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cache.as_ref().is_some_and(Cache::is_cut_off)
    }

    /// Reads the last catalog of a server, whatever capabilities were declared to it.
    pub(super) fn last(&self, server: ServerId) -> Option<ServerCatalog> {
        let (cache, key) = self.place(server)?;
        Some(cache.read(&key, None)?.catalog)
    }

    /// Reads the last catalog of a hybrid server at the start, and keeps the records for its
    /// instance.
    pub(super) fn seed(&self, server: ServerId) -> Option<Arc<ServerCatalog>> {
        let (cache, key) = self.place(server)?;
        let records = cache.records(&key);
        let catalog = Arc::new(records.first()?.catalog.clone());
        self.seeds.lock().insert(server, records);
        Some(catalog)
    }

    /// Returns the pins of a server as its file has them now. Tools that the file lacks, because it
    /// could not be written or is gone, have the pins of this process.
    fn pins_now(&self, server: ServerId) -> Pins {
        let mut pins = self.place(server).map(|(cache, key)| cache.pins(&key)).unwrap_or_default();
        pins.add_missing(&self.pins_seen(server));
        pins
    }

    fn pins_seen(&self, server: ServerId) -> Pins {
        self.pins.lock().get(&server).cloned().unwrap_or_default()
    }

    /// Returns the tools that differ from their pins and, with `pin: block`, also those that cannot
    /// be compared.
    pub(super) fn suspicious(
        &self,
        server: ServerId,
        pin: Pin,
        catalog: &ServerCatalog,
    ) -> BTreeSet<String> {
        self.pins_now(server).suspicious(pin, &Digests::of(catalog))
    }

    /// Returns the tools that must not be called before they are approved. Tools seen for the first
    /// time are pinned.
    pub(super) fn blocked(&self, server: ServerId, catalog: &ServerCatalog) -> BTreeSet<String> {
        if !self.pins.lock().contains_key(&server) {
            return BTreeSet::new();
        }
        let now = Digests::of(catalog);
        let mut pins = self.pins.lock();
        let pins = pins.entry(server).or_default();
        pins.see(&now);
        pins.unverified(&now)
    }

    /// Returns what an offer shows of its server's catalog.
    pub(super) fn expose(
        &self,
        offer: &Offer,
        catalog: &Arc<ServerCatalog>,
    ) -> Arc<ExposedCatalog> {
        offer.expose(catalog, &self.blocked(offer.server(), catalog))
    }

    /// Returns whether a catalog has to be written.
    pub(super) fn is_news(&self, server: ServerId, catalog: &Arc<ServerCatalog>) -> bool {
        let mut kept = self.kept.lock();
        let place = (server, catalog.discovery.declared.clone());
        let is_kept = kept
            .get(&place)
            .filter(|last| last.written.is_some_and(|when| when.elapsed() < REWRITE_INTERVAL))
            .is_some_and(|last| *last.catalog == **catalog);
        if !is_kept {
            let written = Some(Instant::now());
            kept.insert(place, LastCatalog { catalog: catalog.clone(), written });
        }
        !is_kept
    }

    /// Returns the places whose catalogs have to be written.
    pub(super) fn waiting(&self) -> &Arc<WaitingCatalogs> {
        &self.waiting
    }

    /// Returns the newest catalog of a place.
    pub(super) fn newest(&self, place: &CatalogPlace) -> Option<Arc<ServerCatalog>> {
        Some(self.kept.lock().get(place)?.catalog.clone())
    }

    /// Writes a catalog of the server of this name. Returns the tools that differ from their pins;
    /// `None` if there is nowhere to write it.
    ///
    /// # Errors
    /// If it cannot be written. It is news again then.
    pub(super) fn write(
        &self,
        place: &CatalogPlace,
        name: &str,
        catalog: &ServerCatalog,
    ) -> Result<Option<BTreeSet<String>>, CacheError> {
        let (server, _) = place;
        let Some((cache, key)) = self.place(*server) else { return Ok(None) };
        let learned = cache.learn(&key, name, catalog, &self.pins_seen(*server));
        if learned.is_ok() {
            self.written.lock().insert(name.to_owned());
            self.has_written.notify_one();
        } else if let Some(last) = self.kept.lock().get_mut(place) {
            last.written = None;
        }
        learned.map(Some)
    }

    /// Waits until catalogs are written, and takes the names of their servers.
    pub(super) async fn take_written(&self) -> BTreeSet<String> {
        loop {
            let written = std::mem::take(&mut *self.written.lock());
            if !written.is_empty() {
                return written;
            }
            self.has_written.notified().await;
        }
    }

    /// Returns whether the server hung in the last run; lists do not wait for such a server.
    pub(super) fn was_hung(&self, server: ServerId) -> bool {
        self.place(server).is_some_and(|(cache, key)| cache.is_hung(&key))
    }

    pub(super) fn note_hung(&self, server: ServerId, is_hung: bool) {
        let Some((cache, key)) = self.place(server) else { return };
        if let Err(error) = cache.note_hung(&key, is_hung) {
            tracing::debug!(%error, "cannot record that a server did not start in time");
        }
    }

    /// Replaces the pins of a server by those that its file has now.
    pub(super) fn reread_pins(&self, server: ServerId) {
        let pins = self.pins_now(server);
        self.pins.lock().insert(server, pins);
    }

    pub(super) fn is_first_report(&self, server: ServerId, what: String) -> bool {
        let mut reported = self.reported.lock();
        reported.insert((server, what))
    }

    /// Has the next report be the first one again.
    pub(super) fn forget_report(&self, server: ServerId, what: &str) {
        self.reported.lock().remove(&(server, what.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{proxy::testing::parse_config, store::FileStore};

    #[test]
    fn catalog_is_written_after_the_write_of_an_older_one_has_failed() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("catalogs");
        let memory = CatalogMemory::new(Some(Cache::new(Arc::new(FileStore::new(&directory)))));
        let config = parse_config(r#"{"mcpServers": {"s": {"command": "s"}}}"#).servers.remove(0);
        let server = ServerId(0);
        memory.adopt(server, &Arc::new(config));
        let older = Arc::new(ServerCatalog::unknown());
        let mut newer = ServerCatalog::unknown();
        newer.greeting.instructions = Some("newer".to_owned());
        let newer = Arc::new(newer);
        std::fs::write(&directory, "not a directory").unwrap();
        assert!(memory.is_news(server, &older) && memory.is_news(server, &newer));
        assert!(!memory.is_news(server, &newer));
        let place = (server, Vec::new());
        memory.write(&place, "s", &older).expect_err("the directory cannot be made");
        std::fs::remove_file(&directory).unwrap();
        assert!(memory.is_news(server, &newer));
        memory.write(&place, "s", &memory.newest(&place).unwrap()).unwrap();
        assert_eq!(memory.last(server).as_ref(), Some(&*newer));
    }
}
