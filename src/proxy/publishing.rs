//! The publication of snapshots, and the announcement of what they change.

use std::sync::Arc;

use super::{Fleet, Host, Principal, Viewer, instance::Instance, servers::Roster};
use crate::{
    base::run_blocking,
    catalog::{Collision, ExposedCatalog, Presence, ServerId, Snapshot},
    config::Mask,
    surface::shortened,
    upstream::ChangeAudience,
};

/// Maximum number of collisions of names in the log at once, and characters of each.
const MAX_REPORTED: usize = 100;
const MAX_REPORT: usize = 500;

/// Swaps the snapshot, and announces the difference before another publication. Reports of an
/// instance whose config has changed are ignored.
pub(super) fn publish(
    fleet: &Fleet,
    from: Instance,
    notified: ChangeAudience,
    presence: impl FnOnce(&Presence) -> Option<Presence>,
) {
    let publication = fleet.board.publish();
    if !fleet.servers.is_current(from) {
        return;
    }
    let server = from.server;
    let Some(published) = publication.present(server, presence) else { return };
    if published.is_loaded {
        remember_load(fleet, server);
    }
    if published.is_new {
        report_collisions(fleet, &published.snapshot, |at| at == published.position);
    }
    if !published.changes.any() {
        return;
    }
    let is_spared = |host: &dyn Host| match notified {
        ChangeAudience::All => false,
        ChangeAudience::Unaware => host.endpoint().passes_through() == Some(server),
        ChangeAudience::NotListing => fleet.audience.is_listing(host.id()),
    };
    fleet.audience.announce(published.changes, |host| {
        fleet.board.concerns(Viewer::of(host), server, &published.presence) && !is_spared(host)
    });
}

/// Publishes the last catalogs of hybrid servers. Hosts are not told: the catalogs are there
/// from the start.
pub(super) fn publish_seeds(fleet: &Fleet, seeds: Vec<(ServerId, Arc<ExposedCatalog>)>) {
    if seeds.is_empty() {
        return;
    }
    let publication = fleet.board.publish();
    let seeded = publication.seed(seeds);
    report_collisions(fleet, &seeded, |_| true);
}

/// Adds the known catalogs of servers that have not been loaded, as `roster` has them. Hosts
/// are not told: these catalogs show only in answers.
pub(super) fn publish_recalled(
    fleet: &Fleet,
    roster: &Arc<Roster>,
    known: Vec<(ServerId, Arc<ExposedCatalog>)>,
) {
    let publication = fleet.board.publish();
    if Arc::ptr_eq(&fleet.servers.roster(), roster) {
        publication.recall(known);
    }
}

/// Remembers why a load failed. Hosts are not told: the caller of the load is.
pub(super) fn note_failure(fleet: &Fleet, from: Instance, cause: String) {
    let publication = fleet.board.publish();
    if fleet.servers.is_current(from) {
        publication.fail(from.server, cause);
    }
}

/// Notes a load of a host, and tells the host if the load is new to it alone.
pub(super) fn loaded_by(fleet: &Fleet, principal: Principal, server: ServerId) {
    if let Some(changes) = fleet.board.load(principal, server) {
        fleet.audience.announce(changes, |host| {
            host.principal() == principal && host.endpoint().shows(server)
        });
    }
}

/// Logs what two servers list both, with secrets masked. `is_new` takes positions in the
/// snapshot.
fn report_collisions(fleet: &Fleet, snapshot: &Snapshot, is_new: impl Fn(usize) -> bool) {
    for Collision { servers, text } in snapshot.collisions(is_new).into_iter().take(MAX_REPORTED) {
        let mask = |text: String, server: usize| {
            Mask::of(&fleet.servers.config(snapshot.offers[server].server)).masked(&text)
        };
        let text = servers.into_iter().fold(text, mask);
        tracing::warn!("{}", shortened(&text, MAX_REPORT));
    }
}

/// Remembers a load for the next run.
fn remember_load(fleet: &Fleet, server: ServerId) {
    let Some(remembered) = fleet.memory.loads.clone() else { return };
    let name = fleet.servers.config(server).name.clone();
    fleet.context.tasks.spawn(run_blocking(move || {
        if let Err(error) = remembered.add(&name) {
            let path = remembered.describe();
            tracing::warn!(path, %error, "cannot store the loaded servers");
        }
    }));
}
