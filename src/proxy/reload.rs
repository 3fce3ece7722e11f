//! Another config in the place of the one that is in force, without stopping (DESIGN.md section 6).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Fleet,
    fleet::has_first_attempt,
    instance::Instance,
    roster::{Roster, Slot},
};
use crate::{
    catalog::{CatalogKey, Changes, Origin, Presence, ServerId, Snapshot},
    config::{Config, ServerConfig, Settings, Startup},
    protocol::Era,
    upstream::Upstream,
};

/// What a reload has changed, by the names of servers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub added: Vec<String>,
    /// Started anew.
    pub changed: Vec<String>,
    /// Only shown otherwise; their connections stay.
    pub shown_otherwise: Vec<String>,
    pub removed: Vec<String>,
    pub are_settings_new: bool,
    /// Settings that are in force from the next start on.
    pub at_next_start: Vec<&'static str>,
}

impl Reloaded {
    /// Whether anything is otherwise now.
    pub fn is_change(&self) -> bool {
        let names = [&self.added, &self.changed, &self.shown_otherwise, &self.removed];
        self.are_settings_new || names.iter().any(|names| !names.is_empty())
    }
}

/// What becomes of the servers.
struct Difference {
    roster: Roster,
    /// Their connections and states stay.
    kept: Vec<ServerId>,
    /// Started anew, and live with what they had before: nothing that decides that has changed.
    carried: Vec<ServerId>,
    /// Were there before, and are started anew.
    changed: Vec<(ServerId, Slot)>,
    removed: Vec<Slot>,
    reloaded: Reloaded,
}

impl Fleet {
    /// Takes another config. Servers whose connection it does not concern keep that, and what is in flight; others finish
    /// what is in flight, and are started anew or not at all. Hosts whose lists that changes are told. It reads
    /// from disk.
    pub fn reload(&self, config: Config) -> Reloaded {
        let Config { settings, servers, .. } = config;
        // One at a time.
        let publishing = self.publishing.lock();
        let order = publishing.unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = self.snapshot();
        let settings = with_fixed(&settings, &before.settings);
        let mut difference = self.difference(servers);
        difference.reloaded.are_settings_new = settings.0 != *before.settings;
        difference.reloaded.at_next_start = settings.1;
        let settings = Arc::new(settings.0);
        let configs = difference.roster.all().map(|(id, slot)| (id, slot.config.clone()));
        let configs: BTreeMap<ServerId, Arc<ServerConfig>> = configs.collect();
        let numbered: Vec<(ServerId, &ServerConfig)> =
            difference.roster.ids().map(|id| (id, configs[&id].as_ref())).collect();
        for (id, config) in numbered.iter().filter(|(id, _)| !difference.kept.contains(id)) {
            self.memory.adopt(*id, config);
        }
        let is_kept = |id| difference.kept.contains(&id) || difference.carried.contains(&id);
        let after = before.reconfigured(settings, &numbered, is_kept, |id, catalog, naming| {
            self.expose_as(id, catalog, &configs[&id], naming)
        });
        self.roster.store(Arc::new(difference.roster.clone()));
        self.snapshot.store(Arc::new(after));
        drop(order);
        self.seed();
        self.hand_over(&before, &difference);
        self.announce_difference(&before);
        difference.reloaded
    }

    fn difference(&self, servers: Vec<ServerConfig>) -> Difference {
        let before = self.roster();
        let (mut kept, mut carried, mut changed) = <(Vec<_>, Vec<_>, Vec<_>)>::default();
        let mut reloaded = Reloaded::default();
        let snapshot = self.snapshot();
        let presence = |id| snapshot.view(id).map(|view| &view.presence);
        let is_live = |id| matches!(presence(id), Some(Presence::Live { .. }));
        // Whatever is changed of it, it is to be tried again.
        let is_evicted = |id| matches!(presence(id), Some(Presence::Evicted));
        let roster = before.reconfigured(servers, |id, was, version, config| match was {
            Some(was)
                if config.has_same_connection(&was.config)
                    && (!is_evicted(id) || config == was.config) =>
            {
                kept.push(id);
                if config != was.config {
                    reloaded.shown_otherwise.push(config.name.clone());
                }
                Slot { config, ..was.clone() }
            }
            was => {
                match was {
                    Some(was) => {
                        let has_same = CatalogKey::of(&was.config) == CatalogKey::of(&config);
                        // Who sees that a server is live depends on who has made it so.
                        let is_as_before = config.startup == was.config.startup;
                        if has_same && is_as_before && config.enabled && is_live(id) {
                            carried.push(id);
                        }
                        reloaded.changed.push(config.name.clone());
                        changed.push((id, was.clone()));
                    }
                    None => reloaded.added.push(config.name.clone()),
                }
                Slot::start(&self.this, &self.context, id, version, config)
            }
        });
        let is_gone = |id: &ServerId| !roster.ids().any(|other| other == *id);
        let gone = before.all().filter(|(id, _)| is_gone(id));
        let removed: Vec<Slot> = gone.map(|(_, slot)| slot.clone()).collect();
        reloaded.removed = removed.iter().map(|slot| slot.config.name.clone()).collect();
        Difference { roster, kept, carried, changed, removed, reloaded }
    }

    /// Starts what is new, lets what was there before finish, and gives to the one what hosts wanted of the other.
    fn hand_over(&self, before: &Snapshot, difference: &Difference) {
        let client = self.hosts().iter().find_map(|host| host.client());
        let era = client.map_or(Era::Legacy, |client| client.era);
        for (id, slot) in difference.roster.all().filter(|(id, _)| !difference.kept.contains(id)) {
            if let Some(level) = self.levels.most_verbose() {
                slot.upstream.want_log_level(level);
            }
            let was_loaded = before.view(id).is_some_and(|view| {
                matches!(view.presence, Presence::Live { origin: Origin::HostsRequest, .. })
            });
            if has_first_attempt(&slot.config) {
                self.another_first_attempt();
            }
            if was_loaded && slot.config.startup == Startup::Lazy {
                // What hosts have loaded stays loaded where it is known what that comes to.
                slot.upstream.restore();
            } else {
                slot.begin(era);
            }
        }
        for (id, was) in &difference.changed {
            let slot = difference.roster.slot(*id);
            self.move_subscriptions(*id, was.version, slot.version, &slot.upstream, era);
        }
        for id in difference.removed.iter().filter_map(|was| before.find_id(&was.config.name)) {
            self.memory.forget(id);
        }
        let gone = difference.changed.iter().map(|(_, was)| was).chain(&difference.removed);
        gone.for_each(|was| was.upstream.retire());
        self.lock_own().retain(|instance, upstream| {
            let is_kept = difference.kept.contains(&instance.server);
            if !is_kept {
                upstream.retire();
            }
            is_kept
        });
    }

    /// Gives what hosts want to hear of to the new instances. The shared one is connected for it; a host's own is told
    /// when it is made.
    fn move_subscriptions(
        &self,
        server: ServerId,
        from: u32,
        to: u32,
        upstream: &Upstream,
        era: Era,
    ) {
        let mut subscribers = self.lock_subscribers();
        let of_old = |(instance, _): &&(Instance, String)| {
            instance.server == server && instance.version == from
        };
        let moved: Vec<(Instance, String)> = subscribers.keys().filter(of_old).cloned().collect();
        let mut is_wanted = false;
        for key in moved {
            let Some(of) = subscribers.remove(&key) else { continue };
            let (instance, uri) = key;
            if instance.owner.is_none() {
                upstream.want(&uri);
                is_wanted = true;
            }
            subscribers.insert((Instance { version: to, ..instance }, uri), of);
        }
        drop(subscribers);
        if is_wanted {
            upstream.begin(era);
        }
    }

    /// Tells each host which of its lists are not what they were.
    fn announce_difference(&self, before: &Arc<Snapshot>) {
        let after = self.snapshot();
        for host in self.hosts() {
            let lists = |snapshot: &Arc<Snapshot>| {
                let snapshot = self.seen_from(snapshot.clone(), host.as_ref());
                let listing = snapshot.settings.listing;
                let prompts = snapshot.prompts(listing);
                let prompts = prompts.iter().filter(|prompt| prompt.is_listed);
                let prompts =
                    prompts.map(|prompt| (prompt.name.clone(), prompt.prompt.raw.clone()));
                (
                    host.endpoint().view(&snapshot).tools(),
                    (snapshot.resources(listing), snapshot.templates(listing)),
                    prompts.collect::<Vec<_>>(),
                )
            };
            let (old, new) = (lists(before), lists(&after));
            let changes = Changes {
                tools: old.0 != new.0,
                resources: old.1 != new.1,
                prompts: old.2 != new.2,
            };
            if changes.any() {
                host.announce(changes);
            }
        }
    }
}

/// The settings of another config, with those that cannot change while hosts are served as they are; and which of
/// these the config would have otherwise.
fn with_fixed(wanted: &Settings, now: &Settings) -> (Settings, Vec<&'static str>) {
    let settings = Settings {
        loads: now.loads,
        remember_loads: now.remember_loads,
        catalog_ttl: now.catalog_ttl,
        startup_wait: now.startup_wait,
        max_message_bytes: now.max_message_bytes,
        single_server: now.single_server,
        http: now.http.clone(),
        ..wanted.clone()
    };
    let fixed = [
        ("loads", wanted.loads != now.loads),
        ("rememberLoads", wanted.remember_loads != now.remember_loads),
        ("catalogTtl", wanted.catalog_ttl != now.catalog_ttl),
        ("startupWait", wanted.startup_wait != now.startup_wait),
        ("maxMessageBytes", wanted.max_message_bytes != now.max_message_bytes),
        ("listen", wanted.http.listen != now.http.listen),
        ("authTokens", wanted.http.auth_tokens != now.http.auth_tokens),
        ("allowedHosts", wanted.http.allowed_hosts != now.http.allowed_hosts),
        ("allowedOrigins", wanted.http.allowed_origins != now.http.allowed_origins),
        ("sessionTimeout", wanted.http.session_timeout != now.http.session_timeout),
    ];
    let differing = fixed.into_iter().filter(|(_, differs)| *differs);
    (settings, differing.map(|(name, _)| name).collect())
}
