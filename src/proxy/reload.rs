//! Another config in the place of the one that is in force, without stopping (DESIGN.md section 6).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Fleet,
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
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
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
        let is_live = |id| {
            snapshot.view(id).is_some_and(|view| matches!(view.presence, Presence::Live { .. }))
        };
        let roster = before.reconfigured(servers, |id, was, version, config| match was {
            Some(was) if config.has_same_connection(&was.config) => {
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
                        if has_same && config.enabled && is_live(id) {
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
            if was_loaded && slot.config.startup == Startup::Lazy {
                // What hosts have loaded stays loaded where it is known what that comes to.
                slot.upstream.restore();
            } else {
                slot.begin(era);
            }
        }
        for (id, was) in &difference.changed {
            let slot = difference.roster.slot(*id);
            self.move_subscriptions(*id, was.version, slot.version, &slot.upstream);
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

    /// Those of shared instances; a host's own instance goes with them.
    fn move_subscriptions(&self, server: ServerId, from: u32, to: u32, upstream: &Upstream) {
        let at = |version| Instance { server, version, owner: None };
        let mut subscribers = self.lock_subscribers();
        let moved: Vec<String> = subscribers
            .keys()
            .filter(|(instance, _)| *instance == at(from))
            .map(|(_, uri)| uri.clone())
            .collect();
        for uri in moved {
            if let Some(of) = subscribers.remove(&(at(from), uri.clone())) {
                upstream.want(&uri);
                subscribers.insert((at(to), uri), of);
            }
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
