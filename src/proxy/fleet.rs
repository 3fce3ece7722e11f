//! All servers and the one live snapshot of what they have.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Host, HostId, questions};
use crate::{
    catalog::{Origin, Presence, ServerCatalog, Snapshot},
    config::{Config, Listing, Settings, Startup},
    protocol::Era,
    surface::View,
    upstream::{Observer, Question, Upstream, Watchdog},
    wire::{Id, Notification, Raw, edit},
};

/// How long one message of a server waits for a host that does not read.
const PATIENCE_WITH_HOST: Duration = Duration::from_secs(5);

pub struct Fleet {
    pub(super) settings: Settings,
    /// Set once, right after the fleet is made: each server's actor holds the fleet as its observer.
    upstreams: OnceLock<Vec<Upstream>>,
    snapshot: ArcSwap<Snapshot>,
    // A std mutex: orders publications and their announcements; nothing is awaited under it.
    publishing: Mutex<()>,
    // A std mutex: held to copy or edit the list.
    hosts: Mutex<Vec<Weak<dyn Host>>>,
    /// Eager servers whose first attempt is not over.
    starting: watch::Sender<usize>,
    started_at: Instant,
    pub(super) subscribers: Mutex<Subscribers>,
    pub(super) tasks: TaskTracker,
    stop: CancellationToken,
}

/// Who wants to hear of a resource of a server.
pub(super) type Subscribers = HashMap<(usize, String), HashSet<Subscriber>>;

/// A legacy host, or one stream of a modern one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subscriber {
    pub host: HostId,
    /// The id of the `subscriptions/listen` request.
    pub stream: Option<Id>,
}

impl Fleet {
    /// Makes the fleet. Nothing is connected.
    pub fn new(config: Config, watchdog: &Watchdog) -> Arc<Self> {
        let Config { settings, servers } = config;
        let eager = servers.iter().filter(|s| s.enabled && s.startup == Startup::Eager).count();
        let snapshot = Snapshot::new(&servers, settings.single_server);
        let fleet = Arc::new(Self {
            settings,
            upstreams: OnceLock::new(),
            snapshot: ArcSwap::from_pointee(snapshot),
            publishing: Mutex::default(),
            hosts: Mutex::default(),
            starting: watch::Sender::new(eager),
            started_at: Instant::now(),
            subscribers: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let start = |(server, config)| {
            Upstream::start(
                server,
                config,
                fleet.clone() as Arc<dyn Observer>,
                fleet.settings.max_message_bytes,
                watchdog.clone(),
                &fleet.tasks,
                fleet.stop.child_token(),
            )
        };
        let upstreams: Vec<Upstream> = servers.into_iter().enumerate().map(start).collect();
        if fleet.upstreams.set(upstreams).is_err() {
            unreachable!("the fleet has just been made");
        }
        fleet
    }

    /// Connects the eager servers in the background.
    pub fn start_eager(&self) {
        for upstream in self.upstreams() {
            if upstream.config().enabled && upstream.config().startup == Startup::Eager {
                upstream.begin(Era::Legacy);
            }
        }
    }

    /// Ends every server, and waits until all that was started is gone.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The `instructions` for a host that connects now.
    pub fn instructions(&self) -> String {
        View { snapshot: &self.snapshot(), settings: &self.settings }.instructions()
    }

    pub(super) fn upstreams(&self) -> &[Upstream] {
        self.upstreams.get().map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn upstream(&self, server: usize) -> &Upstream {
        &self.upstreams()[server]
    }

    /// Waits for eager servers that are still on their first attempt, but not beyond `startupWait`.
    pub(super) async fn started(&self) {
        let mut starting = self.starting.subscribe();
        let all = starting.wait_for(|starting| *starting == 0);
        // Late ones are announced when they come.
        let _ = tokio::time::timeout_at(self.started_at + self.settings.startup_wait, all).await;
    }

    pub fn attach(&self, host: &Arc<dyn Host>) {
        self.lock_hosts().push(Arc::downgrade(host));
    }

    pub(super) fn hosts(&self) -> Vec<Arc<dyn Host>> {
        let mut hosts = self.lock_hosts();
        hosts.retain(|host| host.strong_count() > 0);
        hosts.iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn remove_host(&self, id: HostId) {
        self.lock_hosts().retain(|host| host.upgrade().is_some_and(|host| host.id() != id));
    }

    fn lock_hosts(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn Host>>> {
        self.hosts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Swaps the snapshot, and announces what differs before anything else can be published.
    fn publish(
        &self,
        server: usize,
        announce: Announce,
        presence: impl FnOnce(&Presence) -> Option<Presence>,
    ) {
        let _order = self.publishing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = self.snapshot.load();
        let Some(presence) = presence(&before.servers[server].presence) else { return };
        let is_listed = match self.settings.listing {
            Listing::Growing => true,
            Listing::Stable => {
                matches!(presence, Presence::Live { origin: Origin::OwnAccord, .. })
            }
        };
        let was_live = matches!(before.servers[server].presence, Presence::Live { .. });
        let (after, changes) = before.with(server, presence);
        if !was_live {
            for collision in after.collisions(server) {
                tracing::warn!("{collision}");
            }
        }
        self.snapshot.store(Arc::new(after));
        if announce == Announce::Yes && is_listed && changes.any() {
            for host in self.hosts() {
                host.announce(changes);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Announce {
    Yes,
    /// A host has just asked for the list, and must not be told to ask again.
    No,
}

impl Observer for Fleet {
    fn live(&self, server: usize, catalog: Arc<ServerCatalog>, origin: Option<Origin>) {
        let announce = if origin.is_some() { Announce::Yes } else { Announce::No };
        self.publish(server, announce, |before| {
            let origin = match before {
                // Whose doing it was that a server is live does not change while it is.
                Presence::Live { origin, .. } => *origin,
                _ => origin.unwrap_or(Origin::OwnAccord),
            };
            Some(Presence::Live { catalog, origin })
        });
    }

    fn unreachable(&self, server: usize, cause: String) {
        self.publish(server, Announce::Yes, |before| match before {
            // What is known of it stays: a call tries to reach it again.
            Presence::Live { .. } | Presence::Evicted | Presence::Disabled => None,
            Presence::Offered { .. } => Some(Presence::Offered { trouble: Some(cause) }),
        });
    }

    fn evicted(&self, server: usize) {
        self.publish(server, Announce::Yes, |_| Some(Presence::Evicted));
    }

    fn first_attempt_over(&self, _server: usize) {
        self.starting.send_modify(|starting| *starting = starting.saturating_sub(1));
    }

    fn notification(&self, server: usize, notification: Notification) {
        self.relay(server, &notification);
    }

    fn question(&self, question: Question) {
        questions::ask(self, question);
    }

    fn capabilities(&self, era: Era) -> Raw {
        let hosts = self.hosts();
        let is_sole = hosts.len() == 1;
        let clients = hosts.iter().filter_map(|host| host.client());
        let mut union = Raw::empty_object();
        for client in clients.filter(|client| client.era == era) {
            for (name, value) in edit::entries(&client.capabilities) {
                if edit::get(&union, &name).is_none() {
                    union = edit::set(&union, &name, &value);
                }
            }
        }
        // The roots of one host are nothing that another's server should work in.
        if is_sole { union } else { edit::without(&union, &["roots"]) }
    }

    fn is_congested(&self) -> bool {
        self.lock_hosts().iter().filter_map(Weak::upgrade).any(|host| host.peer().is_full())
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            for host in self.hosts() {
                host.peer().ready(PATIENCE_WITH_HOST).await;
            }
        })
    }
}
