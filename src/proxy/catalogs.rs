//! The catalogs of servers and the pins of their tools, from one run to the next.

use std::sync::Arc;

use super::{Fleet, audience::first_era, declared, instance::Instance, publishing};
use crate::{
    base::run_blocking,
    catalog::{Offer, Presence, ServerId, Snapshot},
    config::Startup,
    upstream::{ChangeAudience, Phase, Recalled, declared_names},
};

/// Checks whether withheld tools have been approved since.
pub(super) async fn reexamine(fleet: &Fleet, server: ServerId) {
    let Some(owned) = fleet.this.upgrade() else { return };
    let reading = run_blocking(move || reread_pins(&owned, server));
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}

/// Compares with the pins that are stored now.
pub(super) fn reread_pins(fleet: &Fleet, server: ServerId) {
    fleet.memory.catalogs.reread_pins(server);
    expose_again(fleet, server);
}

fn expose_again(fleet: &Fleet, server: ServerId) {
    let (roster, snapshot) = (fleet.servers.roster(), fleet.board.snapshot());
    let known = snapshot.offers_of(server).filter_map(|(_, offer)| {
        Some((offer.id, fleet.memory.catalogs.expose(offer, &offer.known.as_ref()?.whole)))
    });
    let known: Vec<_> = known.collect();
    if !known.is_empty() {
        publishing::publish_known(fleet, &roster, known);
    }
    publishing::publish(fleet, roster.shared(server), ChangeAudience::All, |offer| {
        let Presence::Live { exposed, origin } = &offer.presence else { return None };
        let exposed = fleet.memory.catalogs.expose(offer, &exposed.whole);
        Some(Presence::Live { exposed, origin: *origin })
    });
}

/// Returns what an instance had when it was last connected.
pub(super) fn recall(fleet: &Fleet, instance: Instance) -> Option<Recalled> {
    let declared = declared(fleet, instance);
    let record = fleet.memory.catalogs.read(instance.server, &declared)?;
    let is_sufficient = record.covers(&declared);
    let age = record.learned.elapsed().unwrap_or_default();
    Some(Recalled { catalog: Arc::new(record.catalog), age, is_sufficient })
}

fn declared(fleet: &Fleet, instance: Instance) -> Vec<String> {
    let era = first_era(&fleet.hosts_of(instance));
    declared_names(&declared::capabilities_for(fleet, instance, era))
}

/// Publishes the last catalogs of hybrid servers before any host has declared its capabilities.
/// `is_meant`: the server is new in the config.
pub(super) fn seed(fleet: &Fleet, is_meant: impl Fn(ServerId) -> bool) {
    let roster = fleet.servers.roster();
    let hybrid = roster.all().filter(|(server, slot)| {
        let is_hybrid = slot.config.startup == Startup::Hybrid;
        is_meant(*server) && is_hybrid && slot.shown.has_first_attempt()
    });
    let snapshot = fleet.board.snapshot();
    let mut seeds = Vec::new();
    for (server, _) in hybrid {
        let Some(catalog) = fleet.memory.catalogs.seed(server) else { continue };
        let offers = snapshot.offers_of(server);
        seeds.extend(
            offers.map(|(_, offer)| (offer.id, fleet.memory.catalogs.expose(offer, &catalog))),
        );
    }
    publishing::publish_seeds(fleet, seeds);
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
        let mut known = Vec::new();
        for server in roster.ids() {
            let mut unloaded = unloaded_offers(&snapshot, server).peekable();
            if unloaded.peek().is_none() {
                continue;
            }
            let Some(Recalled { catalog, .. }) = recall(&owned, roster.shared(server)) else {
                continue;
            };
            let exposed = |offer: &Offer| (offer.id, owned.memory.catalogs.expose(offer, &catalog));
            known.extend(unloaded.map(exposed));
        }
        if owned.memory.catalogs.is_cut_off() {
            // The next list reads them again.
            publishing::publish_known(&owned, &roster, known);
        } else {
            publishing::publish_recalled(&owned, &roster, known);
        }
    });
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}

/// Returns the offers of a server that are not loaded.
fn unloaded_offers(snapshot: &Snapshot, server: ServerId) -> impl Iterator<Item = &Offer> {
    let offers = snapshot.offers_of(server).map(|(_, offer)| offer);
    offers.filter(|offer| matches!(offer.presence, Presence::Offered { .. }))
}

/// Shows the catalog of a server that another process has stored, if this one is not connected to
/// the server.
pub(super) async fn read_stored(fleet: &Fleet, server: ServerId) {
    let Some(owned) = fleet.this.upgrade() else { return };
    let reading = run_blocking(move || {
        let (roster, snapshot) = (owned.servers.roster(), owned.board.snapshot());
        let upstream = owned.servers.shared(server);
        let has_unloaded = unloaded_offers(&snapshot, server).next().is_some();
        let is_asleep = upstream.status().phase == Phase::Asleep;
        let is_shown = is_asleep || snapshot.is_recalled && has_unloaded;
        if !is_shown {
            return;
        }
        let Some(recalled) = recall(&owned, roster.shared(server)) else { return };
        let is_other = |offer: &&Offer| {
            let known = offer.known.as_ref().map(|known| &known.whole);
            known.is_none_or(|known| !known.lists_the_same_as(&recalled.catalog))
        };
        let others = unloaded_offers(&snapshot, server).filter(is_other);
        let catalogs = &owned.memory.catalogs;
        let exposed = |offer: &Offer| (offer.id, catalogs.expose(offer, &recalled.catalog));
        let known: Vec<_> = others.map(exposed).collect();
        if snapshot.is_recalled && !known.is_empty() {
            publishing::publish_known(&owned, &roster, known);
        }
        upstream.adopt(recalled);
    });
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}

/// Learns all that is known of servers: of those that are being connected, and of those that have
/// not been loaded.
pub(super) async fn learn_all(fleet: &Fleet) {
    wait_for_first_attempts(fleet).await;
    recall_all(fleet).await;
}

/// Waits for the first attempts of eager and hybrid servers, but not beyond `startupWait`.
/// Remembers servers that hang, so that the next start does not wait for them.
pub(super) async fn wait_for_first_attempts(fleet: &Fleet) {
    let hung = fleet.servers.started(fleet.settings().loading.startup_wait).await;
    let Some(owned) = fleet.this.upgrade().filter(|_| !hung.is_empty()) else { return };
    fleet.context.tasks.spawn(run_blocking(move || {
        for server in hung {
            owned.memory.catalogs.note_hung(server, true);
        }
    }));
}
