//! What is remembered of servers from one run to the next: their catalogs, and what their tools were when they
//! were first seen.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    Fleet,
    fleet::{Announce, has_first_attempt},
    instance::Instance,
};
use crate::{
    catalog::{
        Cache, CatalogKey, Exposed, Origin, Presence, Record, ServerCatalog, hidden_character,
    },
    config::{Pin, ServerConfig, Startup},
    protocol::Era,
    upstream::{Recalled, declared_names},
};

/// A catalog that stays the same is written anew after this long, so that its file says how old it is.
const KEEP_AGAIN: Duration = Duration::from_mins(10);

pub(super) struct Memory {
    /// `None` where there is no place to keep anything.
    cache: Option<Cache>,
    /// Of each server, in config order.
    keys: Vec<Option<CatalogKey>>,
    // A std mutex: held for a look or a change. What was written last of each server, and when.
    kept: Mutex<HashMap<usize, (Arc<ServerCatalog>, Instant)>>,
    // As above. What has been said of a tool once is not said again.
    reported: Mutex<HashSet<(usize, String)>>,
    /// Counts the catalogs that were news.
    learned: watch::Sender<u64>,
}

impl Memory {
    pub(super) fn new(cache: Option<Cache>, servers: &[ServerConfig]) -> Self {
        let keys = servers.iter().map(CatalogKey::of).collect();
        let learned = watch::Sender::new(0);
        Self { cache, keys, kept: Mutex::default(), reported: Mutex::default(), learned }
    }

    fn place(&self, server: usize) -> Option<(&Cache, &CatalogKey)> {
        Some((self.cache.as_ref()?, self.keys[server].as_ref()?))
    }

    /// What a server had, best as it shows itself to those who declare this.
    pub(super) fn read(&self, server: usize, declared: &[String]) -> Option<Record> {
        let (cache, key) = self.place(server)?;
        cache.read(key, declared)
    }

    /// Whether this catalog has to be written.
    fn is_news(&self, server: usize, catalog: &Arc<ServerCatalog>) -> bool {
        let mut kept = self.lock_kept();
        let is_kept = kept
            .get(&server)
            .is_some_and(|(known, when)| when.elapsed() < KEEP_AGAIN && **known == **catalog);
        if !is_kept {
            kept.insert(server, (catalog.clone(), Instant::now()));
        }
        !is_kept
    }

    fn is_first_report(&self, server: usize, what: String) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        reported.insert((server, what))
    }

    fn lock_kept(&self) -> MutexGuard<'_, HashMap<usize, (Arc<ServerCatalog>, Instant)>> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Fleet {
    /// What may be seen of a server's catalog. Where a change has to be approved, what was approved is read
    /// now: a tool that changes must not be callable for a moment.
    pub(super) fn expose(&self, server: usize, catalog: &Arc<ServerCatalog>) -> Arc<Exposed> {
        let config = self.shared(server).config();
        let changed = match config.pin {
            Pin::Block => self.changed_tools(server, catalog),
            Pin::Warn | Pin::Off => BTreeSet::new(),
        };
        let snapshot = self.snapshot();
        Arc::new(Exposed::new(catalog, config, &changed, snapshot.naming(server)))
    }

    /// Looks whether tools that were withheld because they had changed have been approved meanwhile.
    pub(super) fn reexamine(&self, server: usize) {
        let Some(catalog) = self.shared(server).catalog() else { return };
        let exposed = self.expose(server, &catalog);
        self.publish(server, Announce::ToAll, |before| match before {
            Presence::Live { origin, .. } => Some(Presence::Live { exposed, origin: *origin }),
            _ => None,
        });
    }

    /// Keeps what a server has just shown, and says what is strange about it.
    pub(super) fn keep(&self, server: usize, catalog: &Arc<ServerCatalog>) {
        self.report_hidden(server, catalog);
        if !self.memory.is_news(server, catalog) {
            return;
        }
        self.memory.learned.send_modify(|count| *count += 1);
        let Some((cache, key)) = self.memory.place(server) else { return };
        let (cache, key) = (cache.clone(), key.clone());
        let (catalog, config) = (catalog.clone(), self.shared(server).config().clone());
        let fleet = self.this.clone();
        self.context.tasks.spawn_blocking(move || {
            if config.pin != Pin::Off {
                let changed = cache.pins(&key, &catalog.discovery.declared).changed(&catalog);
                if let Some(fleet) = fleet.upgrade() {
                    fleet.report_changed(server, &changed);
                }
            }
            if let Err(error) = cache.learn(&key, &config.name, &catalog) {
                tracing::warn!(server = config.name, %error, "cannot keep the catalog");
            }
        });
    }

    /// Tells that some server's catalog has become known, or is new.
    pub fn learned(&self) -> watch::Receiver<u64> {
        self.memory.learned.subscribe()
    }

    /// What the servers that are in use have, as far as that is known.
    pub fn known_catalogs(&self) -> Vec<(Arc<ServerConfig>, Option<Arc<ServerCatalog>>)> {
        let shared = self.all_shared().iter();
        let enabled = shared.filter(|upstream| upstream.config().enabled);
        enabled.map(|upstream| (upstream.config().clone(), upstream.catalog())).collect()
    }

    /// The tools of a server that are not what they were when they were first seen.
    pub(super) fn changed_tools(&self, server: usize, catalog: &ServerCatalog) -> BTreeSet<String> {
        let Some((cache, key)) = self.memory.place(server) else { return BTreeSet::new() };
        cache.pins(key, &catalog.discovery.declared).changed(catalog)
    }

    fn report_changed(&self, server: usize, changed: &BTreeSet<String>) {
        let config = self.shared(server).config();
        let blocked =
            if config.pin == Pin::Block { " and cannot be called before that" } else { "" };
        for tool in changed {
            if self.memory.is_first_report(server, format!("changed {tool}")) {
                tracing::warn!(
                    server = config.name,
                    tool,
                    "its definition is not what it was when it was first seen; look at it, and say `dormouse approve {}`{blocked}",
                    config.name
                );
            }
        }
    }

    fn report_hidden(&self, server: usize, catalog: &ServerCatalog) {
        for tool in &catalog.tools {
            let Some(hidden) = hidden_character(tool) else { continue };
            if self.memory.is_first_report(server, format!("hidden {}", tool.name)) {
                let name = self.shared(server).name();
                let character = format!("U+{:04X}", u32::from(hidden));
                tracing::warn!(
                    server = name,
                    tool = tool.name,
                    character,
                    "its definition holds characters that cannot be seen"
                );
            }
        }
    }

    /// What an instance had when it was last connected.
    pub(super) fn recall(&self, instance: Instance) -> Option<Recalled> {
        let declared = self.declared(instance);
        let record = self.memory.read(instance.server, &declared)?;
        let is_sufficient = record.covers(&declared);
        let age = record.learned.elapsed().unwrap_or_default();
        Some(Recalled { catalog: Arc::new(record.catalog), age, is_sufficient })
    }

    fn declared(&self, instance: Instance) -> Vec<String> {
        let client = self.hosts_of(instance).iter().find_map(|host| host.client());
        let era = client.map_or(Era::Legacy, |client| client.era);
        declared_names(&self.capabilities_for(instance, era))
    }

    /// What hybrid servers had is shown from the start, before anybody has said what is declared to them.
    pub(super) fn seed(&self) {
        for (server, upstream) in self.all_shared().iter().enumerate() {
            let config = upstream.config();
            if config.startup == Startup::Hybrid
                && has_first_attempt(config)
                && let Some(record) = self.memory.read(server, &[])
            {
                let exposed = self.expose(server, &Arc::new(record.catalog));
                self.publish(server, Announce::ToAll, |_| {
                    Some(Presence::Live { exposed, origin: Origin::OwnAccord })
                });
            }
        }
    }

    /// Reads what is known of the servers that have not been loaded, once. It feeds search, counts and the
    /// `direct` surface.
    pub(super) async fn recall_all(&self) {
        let snapshot = self.snapshot();
        if snapshot.is_recalled {
            return;
        }
        let Some(fleet) = self.this.upgrade() else { return };
        let reading = self.context.tasks.spawn_blocking(move || {
            let servers = 0..snapshot.servers.len();
            let unloaded = servers.filter(|server| {
                matches!(snapshot.servers[*server].presence, Presence::Offered { .. })
            });
            let known = unloaded.filter_map(|server| {
                let recalled = fleet.recall(Instance { server, owner: None })?;
                Some((server, fleet.expose(server, &recalled.catalog)))
            });
            fleet.publish_recalled(known.collect());
        });
        // It only fails when everything ends.
        let _ = reading.await;
    }
}
