//! The resources of people who have logins of their own: those of one person are listed and read by
//! their hosts alone. What else a server shows to its people is one catalog for all.

use std::{collections::HashSet, sync::Arc};

use super::{Caller, Fleet, Host, instance::Instance};
use crate::{
    catalog::{Changes, ExposedCatalog, ServerCatalog, ServerId},
    wire::{Raw, edit},
};

/// Returns the part of an instance's catalog that all hosts may see.
pub(super) fn without_personal(
    instance: Instance,
    catalog: &Arc<ServerCatalog>,
) -> Arc<ServerCatalog> {
    if instance.login_owner().is_none() || catalog.resources.is_empty() {
        return catalog.clone();
    }
    Arc::new(ServerCatalog { resources: Vec::new(), ..ServerCatalog::clone(catalog) })
}

/// Tells the hosts of a person that the resources of an instance have changed.
pub(super) fn announce(fleet: &Fleet, instance: Instance) {
    let changes = Changes { resources: true, ..Changes::default() };
    fleet.audience.announce(changes, |host: &dyn Host| {
        instance.is_for(host)
            && fleet.board.shows(&host.endpoint(), instance.server)
            && !fleet.audience.is_listing(host.id())
    });
}

/// Returns the resources of a person at all servers, followed by those `of_all` with other URIs.
pub(super) fn with_personal(fleet: &Fleet, caller: &Caller, of_all: Vec<Raw>) -> Vec<Raw> {
    let personal = catalogs(fleet, caller);
    if personal.is_empty() {
        return of_all;
    }
    let mut seen = HashSet::new();
    let personal = personal.iter().flat_map(|(_, exposed)| &exposed.catalog.resources);
    let personal = personal.map(|resource| resource.raw.clone());
    let mut all: Vec<Raw> = personal.chain(of_all).collect();
    all.retain(|resource| edit::get_str(resource, "uri").is_none_or(|uri| seen.insert(uri)));
    all
}

/// Returns the server at which a person has a resource.
pub(super) fn server_with(fleet: &Fleet, caller: &Caller, uri: &str) -> Option<ServerId> {
    let personal = catalogs(fleet, caller);
    let has = |exposed: &ExposedCatalog| exposed.catalog.resources.iter().any(|it| it.uri == uri);
    personal.iter().find(|(_, exposed)| has(exposed)).map(|(server, _)| *server)
}

/// Returns what the instances of a person show to the caller.
fn catalogs(fleet: &Fleet, caller: &Caller) -> Vec<(ServerId, Arc<ExposedCatalog>)> {
    if caller.host.person().is_none() {
        return Vec::new();
    }
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let live = snapshot.live();
    let personal = live.filter_map(|(_, offer, _)| {
        let instance = fleet.instance(offer.server(), caller);
        instance.login_owner()?;
        let catalog = fleet.servers.existing(instance)?.catalog()?;
        Some((offer.server(), fleet.catalog_memory.expose(offer, &catalog)))
    });
    personal.collect()
}
