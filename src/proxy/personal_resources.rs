//! The resources of servers with `"login": "user"`: those of one login are listed and read by the
//! hosts that use it alone. What else such a server shows is one catalog for all hosts.

use std::{collections::HashSet, sync::Arc};

use super::{Caller, Fleet, Host, instance::Instance};
use crate::{
    catalog::{Changes, ExposedCatalog, ServerCatalog, ServerId},
    config::LoginHolder,
    wire::{Raw, edit},
};

/// Returns whether the resources of a server are not for all hosts.
pub(super) fn has_any(fleet: &Fleet, server: ServerId) -> bool {
    fleet.servers.config(server).connecting.login == LoginHolder::User
}

/// Returns the part of an instance's catalog that all hosts may see.
pub(super) fn without_personal(
    fleet: &Fleet,
    instance: Instance,
    catalog: &Arc<ServerCatalog>,
) -> Arc<ServerCatalog> {
    if catalog.resources.is_empty() || !has_any(fleet, instance.server) {
        return catalog.clone();
    }
    Arc::new(ServerCatalog { resources: Vec::new(), ..ServerCatalog::clone(catalog) })
}

/// Notifies the hosts that use an instance of changed resources.
pub(super) fn announce(fleet: &Fleet, instance: Instance) {
    let changes = Changes { resources: true, ..Changes::default() };
    fleet.audience.announce(changes, |host: &dyn Host| {
        fleet.servers.instance(instance.server, host) == instance
            && fleet.board.shows(&host.endpoint(), instance.server)
            && !fleet.audience.is_listing(host.id())
    });
}

/// Returns the resources that the caller's logins show, followed by those `of_all` with other URIs.
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

/// Returns the server at which one of the caller's logins shows a resource.
pub(super) fn server_with(fleet: &Fleet, caller: &Caller, uri: &str) -> Option<ServerId> {
    let personal = catalogs(fleet, caller);
    let has = |exposed: &ExposedCatalog| exposed.catalog.resources.iter().any(|it| it.uri == uri);
    personal.iter().find(|(_, exposed)| has(exposed)).map(|(server, _)| *server)
}

/// Returns the catalogs of the caller's instances of such servers, as the caller may see them.
fn catalogs(fleet: &Fleet, caller: &Caller) -> Vec<(ServerId, Arc<ExposedCatalog>)> {
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let live = snapshot.live().filter(|(_, offer, _)| has_any(fleet, offer.server()));
    let own = live.filter_map(|(_, offer, _)| {
        let instance = fleet.instance(offer.server(), caller);
        let catalog = fleet.servers.existing(instance)?.catalog()?;
        Some((offer.server(), fleet.memory.catalogs.expose(offer, &catalog)))
    });
    own.collect()
}
