//! The publication of snapshots, and the announcement of what they change.

use std::{ptr, sync::Arc};

use super::{
    Fleet, Host, Principal, Viewer, for_log::for_log, instance::Instance, servers::Roster,
};
use crate::{
    base::run_blocking,
    catalog::{
        Changes, Collision, ExposedCatalog, LoadOrigin, Offer, OfferId, Presence, ServerCatalog,
        Snapshot,
    },
    config::Surface,
    upstream::ChangeAudience,
};

/// Maximum number of collisions of names in the log at once.
const MAX_REPORTED: usize = 100;

/// Gives the offers of a server other presences, and announces the difference before another
/// publication. Reports of an instance whose config has changed are ignored.
pub(super) fn publish(
    fleet: &Fleet,
    from: Instance,
    notified: ChangeAudience,
    presence: impl FnMut(&Offer) -> Option<Presence>,
) {
    let publication = fleet.board.publish();
    if !fleet.servers.is_current(from) {
        return;
    }
    let (server, before) = (from.server, fleet.board.snapshot());
    let published = publication.present(server, presence);
    if published.is_empty() {
        return;
    }
    for loaded in published.iter().filter(|published| published.is_loaded()) {
        remember_load(fleet, &loaded.offer);
    }
    let new: Vec<usize> = published.iter().filter(|it| it.is_new).map(|it| it.position).collect();
    if !new.is_empty() {
        report_collisions(fleet, &fleet.board.snapshot(), |position| new.contains(&position));
    }
    let is_spared = |host: &dyn Host| match notified {
        ChangeAudience::All => false,
        ChangeAudience::Unaware => host.endpoint().passes_through() == Some(server),
        ChangeAudience::NotListing => fleet.audience.is_listing(host.id()),
    };
    let known = known_otherwise(&before, &fleet.board.snapshot());
    fleet.audience.announce_each(|host| {
        if is_spared(host) {
            return Changes::default();
        }
        let viewer = Viewer::of(host);
        let concerning = published.iter().filter(|it| fleet.board.concerns(&viewer, &it.offer));
        let changes = concerning.fold(Changes::default(), |changes, it| changes.or(it.changes));
        changes.or(changes_without_load(fleet, &viewer, &known))
    });
}

/// Publishes what an instance has to the offers of its server that are not loaded. The publication
/// of the loaded ones follows.
pub(super) fn publish_connection(fleet: &Fleet, from: Instance, catalog: &Arc<ServerCatalog>) {
    let publication = fleet.board.publish();
    let before = fleet.board.snapshot();
    let is_divided = before.offers_of(from.server).count() > 1;
    if is_divided && fleet.servers.is_current(from) {
        let expose = |offer: &Offer| fleet.memory.catalogs.expose(offer, catalog);
        publication.connect(from.server, expose);
        announce_known(fleet, &before);
    }
}

/// Publishes the last catalogs of hybrid servers. Hosts are not told: the catalogs are there
/// from the start.
pub(super) fn publish_seeds(fleet: &Fleet, seeds: Vec<(OfferId, Arc<ExposedCatalog>)>) {
    if seeds.is_empty() {
        return;
    }
    let publication = fleet.board.publish();
    let seeded = publication.seed(seeds);
    report_collisions(fleet, &seeded, |_| true);
}

/// Adds the known catalogs of servers that have not been loaded, as `roster` has them.
pub(super) fn publish_recalled(
    fleet: &Fleet,
    roster: &Arc<Roster>,
    known: Vec<(OfferId, Arc<ExposedCatalog>)>,
) {
    let publication = fleet.board.publish();
    if Arc::ptr_eq(&fleet.servers.roster(), roster) {
        let before = fleet.board.snapshot();
        publication.recall(known);
        if before.is_recalled {
            announce_known(fleet, &before);
        }
    }
}

/// Announces what is known otherwise than `before` of offers that hosts have not loaded.
fn announce_known(fleet: &Fleet, before: &Snapshot) {
    let known = known_otherwise(before, &fleet.board.snapshot());
    fleet.audience.announce_each(|host| changes_without_load(fleet, &Viewer::of(host), &known));
}

/// Returns the offers whose tools are known otherwise than before.
fn known_otherwise(before: &Snapshot, after: &Snapshot) -> Vec<Arc<Offer>> {
    let listing = after.settings.lists.listing;
    let is_other = |offer: &&Arc<Offer>| {
        let (was, offer) = (before.offer(offer.id), offer.as_ref());
        was.is_some_and(|was| !ptr::eq(was, offer) && !was.has_same_tools(offer, listing))
    };
    after.offers.iter().filter(is_other).cloned().collect()
}

/// Returns the lists of a host that change with the known tools of offers that it has not loaded.
/// Only the surface `direct` lists them.
fn changes_without_load(fleet: &Fleet, viewer: &Viewer, known: &[Arc<Offer>]) -> Changes {
    let endpoint = &viewer.endpoint;
    let is_listed = |offer: &Arc<Offer>| {
        let is_loaded = offer.presence.origin().is_some() && fleet.board.concerns(viewer, offer);
        !is_loaded && fleet.board.shows_offer(endpoint, offer.id)
    };
    let tools = endpoint.surface == Surface::Direct && known.iter().any(is_listed);
    Changes { tools, ..Changes::default() }
}

/// Remembers why a load failed. Hosts are not told: the caller of the load is.
pub(super) fn note_failure(fleet: &Fleet, from: Instance, cause: &str) {
    let publication = fleet.board.publish();
    if fleet.servers.is_current(from) {
        publication.fail(from.server, cause);
    }
}

/// Notes a load of a host whose server is awake, and tells the host if the load is new to it alone.
pub(super) fn loaded_by(fleet: &Fleet, principal: Principal, offer: OfferId) {
    present_requested(fleet, offer);
    if let Some(changes) = fleet.board.load(principal, offer) {
        fleet.memory.hosts.note_unsaved(principal);
        fleet.audience.announce(changes, |host| {
            host.principal() == principal && fleet.board.shows_offer(&host.endpoint(), offer)
        });
    }
}

/// Loads an offer whose server was connected for another of its offers.
pub(super) fn present_requested(fleet: &Fleet, offer: OfferId) {
    let is_offered = |offer: &Offer| matches!(offer.presence, Presence::Offered { .. });
    if !fleet.board.snapshot().offer(offer).is_some_and(is_offered) {
        return;
    }
    let instance = fleet.servers.roster().shared(offer.server());
    let Some(catalog) = fleet.servers.shared(offer.server()).catalog() else { return };
    publish(fleet, instance, ChangeAudience::All, |candidate| {
        (candidate.id == offer && is_offered(candidate)).then(|| Presence::Live {
            exposed: fleet.memory.catalogs.expose(candidate, &catalog),
            origin: LoadOrigin::HostsRequest,
        })
    });
}

/// Logs what two servers list both, with secrets masked. `is_new` takes positions in the
/// snapshot.
fn report_collisions(fleet: &Fleet, snapshot: &Snapshot, is_new: impl Fn(usize) -> bool) {
    for Collision { servers, text } in
        snapshot.merged_lists().collisions(is_new).into_iter().take(MAX_REPORTED)
    {
        let configs = servers.map(|server| fleet.servers.config(server));
        tracing::warn!("{}", for_log(&text, &configs.each_ref()));
    }
}

/// Remembers a load for the next run.
fn remember_load(fleet: &Fleet, offer: &Offer) {
    let Some(remembered) = fleet.memory.loads.clone() else { return };
    let name = offer.name.clone();
    fleet.context.tasks.spawn(run_blocking(move || {
        if let Err(error) = remembered.add(&name) {
            let path = remembered.describe();
            tracing::warn!(path, %error, "cannot store the loaded servers");
        }
    }));
}
