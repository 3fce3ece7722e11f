//! The parts of a running dormouse: servers, published snapshot, hosts, and the requests between
//! them.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Weak},
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Caller, Endpoint, Host, Principal, Viewer,
    asking::Asking,
    audience::Audience,
    board::{Board, RememberedLoads},
    calls::{InFlight, Results},
    events::{Event, Events},
    extensions::Listings,
    instance::Instance,
    logins::Logins,
    memory::{self, Memory},
    observer::{InstanceObserver, with_missing},
    servers::{Observe, Roster, Servers, has_first_attempt},
    tasks::{self, Tasks},
};
use crate::{
    auth::Auth,
    base::run_blocking,
    catalog::{Cache, Collision, Exposed, Presence, ServerId, Snapshot},
    config::{Config, Mask, ServerConfig, Settings, Wrapping},
    protocol::{offered_capabilities, routed_capabilities},
    surface::shortened,
    upstream::{Audience as Notified, Context, HttpClient, Watchdog},
    wire::{Raw, edit},
};

pub struct Fleet {
    pub(super) this: Weak<Self>,
    pub(super) context: Context,
    pub(super) servers: Servers,
    pub(super) board: Board,
    /// The file of remembered loads, if loads are remembered.
    remembered: Option<RememberedLoads>,
    pub(super) audience: Audience,
    pub(super) in_flight: InFlight,
    pub(super) asking: Asking,
    pub(super) tasks: Tasks,
    pub(super) listings: Listings,
    pub(super) memory: Memory,
    pub(super) results: Results,
    pub(super) logins: Logins,
    pub(super) events: Events,
}

/// The places for what outlives a fleet; none by default.
#[derive(Debug, Default)]
pub struct Storage {
    pub catalogs: Option<Cache>,
    /// The file with the names of loaded servers.
    pub loads: Option<PathBuf>,
}

/// Maximum number of collisions of names in the log at once, and characters of each.
const MAX_REPORTED: usize = 100;
const MAX_REPORT: usize = 500;
/// Maximum number of extensions of all servers that a host is told of.
const MAX_EXTENSIONS: usize = 1000;

impl Fleet {
    /// Creates the fleet; connects no server.
    pub fn new(config: Config, watchdog: &Watchdog, storage: Storage, auth: Auth) -> Arc<Self> {
        let Config { settings, servers, .. } = config;
        let context = Context {
            max_message_bytes: settings.max_message_bytes,
            lineage: settings.lineage.clone(),
            watchdog: watchdog.clone(),
            http: HttpClient::default(),
            auth,
            catalog_ttl: settings.catalog_ttl,
            reads_lists: settings.wrapping != Wrapping::Exclusive,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let settings = Arc::new(settings);
        let memory = Memory::new(storage.catalogs);
        let remembered = storage.loads.filter(|_| settings.remember_loads);
        let remembered = remembered.map(RememberedLoads::at);
        let asking = Asking::new(context.tasks.clone(), context.stop.clone());
        let fleet = Arc::new_cyclic(|this| {
            let fleet = this.clone();
            let observe: Observe = Box::new(move |instance| {
                Arc::new(InstanceObserver { fleet: fleet.clone(), instance })
            });
            let servers = Servers::new(context.clone(), observe, servers, |id, config| {
                memory.adopt(id, config);
                has_first_attempt(config) && memory.was_hung(id)
            });
            let snapshot = Snapshot::new(settings, &servers.roster().configs());
            Self {
                this: this.clone(),
                context,
                servers,
                board: Board::new(snapshot),
                remembered,
                audience: Audience::default(),
                in_flight: InFlight::default(),
                asking,
                tasks: Tasks::default(),
                listings: Listings::default(),
                memory,
                results: Results::default(),
                logins: Logins::new(),
                events: Events::default(),
            }
        });
        memory::seed(&fleet, |_| true);
        fleet
    }

    /// Connects the eager servers in the background, learns what the hybrid ones have, and loads
    /// again what was loaded when dormouse last ended.
    pub fn start(&self) {
        let remembered = self.remembered.as_ref().map(RememberedLoads::read).unwrap_or_default();
        self.servers.begin(self.audience.first_era(), |name| remembered.contains(name));
    }

    /// Ends all servers, and waits until every task has ended.
    pub async fn stop(&self) {
        self.context.stop.cancel();
        self.end_logins();
        self.asking.clear();
        self.context.tasks.close();
        self.context.tasks.wait().await;
        self.context.auth.end().await;
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.board.settings()
    }

    /// Returns the endpoint of a host that names none.
    pub fn endpoint(&self) -> Endpoint {
        let settings = self.settings();
        let is_wrapped = settings.wrapping != Wrapping::None;
        let only = is_wrapped.then(|| self.servers.roster().ids().next()).flatten();
        Endpoint { surface: settings.surface, only }
    }

    /// Returns the id and config of the enabled server of this name.
    pub fn find(&self, name: &str) -> Option<(ServerId, Arc<ServerConfig>)> {
        self.servers.find(name)
    }

    /// Returns the bearer tokens that open only the endpoints of one server, by its name.
    pub fn tokens_of_servers(&self) -> Vec<(String, Vec<String>)> {
        let roster = self.servers.roster();
        let configs = roster.all().map(|(_, slot)| &slot.config);
        let with_tokens = configs.filter(|config| !config.auth_tokens.is_empty());
        with_tokens.map(|config| (config.name.clone(), config.auth_tokens.clone())).collect()
    }

    /// Returns the definition of the tool that is listed under this name.
    pub fn listed_tool(&self, endpoint: Endpoint, name: &str) -> Option<Raw> {
        let snapshot = self.board.snapshot_at(endpoint);
        let (_, tool) = snapshot.tool(snapshot.listed(name)?);
        Some(tool.raw.clone())
    }

    /// Returns the `instructions` for a host that connects now.
    pub fn instructions(&self, host: &dyn Host) -> String {
        let viewer = Viewer::of(host);
        self.board.view(viewer, &self.board.snapshot_for(viewer)).instructions()
    }

    /// Returns the capabilities for a host that connects now and requests the revision `version`:
    /// the common ones, and those beyond them of servers whose catalog is known.
    pub fn capabilities(&self, host: &dyn Host, version: &str) -> Raw {
        let mut offered = Raw::encode(&offered_capabilities());
        let snapshot = self.board.snapshot_for(Viewer::of(host));
        if host.endpoint().only.is_some() {
            for exposed in snapshot.servers.iter().filter_map(|server| server.exposed()) {
                offered = with_missing(&offered, &exposed.catalog.greeting.capabilities);
            }
            return offered;
        }
        offered = with_missing(&offered, &Raw::encode(&routed_capabilities(version)));
        let live = snapshot.live();
        let of_servers = live.map(|(_, _, exposed)| &exposed.catalog.greeting.capabilities);
        let extensions: HashMap<String, Raw> = of_servers
            .filter_map(|capabilities| edit::get(capabilities, "extensions"))
            .flat_map(|extensions| edit::entries(&extensions))
            .take(MAX_EXTENSIONS)
            .collect();
        let mut extensions: Vec<(&str, &Raw)> =
            extensions.iter().map(|(name, value)| (name.as_str(), value)).collect();
        extensions.sort_unstable_by_key(|(name, _)| *name);
        if extensions.is_empty() {
            return offered;
        }
        edit::set_within(&offered, "extensions", &extensions)
    }

    /// Returns the instance of a server that a caller uses.
    pub(super) fn instance(&self, server: ServerId, caller: &Caller) -> Instance {
        self.servers.instance(server, caller.host.principal())
    }

    /// Ends everything that belongs to this principal alone.
    pub fn end_instances_of(&self, owner: Principal) {
        self.board.forget(owner);
        self.results.forget(owner);
        tasks::unsubscribe(self, self.tasks.forget(owner));
        self.servers.stop_owned_by(owner);
    }

    /// Waits for the first attempts of eager and hybrid servers, but not beyond `startupWait`.
    /// Remembers servers that hang, so that the next start does not wait for them.
    pub(super) async fn started(&self) {
        let hung = self.servers.started(self.settings().startup_wait).await;
        let Some(fleet) = self.this.upgrade().filter(|_| !hung.is_empty()) else { return };
        self.context.tasks.spawn(run_blocking(move || {
            for server in hung {
                fleet.memory.note_hung(server, true);
            }
        }));
    }

    /// Adds the known catalogs of servers that have not been loaded, as `roster` has them. Hosts
    /// are not told: these catalogs show only in answers.
    pub(super) fn publish_recalled(
        &self,
        roster: &Arc<Roster>,
        known: Vec<(ServerId, Arc<Exposed>)>,
    ) {
        let publication = self.board.publish();
        if Arc::ptr_eq(&self.servers.roster(), roster) {
            publication.recall(known);
        }
    }

    /// Logs what two servers list both, with secrets masked. `is_new` takes positions in the
    /// snapshot.
    fn report_collisions(&self, snapshot: &Snapshot, is_new: impl Fn(usize) -> bool) {
        for Collision { servers, text } in
            snapshot.collisions(is_new).into_iter().take(MAX_REPORTED)
        {
            let mask = |text: String, server: usize| {
                Mask::of(&self.servers.config(snapshot.servers[server].id)).masked(&text)
            };
            let text = servers.into_iter().fold(text, mask);
            tracing::warn!("{}", shortened(&text, MAX_REPORT));
        }
    }

    /// Publishes the last catalogs of hybrid servers. Hosts are not told: the catalogs are there
    /// from the start.
    pub(super) fn publish_seeds(&self, seeds: Vec<(ServerId, Arc<Exposed>)>) {
        if seeds.is_empty() {
            return;
        }
        let publication = self.board.publish();
        let seeded = publication.seed(seeds);
        self.report_collisions(&seeded, |_| true);
        self.events.send(Event::Published);
    }

    /// Remembers why a load failed. Hosts are not told: the caller of the load is.
    pub(super) fn note_failure(&self, from: Instance, cause: String) {
        let publication = self.board.publish();
        if self.servers.is_current(from) {
            publication.fail(from.server, cause);
        }
    }

    /// Swaps the snapshot, and announces the difference before another publication. Reports of an
    /// instance whose config has changed are ignored.
    pub(super) fn publish(
        &self,
        from: Instance,
        notified: Notified,
        presence: impl FnOnce(&Presence) -> Option<Presence>,
    ) {
        let publication = self.board.publish();
        if !self.servers.is_current(from) {
            return;
        }
        let server = from.server;
        let Some(published) = publication.present(server, presence) else { return };
        if published.is_loaded {
            self.remember_load(server);
        }
        if published.is_new {
            self.report_collisions(&published.snapshot, |at| at == published.position);
        }
        self.events.send(Event::Published);
        if !published.changes.any() {
            return;
        }
        let is_spared = |host: &dyn Host| match notified {
            Notified::All => false,
            Notified::Unaware => host.endpoint().passes_through() == Some(server),
            Notified::NotListing => self.audience.is_listing(host.id()),
        };
        self.audience.announce(published.changes, |host| {
            self.board.concerns(Viewer::of(host), server, &published.presence) && !is_spared(host)
        });
    }

    /// Remembers a load for the next run.
    fn remember_load(&self, server: ServerId) {
        let Some(remembered) = self.remembered.clone() else { return };
        let name = self.servers.config(server).name.clone();
        self.context.tasks.spawn(run_blocking(move || {
            if let Err(error) = remembered.add(name) {
                let path = remembered.path().display();
                tracing::warn!(%path, %error, "cannot remember what is loaded");
            }
        }));
    }

    /// Notes a load of a host, and tells the host if the load is new to it alone.
    pub(super) fn loaded_by(&self, principal: Principal, server: ServerId) {
        if let Some(changes) = self.board.load(principal, server) {
            self.audience.announce(changes, |host| {
                host.principal() == principal && host.endpoint().shows(server)
            });
        }
    }
}
