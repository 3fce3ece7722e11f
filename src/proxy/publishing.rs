//! The publication of snapshots, and the announcement of what they change.

use std::{io, sync::Arc};

use super::{
    Fleet, Host, Principal, RememberedLoads, Viewer, for_log::for_log, instance::Instance,
    servers::Roster,
};
use crate::{
    base::run_blocking,
    catalog::{
        Changes, Collision, ExposedCatalog, LoadOrigin, Offer, OfferId, Presence, ServerCatalog,
        ServerId, Snapshot,
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
    let others = with_other_tools(&before, &fleet.board.snapshot());
    fleet.audience.announce_each(|host| {
        if is_spared(fleet, host, server, notified) {
            return Changes::default();
        }
        let viewer = Viewer::of(host);
        let concerning = published.iter().filter(|it| fleet.board.concerns(&viewer, &it.offer));
        let changes = concerning.fold(Changes::default(), |changes, it| changes.or(it.changes));
        match viewer.endpoint.surface {
            // It lists the same tools before and after a load.
            Surface::Direct => Changes { tools: shows_any(fleet, &viewer, &others), ..changes },
            _ => changes,
        }
    });
}

/// Publishes what an instance has to the offers of its server that are not loaded. The publication
/// of the loaded ones follows.
pub(super) fn publish_connection(
    fleet: &Fleet,
    from: Instance,
    notified: ChangeAudience,
    catalog: &Arc<ServerCatalog>,
) {
    let publication = fleet.board.publish();
    let before = fleet.board.snapshot();
    let is_divided = before.offers_of(from.server).count() > 1;
    if is_divided && fleet.servers.is_current(from) {
        let expose = |offer: &Offer| fleet.memory.catalogs.expose(offer, catalog);
        publication.connect(from.server, expose);
        announce_unloaded(fleet, &before, |host| !is_spared(fleet, host, from.server, notified));
    }
}

/// Returns whether a host need not be told of changes of a server.
fn is_spared(fleet: &Fleet, host: &dyn Host, server: ServerId, notified: ChangeAudience) -> bool {
    match notified {
        ChangeAudience::All => false,
        ChangeAudience::Unaware => host.endpoint().passes_through() == Some(server),
        ChangeAudience::NotListing => fleet.audience.is_listing(host.id()),
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

/// Adds the known catalogs of all servers that have not been loaded, as `roster` has them. Hosts
/// are not told: the lists that show them wait for this.
pub(super) fn publish_recalled(
    fleet: &Fleet,
    roster: &Arc<Roster>,
    known: Vec<(OfferId, Arc<ExposedCatalog>)>,
) {
    let publication = fleet.board.publish();
    if Arc::ptr_eq(&fleet.servers.roster(), roster) {
        publication.recall(known);
    }
}

/// Replaces the known catalogs of offers that have not been loaded, as `roster` has them.
pub(super) fn publish_known(
    fleet: &Fleet,
    roster: &Arc<Roster>,
    known: Vec<(OfferId, Arc<ExposedCatalog>)>,
) {
    let publication = fleet.board.publish();
    if Arc::ptr_eq(&fleet.servers.roster(), roster) {
        let before = fleet.board.snapshot();
        publication.know(known);
        announce_unloaded(fleet, &before, |_| true);
    }
}

/// Announces the tools that have changed since `before` of offers that hosts have not loaded. Only
/// the surface `direct` lists them.
fn announce_unloaded(fleet: &Fleet, before: &Snapshot, is_told: impl Fn(&dyn Host) -> bool) {
    let others = with_other_tools(before, &fleet.board.snapshot());
    if others.is_empty() {
        return;
    }
    let tools = Changes { tools: true, ..Changes::default() };
    fleet.audience.announce(tools, |host| {
        let viewer = Viewer::of(host);
        viewer.endpoint.surface == Surface::Direct
            && is_told(host)
            && shows_any(fleet, &viewer, &others)
    });
}

/// Returns the offers that appear with other tools than before, loaded or not.
fn with_other_tools(before: &Snapshot, after: &Snapshot) -> Vec<OfferId> {
    let listing = after.settings.lists.listing;
    // The positions are the same until the config changes.
    let pairs = before.offers.iter().zip(&after.offers);
    let others = pairs.filter(|(was, is)| {
        was.id == is.id && !Arc::ptr_eq(was, is) && !was.has_same_tools(is, listing)
    });
    others.map(|(_, offer)| offer.id).collect()
}

/// Returns whether a host sees any of these offers.
fn shows_any(fleet: &Fleet, viewer: &Viewer, offers: &[OfferId]) -> bool {
    offers.iter().any(|offer| fleet.board.shows_offer(&viewer.endpoint, *offer))
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

/// Remembers a load for the next run. While the store cannot be used, it is tried again.
fn remember_load(fleet: &Fleet, offer: &Offer) {
    let Some(remembered) = fleet.memory.loads.clone() else { return };
    let (name, stop) = (offer.name.clone(), fleet.context.stop.clone());
    fleet.context.tasks.spawn(async move {
        let add = move |remembered: &RememberedLoads| remembered.add(&name);
        let (asked, first) = (remembered.clone(), add.clone());
        // Without an outcome, dormouse ends.
        let Some(Err(error)) = run_blocking(move || first(&asked)).await else { return };
        let path = remembered.describe();
        tracing::warn!(path, %error, "cannot store the loaded servers");
        if error.kind() == io::ErrorKind::NotConnected {
            remembered.retry(&stop, add).await;
        }
    });
}
