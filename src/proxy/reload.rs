//! Putting another config in force without a restart.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Event, Fleet, Viewer,
    board::PastSnapshot,
    catalogs,
    servers::{Roster, Slot, SlotConfig},
};
use crate::{
    catalog::{CatalogKey, LoadOrigin, Presence, ServerId, Snapshot},
    config::{Config, Profiles, ServerConfig, Settings, Startup},
    protocol::Era,
};

/// The changes of a reload, by the names of servers.
#[derive(Debug, Default)]
pub(crate) struct Reloaded {
    pub added: Vec<String>,
    /// Servers that are started again.
    pub changed: Vec<String>,
    /// Servers whose connection stays, and whose presentation differs.
    pub shown_differently: Vec<String>,
    pub removed: Vec<String>,
    pub are_settings_new: bool,
    /// Keys that take effect only at the next start.
    pub at_next_start: Vec<String>,
}

impl Reloaded {
    /// Returns whether the reload has changed anything.
    pub(crate) fn is_change(&self) -> bool {
        let names = [&self.added, &self.changed, &self.shown_differently, &self.removed];
        self.are_settings_new || names.iter().any(|names| !names.is_empty())
    }
}

/// The effect of a reload on a server of the new config.
enum ServerChange {
    /// Its connection and its state stay.
    Kept {
        is_shown_differently: bool,
    },
    /// A new instance is started. `stays_live`: its catalog stays published, because nothing has
    /// changed that decides about it.
    Restarted {
        was: Slot,
        stays_live: bool,
    },
    Added,
}

struct Difference {
    roster: Roster,
    server_changes: BTreeMap<ServerId, ServerChange>,
    removed: Vec<(ServerId, Slot)>,
}

impl Difference {
    fn keeps_connection(&self, id: ServerId) -> bool {
        matches!(self.server_changes.get(&id), Some(ServerChange::Kept { .. }))
    }

    fn stays_live(&self, id: ServerId) -> bool {
        let change = self.server_changes.get(&id);
        matches!(
            change,
            Some(ServerChange::Kept { .. } | ServerChange::Restarted { stays_live: true, .. })
        )
    }

    /// Returns the servers that are started now.
    fn started(&self) -> impl Iterator<Item = (ServerId, &Slot)> {
        self.roster.all().filter(|(id, _)| !self.keeps_connection(*id))
    }

    fn report(&self, are_settings_new: bool, at_next_start: Vec<String>) -> Reloaded {
        let mut reloaded = Reloaded { are_settings_new, at_next_start, ..Reloaded::default() };
        for (id, slot) in self.roster.all() {
            let names = match self.server_changes.get(&id) {
                Some(ServerChange::Kept { is_shown_differently: true }) => {
                    &mut reloaded.shown_differently
                }
                Some(ServerChange::Restarted { .. }) => &mut reloaded.changed,
                Some(ServerChange::Added) => &mut reloaded.added,
                Some(ServerChange::Kept { is_shown_differently: false }) | None => continue,
            };
            names.push(slot.config.name.clone());
        }
        let removed = self.removed.iter().map(|(_, slot)| slot.config.name.clone());
        Reloaded { removed: removed.collect(), ..reloaded }
    }
}

impl Fleet {
    /// Puts another config in force. Servers whose connection it does not concern keep their
    /// connection and what is in flight; others finish what is in flight, and are started again or
    /// removed. Hosts are told of changed lists. Reads from disk.
    pub(crate) fn reload(&self, config: Config) -> Reloaded {
        reload_with(self, None, |_| config)
    }
}

/// Starts a server again with its present config.
pub(super) fn restart_server(fleet: &Fleet, name: &str) {
    reload_with(fleet, Some(name), |fleet| {
        let roster = fleet.servers.roster();
        let servers = roster.all().map(|(_, slot)| slot.config.as_ref().clone()).collect();
        Config { settings: fleet.settings().as_ref().clone(), servers }
    });
}

/// Puts a config in force. `restart` names a server to start again even if its entry is unchanged.
/// `config` is called while no other reload can run.
fn reload_with(
    fleet: &Fleet,
    restart: Option<&str>,
    config: impl FnOnce(&Fleet) -> Config,
) -> Reloaded {
    let publication = fleet.board.publish();
    let Config { settings: wanted, servers } = config(fleet);
    let before = fleet.board.snapshot();
    let difference = difference(fleet, &before, servers, &wanted.profiles, restart);
    let (settings, at_next_start) = wanted.adopted(&before.settings);
    // Changes of profiles are told by the servers that they concern.
    let profiles = settings.profiles.clone();
    let are_settings_new = settings != Settings { profiles, ..before.settings.as_ref().clone() };
    let after = reconfigured(fleet, &before, settings, &difference);
    fleet.servers.replace(difference.roster.clone());
    publication.swap(after);
    drop(publication);
    catalogs::seed(fleet, |server| !difference.keeps_connection(server));
    hand_over(fleet, &before, &difference);
    announce_difference(fleet, before);
    fleet.events.send(Event::Reloaded);
    difference.report(are_settings_new, at_next_start)
}

fn difference(
    fleet: &Fleet,
    snapshot: &Snapshot,
    servers: Vec<ServerConfig>,
    profiles: &Profiles,
    restart: Option<&str>,
) -> Difference {
    let before = fleet.servers.roster();
    let mut server_changes = BTreeMap::new();
    let roster = before.reconfigured(servers, profiles, |id, was, version, now| {
        let mut offers = snapshot.offers_of(id);
        let is_evicted = offers.any(|(_, offer)| matches!(offer.presence, Presence::Evicted));
        let is_live = snapshot.offers_of(id).any(|(_, offer)| offer.presence.origin().is_some());
        let (change, slot) = match was {
            // An evicted server is tried again after any change of its entry.
            Some(was)
                if restart != Some(&now.shown.name)
                    && now.shown.has_same_connection(&was.shown)
                    && (!is_evicted || now.shown == was.shown) =>
            {
                let is_shown_differently = now.shown != was.shown;
                let SlotConfig { config, shown } = now;
                (ServerChange::Kept { is_shown_differently }, Slot { config, shown, ..was.clone() })
            }
            was => {
                let change = was.map_or(ServerChange::Added, |was| ServerChange::Restarted {
                    was: was.clone(),
                    stays_live: is_live && has_same_catalog(&now.shown, &was.shown),
                });
                (change, fleet.servers.start(id, version, now))
            }
        };
        server_changes.insert(id, change);
        slot
    });
    let gone = before.all().filter(|(id, _)| !roster.has(*id));
    let removed = gone.map(|(id, slot)| (id, slot.clone())).collect();
    Difference { roster, server_changes, removed }
}

/// Returns the snapshot for a roster that is not in force yet.
fn reconfigured(
    fleet: &Fleet,
    before: &Snapshot,
    settings: Settings,
    difference: &Difference,
) -> Snapshot {
    let roster = &difference.roster;
    for (id, slot) in difference.started() {
        fleet.memory.catalogs.adopt(id, &slot.config);
    }
    before.reconfigured(
        Arc::new(settings),
        &roster.configs(),
        |server| difference.stays_live(server),
        |offer, catalog| fleet.memory.catalogs.expose(offer, catalog),
    )
}

/// Starts new instances, retires old ones, and moves subscriptions from the old to the new.
fn hand_over(fleet: &Fleet, before: &Snapshot, difference: &Difference) {
    let era = fleet.audience.first_era();
    for (id, slot) in difference.started() {
        if let Some(level) = fleet.audience.levels().most_verbose() {
            slot.upstream.want_log_level(level);
        }
        let mut offers = before.offers_of(id);
        let was_loaded =
            offers.any(|(_, offer)| offer.presence.origin() == Some(LoadOrigin::HostsRequest));
        if slot.shown.has_first_attempt() {
            fleet.servers.expect_first_attempt();
        }
        if was_loaded && slot.shown.enabled && slot.config.startup == Startup::Lazy {
            // A server that hosts have loaded stays loaded if its catalog is known.
            slot.upstream.restore();
        } else {
            slot.begin(era);
        }
        if let Some(ServerChange::Restarted { was, .. }) = difference.server_changes.get(&id) {
            move_subscriptions(fleet, id, was.version, slot, era);
            was.upstream.retire();
        }
    }
    for (id, was) in &difference.removed {
        fleet.memory.catalogs.forget(*id);
        was.upstream.retire();
    }
    fleet.calls.consents.retain(|server| difference.keeps_connection(server));
    fleet.calls.logins.close_all_but(|server| difference.keeps_connection(server));
    fleet.extensions.lists.retain(|server| difference.keeps_connection(server));
    fleet.servers.owned().retire(|instance| difference.keeps_connection(instance.server));
}

/// Moves the subscriptions of a server to its new instances. The shared instance is connected for
/// them; an instance of one host takes them over when it is made.
fn move_subscriptions(fleet: &Fleet, server: ServerId, from: u32, slot: &Slot, era: Era) {
    let moved = fleet
        .audience
        .subscriptions()
        .move_to(slot.version, |instance| instance.server == server && instance.version == from);
    let mut is_wanted = false;
    for (_, uri) in moved.iter().filter(|(instance, _)| instance.owner.is_none()) {
        slot.upstream.restore_subscription(uri);
        is_wanted = true;
    }
    if is_wanted && slot.shown.enabled {
        slot.upstream.begin(era);
    }
}

/// Tells each host which of its lists have changed.
fn announce_difference(fleet: &Fleet, before: Arc<Snapshot>) {
    let before = PastSnapshot::new(before);
    fleet.audience.announce_each(|host| fleet.board.changes_since(&before, &Viewer::of(host)));
}

/// Returns whether the catalog of a server, and who sees it, is the same with both configs.
fn has_same_catalog(now: &ServerConfig, was: &ServerConfig) -> bool {
    now.enabled && now.startup == was.startup && CatalogKey::of(now) == CatalogKey::of(was)
}
