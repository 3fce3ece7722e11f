//! The start and the end of a fleet.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    sync::Arc,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Fleet,
    asking::Asking,
    attachment,
    audience::Audience,
    board::Board,
    catalog_memory::CatalogMemory,
    catalog_writer, catalogs,
    events::Events,
    extension_lists::ExtensionLists,
    fleet::{CallState, ExtensionState, FleetMemory},
    host_memory::HostMemory,
    host_recall, known_tasks, large_results,
    observer::InstanceObserver,
    remembered_loads::RememberedLoads,
    results::KeptResults,
    servers::{Observe, Servers},
    task_table::TaskTable,
};
use crate::{
    auth::Auth,
    base::new_mark,
    catalog::{Cache, ServerId, Snapshot},
    config::{Config, Wrapping},
    store::HostStores,
    upstream::{Context, Opener, ProcessServices},
};

/// The places for what outlives a fleet; none by default.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub catalogs: Option<Cache>,
    /// The names of loaded servers.
    pub loads: Option<RememberedLoads>,
    /// The state of hosts, for other replicas.
    pub hosts: Option<HostStores>,
}

impl Fleet {
    /// Creates the fleet; connects no server.
    pub(crate) fn new(
        config: Config,
        services: &ProcessServices,
        storage: Storage,
        auth: Auth,
    ) -> Arc<Self> {
        let settings = &config.settings;
        let max_message_bytes = settings.limits.max_message_bytes;
        let opener =
            Opener::new(max_message_bytes, settings.launch.lineage.clone(), services.clone());
        Self::with_opener(config, opener, storage, auth)
    }

    /// As [`Self::new`], with another way to open connections.
    pub(super) fn with_opener(
        config: Config,
        opener: Opener,
        storage: Storage,
        auth: Auth,
    ) -> Arc<Self> {
        let Config { settings, servers } = config;
        let context = Context {
            opener,
            auth,
            catalog_ttl: settings.loading.catalog_ttl,
            reads_lists: settings.launch.wrapping != Wrapping::Exclusive,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let settings = Arc::new(settings);
        let loads = storage.loads.filter(|_| settings.loading.remember_loads);
        let hosts = HostMemory::new(storage.hosts);
        let catalogs = CatalogMemory::new(storage.catalogs);
        let mark = new_mark();
        let keys = settings.store.sealing_keys();
        let tasks = TaskTable::new(keys.is_some().then_some(mark.as_str()));
        let asking = Asking::new(&mark, keys, context.tasks.clone(), context.stop.clone());
        let calls = CallState::new(KeptResults::new(&mark));
        let fleet = Arc::new_cyclic(|this| {
            let fleet = this.clone();
            let observe: Observe =
                Box::new(move |instance| Arc::new(InstanceObserver::new(fleet.clone(), instance)));
            let servers =
                Servers::new(context.clone(), observe, servers, &settings.profiles, |id, slot| {
                    catalogs.adopt(id, &slot.config);
                    slot.shown.has_first_attempt() && catalogs.was_hung(id)
                });
            let events = Events::default();
            let snapshot = Snapshot::new(settings, &servers.roster().configs());
            Self {
                this: this.clone(),
                context,
                servers,
                board: Board::new(snapshot, events.clone()),
                audience: Audience::default(),
                asking,
                calls,
                extensions: ExtensionState { tasks, lists: ExtensionLists::default() },
                memory: FleetMemory { catalogs, loads, hosts },
                events,
            }
        });
        catalogs::seed(&fleet, |_| true);
        known_tasks::reap_tasks(&fleet);
        large_results::reap_results(&fleet);
        attachment::reap_instances(&fleet);
        host_recall::store_records(&fleet);
        catalog_writer::store_catalogs(&fleet);
        fleet
    }

    /// Connects the eager servers in the background, learns what the hybrid ones have, and loads
    /// again what was loaded when dormouse last ended, and `loads`: the names of offers that a host
    /// has loaded at another process.
    pub(crate) fn start(&self, loads: impl IntoIterator<Item = String>) {
        let mut remembered = remembered_loads(self);
        remembered.extend(loads);
        let snapshot = self.board.snapshot();
        let offers = snapshot.offers.iter().filter(|offer| remembered.contains(&offer.name));
        let loaded: HashSet<ServerId> = offers
            .map(|offer| {
                self.board.request(offer.id).keep();
                offer.server()
            })
            .collect();
        self.servers.begin(self.audience.first_era(), |server| loaded.contains(&server));
    }

    /// Ends all logins in progress: requests that wait for them fail.
    pub(crate) fn end_logins(&self) {
        self.calls.logins.end();
    }

    /// Ends all servers, and waits until every task has ended.
    pub(crate) async fn stop(&self) {
        self.context.stop.cancel();
        self.end_logins();
        self.asking.clear();
        self.context.tasks.close();
        self.context.tasks.wait().await;
        self.context.auth.end().await;
    }
}

/// Reads the names of the offers that were loaded when dormouse last ended. If the store cannot be
/// used, they are loaded when it can.
fn remembered_loads(fleet: &Fleet) -> BTreeSet<String> {
    let Some(remembered) = &fleet.memory.loads else { return BTreeSet::new() };
    remembered.read().unwrap_or_else(|error| {
        let path = remembered.describe();
        tracing::warn!(path, %error, "cannot read the loaded servers");
        if error.kind() == io::ErrorKind::NotConnected {
            load_remembered_later(fleet, remembered.clone());
        }
        BTreeSet::new()
    })
}

/// Loads what was loaded when dormouse last ended, as soon as that can be read.
fn load_remembered_later(fleet: &Fleet, remembered: RememberedLoads) {
    let (weak, stop) = (fleet.this.clone(), fleet.context.stop.clone());
    fleet.context.tasks.spawn(async move {
        let Some(names) = remembered.retry(&stop, RememberedLoads::read).await else { return };
        let Some(fleet) = weak.upgrade() else { return };
        host_recall::restore_offers(&fleet, |offer| names.contains(&offer.name));
    });
}
