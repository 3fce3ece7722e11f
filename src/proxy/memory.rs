//! The catalogs of servers and the pins of their tools, from one run to the next.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{Fleet, audience::first_era, instance::Instance, observer, servers::has_first_attempt};
use crate::{
    base::Lock,
    base::run_blocking,
    catalog::{
        Cache, CatalogKey, Digests, Exposed, Naming, Pins, Presence, Record, ServerCatalog,
        ServerId, ServerView, hidden_characters,
    },
    config::{Pin, ServerConfig, Startup},
    upstream::{Audience, Recalled, declared_names},
};

/// The age at which an unchanged catalog is written again, so that its file shows when it was last
/// seen.
const KEEP_AGAIN: Duration = Duration::from_mins(10);

/// The last catalog of each server for hosts that declare the same capabilities, and when it was
/// written.
type Seen = HashMap<(ServerId, Vec<String>), (Arc<ServerCatalog>, Instant)>;

/// A server's config and the key of its catalog, which is made at the first use because it reads
/// the disk.
struct Keyed {
    config: Arc<ServerConfig>,
    key: OnceLock<Option<CatalogKey>>,
}

impl Keyed {
    /// Returns `None` for a server whose config cannot be expanded.
    fn key(&self) -> Option<&CatalogKey> {
        self.key.get_or_init(|| CatalogKey::of(&self.config)).as_ref()
    }
}

pub(super) struct Memory {
    /// The files; `None` where there is no cache directory.
    cache: Option<Cache>,
    keys: Lock<HashMap<ServerId, Arc<Keyed>>>,
    kept: Lock<Seen>,
    /// The pins of servers with `pin: block`.
    pins: Lock<HashMap<ServerId, Pins>>,
    /// The records that were read at the start for hybrid servers, until their instance asks for
    /// them.
    seeds: Lock<HashMap<ServerId, Vec<Record>>>,
    /// Reports about tools that have been logged, so that none is repeated.
    reported: Lock<HashSet<(ServerId, String)>>,
    /// Incremented for each catalog that is new or has changed.
    learned: watch::Sender<u64>,
}

/// Maximum number of tools of one server that are named in the log at once.
const MAX_REPORTED: usize = 50;

impl Memory {
    pub(super) fn new(cache: Option<Cache>) -> Self {
        let (keys, kept, pins, seeds, reported, learned) = Default::default();
        Self { cache, keys, kept, pins, seeds, reported, learned }
    }

    /// Begins to keep a server, under the key of its present config.
    pub(super) fn adopt(&self, server: ServerId, config: &Arc<ServerConfig>) {
        let keyed = Arc::new(Keyed { config: config.clone(), key: OnceLock::new() });
        let was = self.keys.lock().insert(server, keyed.clone());
        if was.is_some_and(|was| was.key().is_none() || was.key() != keyed.key()) {
            self.forget(server);
        }
        if config.pin == Pin::Block {
            if self.cache.is_none() {
                let server = &config.name;
                tracing::warn!(
                    server,
                    "the definitions of its tools cannot be stored, since there is no cache directory; `pin: block` compares only with what this process has seen"
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
    fn read(&self, server: ServerId, declared: &[String]) -> Option<Record> {
        let seeds = self.seeds.lock().remove(&server);
        if let Some(records) = seeds {
            return Cache::best(records, Some(declared));
        }
        let (cache, key) = self.place(server)?;
        cache.read(&key, Some(declared))
    }

    /// Reads the last catalog of a server, for whatever capabilities.
    pub(super) fn last(&self, server: ServerId) -> Option<ServerCatalog> {
        let (cache, key) = self.place(server)?;
        Some(cache.read(&key, None)?.catalog)
    }

    /// Reads the last catalog of a hybrid server at the start, and keeps the records for its
    /// instance.
    fn seed(&self, server: ServerId) -> Option<Arc<ServerCatalog>> {
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

    /// Returns whether a catalog has to be written.
    fn is_news(&self, server: ServerId, catalog: &Arc<ServerCatalog>) -> bool {
        let mut kept = self.kept.lock();
        let place = (server, catalog.discovery.declared.clone());
        let is_kept = kept
            .get(&place)
            .is_some_and(|(known, when)| when.elapsed() < KEEP_AGAIN && **known == **catalog);
        if !is_kept {
            kept.insert(place, (catalog.clone(), Instant::now()));
        }
        !is_kept
    }

    /// Writes the newest catalog of a server for hosts that declare these capabilities, whatever
    /// the order of the writers. Returns the tools that differ from their pins.
    fn write(&self, server: ServerId, name: &str, declared: &[String]) -> Option<BTreeSet<String>> {
        let (cache, key) = self.place(server)?;
        let place = (server, declared.to_vec());
        let newest = self.kept.lock().get(&place)?.0.clone();
        match cache.learn(&key, name, &newest, &self.pins_seen(server)) {
            Ok(changed) => Some(changed),
            Err(error) => {
                tracing::warn!(server = name, %error, "cannot keep the catalog");
                self.kept.lock().remove(&place);
                None
            }
        }
    }

    /// Returns whether the server hung in the last run; lists do not wait for such a server.
    pub(super) fn was_hung(&self, server: ServerId) -> bool {
        self.place(server).is_some_and(|(cache, key)| cache.is_hung(&key))
    }

    pub(super) fn note_hung(&self, server: ServerId, is_hung: bool) {
        let Some((cache, key)) = self.place(server) else { return };
        if let Err(error) = cache.note_hung(&key, is_hung) {
            tracing::debug!(%error, "cannot note whether a server hung");
        }
    }

    pub(super) fn tell_learned(&self) {
        self.learned.send_modify(|count| *count += 1);
    }

    fn is_first_report(&self, server: ServerId, what: String) -> bool {
        let mut reported = self.reported.lock();
        reported.insert((server, what))
    }
}

impl Fleet {
    /// Returns a receiver that is notified when a catalog is new or has changed.
    pub fn learned(&self) -> watch::Receiver<u64> {
        self.memory.learned.subscribe()
    }

    /// Returns the enabled servers with their catalogs, as far as those are known.
    pub fn known_catalogs(&self) -> Vec<(Arc<ServerConfig>, Option<Arc<ServerCatalog>>)> {
        let roster = self.servers.roster();
        let enabled = roster.all().filter(|(_, slot)| slot.config.enabled);
        enabled.map(|(_, slot)| (slot.config.clone(), slot.upstream.catalog())).collect()
    }
}

/// Returns what hosts may see of a server's catalog.
pub(super) fn expose(
    fleet: &Fleet,
    server: ServerId,
    catalog: &Arc<ServerCatalog>,
) -> Arc<Exposed> {
    let snapshot = fleet.board.snapshot();
    let naming = snapshot.position(server).map(|at| snapshot.naming(at));
    // A server that the config no longer has is shown under no name.
    let naming = naming.unwrap_or(Naming::Bare);
    expose_as(fleet, server, catalog, &fleet.servers.config(server), naming)
}

/// As [`expose`], for a config that is not in force yet.
pub(super) fn expose_as(
    fleet: &Fleet,
    server: ServerId,
    catalog: &Arc<ServerCatalog>,
    config: &ServerConfig,
    naming: Naming<'_>,
) -> Arc<Exposed> {
    let blocked = fleet.memory.blocked(server, catalog);
    Arc::new(Exposed::new(catalog, config, &blocked, naming))
}

/// Checks whether withheld tools have been approved since.
pub(super) async fn reexamine(fleet: &Fleet, server: ServerId) {
    let Some(owned) = fleet.this.upgrade() else { return };
    let reading = run_blocking(move || reread_pins(&owned, server));
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}

fn reread_pins(fleet: &Fleet, server: ServerId) {
    let pins = fleet.memory.pins_now(server);
    fleet.memory.pins.lock().insert(server, pins);
    expose_anew(fleet, server);
}

fn expose_anew(fleet: &Fleet, server: ServerId) {
    let (roster, snapshot) = (fleet.servers.roster(), fleet.board.snapshot());
    let Some(view) = snapshot.view(server) else { return };
    if let Some(known) = &view.known {
        fleet.publish_recalled(&roster, vec![(server, expose(fleet, server, &known.whole))]);
    }
    let mut seen = view.presence.clone();
    // A newer catalog may have been published since; it must not be lost, and is exposed instead.
    while let Presence::Live { exposed, .. } = &seen {
        let (whole, anew) = (exposed.whole.clone(), expose(fleet, server, &exposed.whole));
        let mut newer = Presence::Disabled;
        fleet.publish(roster.shared(server), Audience::All, |before| match before {
            Presence::Live { exposed, origin } if Arc::ptr_eq(&exposed.whole, &whole) => {
                Some(Presence::Live { exposed: anew, origin: *origin })
            }
            other => {
                newer = other.clone();
                None
            }
        });
        seen = newer;
    }
}

/// Keeps a catalog that an instance has just learned, and logs suspicious changes.
pub(super) fn keep(fleet: &Fleet, instance: Instance, catalog: &Arc<ServerCatalog>) {
    let server = instance.server;
    let is_whole = fleet.context.reads_lists;
    if !is_whole || !fleet.servers.is_current(instance) || !fleet.memory.is_news(server, catalog) {
        return;
    }
    let (weak, catalog) = (fleet.this.clone(), catalog.clone());
    fleet.context.tasks.spawn(run_blocking(move || {
        let Some(fleet) = weak.upgrade().filter(|fleet| fleet.servers.is_current(instance)) else {
            return;
        };
        report_hidden(&fleet, server, &catalog);
        fleet.memory.note_hung(server, false);
        let config = fleet.servers.config(server);
        let Some(changed) = fleet.memory.write(server, &config.name, &catalog.discovery.declared)
        else {
            return;
        };
        if config.pin != Pin::Off {
            let suspicious = fleet.memory.suspicious(server, config.pin, &catalog);
            report_changed(&fleet, server, &suspicious);
        }
        if config.pin == Pin::Block && !changed.is_empty() {
            // Another process may have pinned other definitions first.
            reread_pins(&fleet, server);
        }
    }));
}

fn report_changed(fleet: &Fleet, server: ServerId, changed: &BTreeSet<String>) {
    let config = fleet.servers.config(server);
    let blocked = if config.pin == Pin::Block { "; it cannot be called before that" } else { "" };
    if changed.len() > MAX_REPORTED {
        let (server, count) = (&config.name, changed.len());
        tracing::warn!(
            server,
            count,
            "many tools are not what they were, or cannot be compared; the first are named{blocked}"
        );
    }
    for tool in changed.iter().take(MAX_REPORTED) {
        if fleet.memory.is_first_report(server, format!("changed {tool}")) {
            tracing::warn!(
                server = config.name,
                tool,
                "its definition is not what it was when it was first seen, or cannot be compared; look at it, and run `dormouse approve {}`{blocked}",
                config.name
            );
        }
    }
}

fn report_hidden(fleet: &Fleet, server: ServerId, catalog: &ServerCatalog) {
    for (place, hidden) in hidden_characters(catalog) {
        if fleet.memory.is_first_report(server, format!("hidden {place}")) {
            let server = &fleet.servers.config(server).name;
            let character = format!("U+{:04X}", u32::from(hidden));
            tracing::warn!(server, place, character, "holds characters that cannot be seen");
        }
    }
}

/// Returns what an instance had when it was last connected.
pub(super) fn recall(fleet: &Fleet, instance: Instance) -> Option<Recalled> {
    let declared = declared(fleet, instance);
    let record = fleet.memory.read(instance.server, &declared)?;
    let is_sufficient = record.covers(&declared);
    let age = record.learned.elapsed().unwrap_or_default();
    Some(Recalled { catalog: Arc::new(record.catalog), age, is_sufficient })
}

fn declared(fleet: &Fleet, instance: Instance) -> Vec<String> {
    let era = first_era(&fleet.audience.hosts_of(instance));
    declared_names(&observer::capabilities_for(fleet, instance, era))
}

/// Publishes the last catalogs of hybrid servers before any host has declared its capabilities.
/// `is_meant`: the server is new in the config.
pub(super) fn seed(fleet: &Fleet, is_meant: impl Fn(ServerId) -> bool) {
    let roster = fleet.servers.roster();
    let hybrid = roster.all().filter(|(server, slot)| {
        let is_hybrid = slot.config.startup == Startup::Hybrid;
        is_meant(*server) && is_hybrid && has_first_attempt(&slot.config)
    });
    let seeds = hybrid.filter_map(|(server, _)| {
        Some((server, expose(fleet, server, &fleet.memory.seed(server)?)))
    });
    fleet.publish_seeds(seeds.collect());
}

/// Reads the catalogs of all servers that have not been loaded, once. Search, counts and the
/// `direct` surface use them.
pub(super) async fn recall_all(fleet: &Fleet) {
    let (roster, snapshot) = (fleet.servers.roster(), fleet.board.snapshot());
    if snapshot.is_recalled {
        return;
    }
    let Some(owned) = fleet.this.upgrade() else { return };
    let reading = run_blocking(move || {
        let is_unloaded =
            |view: &&Arc<ServerView>| matches!(view.presence, Presence::Offered { .. });
        let unloaded = snapshot.servers.iter().filter(is_unloaded).map(|view| view.id);
        let known = unloaded.filter_map(|server| {
            let recalled = recall(&owned, roster.shared(server))?;
            Some((server, expose(&owned, server, &recalled.catalog)))
        });
        owned.publish_recalled(&roster, known.collect());
    });
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}
