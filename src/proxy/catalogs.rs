//! The catalogs of servers and the pins of their tools, from one run to the next.

use std::{collections::BTreeSet, sync::Arc};

use super::{Fleet, audience::first_era, declared, instance::Instance, publishing};
use crate::{
    base::run_blocking,
    catalog::{
        ExposedCatalog, Naming, Offer, Presence, ServerCatalog, ServerId, hidden_characters,
    },
    config::{Pin, ServerConfig, Startup},
    upstream::{ChangeAudience, Recalled, declared_names},
};

/// Maximum number of tools of one server that are named in the log at once.
const MAX_REPORTED: usize = 50;

/// Returns what hosts may see of a server's catalog.
pub(super) fn expose(
    fleet: &Fleet,
    server: ServerId,
    catalog: &Arc<ServerCatalog>,
) -> Arc<ExposedCatalog> {
    let snapshot = fleet.board.snapshot();
    let naming = snapshot.position(server).map(|at| snapshot.naming(at));
    // A server that the config no longer has is shown under no name.
    let naming = naming.unwrap_or(Naming::Bare);
    expose_as(fleet, server, catalog, &fleet.servers.config(server), naming)
}

/// As [`expose`], for a config that is not in force yet.
pub(super) fn expose_as(
    fleet: &Fleet,
    server: ServerId,
    catalog: &Arc<ServerCatalog>,
    config: &ServerConfig,
    naming: Naming<'_>,
) -> Arc<ExposedCatalog> {
    let blocked = fleet.memory.blocked(server, catalog);
    Arc::new(ExposedCatalog::new(catalog, config, &blocked, naming))
}

/// Checks whether withheld tools have been approved since.
pub(super) async fn reexamine(fleet: &Fleet, server: ServerId) {
    let Some(owned) = fleet.this.upgrade() else { return };
    let reading = run_blocking(move || reread_pins(&owned, server));
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}

fn reread_pins(fleet: &Fleet, server: ServerId) {
    fleet.memory.reread_pins(server);
    expose_anew(fleet, server);
}

fn expose_anew(fleet: &Fleet, server: ServerId) {
    let (roster, snapshot) = (fleet.servers.roster(), fleet.board.snapshot());
    let Some(view) = snapshot.offer(server) else { return };
    if let Some(known) = &view.known {
        publishing::publish_recalled(
            fleet,
            &roster,
            vec![(server, expose(fleet, server, &known.whole))],
        );
    }
    let mut seen = view.presence.clone();
    // A newer catalog may have been published since; it must not be lost, and is exposed instead.
    while let Presence::Live { exposed, .. } = &seen {
        let (whole, anew) = (exposed.whole.clone(), expose(fleet, server, &exposed.whole));
        let mut newer = Presence::Disabled;
        publishing::publish(
            fleet,
            roster.shared(server),
            ChangeAudience::All,
            |before| match before {
                Presence::Live { exposed, origin } if Arc::ptr_eq(&exposed.whole, &whole) => {
                    Some(Presence::Live { exposed: anew, origin: *origin })
                }
                other => {
                    newer = other.clone();
                    None
                }
            },
        );
        seen = newer;
    }
}

/// Keeps a catalog that an instance has just learned, and logs suspicious changes.
pub(super) fn keep(fleet: &Fleet, instance: Instance, catalog: &Arc<ServerCatalog>) {
    let server = instance.server;
    let is_whole = fleet.context.reads_lists;
    if !is_whole || !fleet.servers.is_current(instance) || !fleet.memory.is_news(server, catalog) {
        return;
    }
    let (weak, catalog) = (fleet.this.clone(), catalog.clone());
    fleet.context.tasks.spawn(run_blocking(move || {
        let Some(fleet) = weak.upgrade().filter(|fleet| fleet.servers.is_current(instance)) else {
            return;
        };
        report_hidden(&fleet, server, &catalog);
        fleet.memory.note_hung(server, false);
        let config = fleet.servers.config(server);
        let Some(changed) = fleet.memory.write(server, &config.name, &catalog.discovery.declared)
        else {
            return;
        };
        if config.settings.pin != Pin::Off {
            let suspicious = fleet.memory.suspicious(server, config.settings.pin, &catalog);
            report_changed(&fleet, server, &suspicious);
        }
        if config.settings.pin == Pin::Block && !changed.is_empty() {
            // Another process may have pinned other definitions first.
            reread_pins(&fleet, server);
        }
    }));
}

fn report_changed(fleet: &Fleet, server: ServerId, changed: &BTreeSet<String>) {
    let config = fleet.servers.config(server);
    let blocked =
        if config.settings.pin == Pin::Block { "; calls are blocked until then" } else { "" };
    if changed.len() > MAX_REPORTED {
        let (server, count) = (&config.name, changed.len());
        tracing::warn!(
            server,
            count,
            "many tools have changed or cannot be compared; logging only the first{blocked}"
        );
    }
    for tool in changed.iter().take(MAX_REPORTED) {
        if fleet.memory.is_first_report(server, format!("changed {tool}")) {
            tracing::warn!(
                server = config.name,
                tool,
                "the tool's definition has changed since it was first seen, or cannot be \
                    compared: review it, and run `dormouse approve {}`{blocked}",
                config.name
            );
        }
    }
}

fn report_hidden(fleet: &Fleet, server: ServerId, catalog: &ServerCatalog) {
    for (place, hidden) in hidden_characters(catalog) {
        if fleet.memory.is_first_report(server, format!("hidden {place}")) {
            let server = &fleet.servers.config(server).name;
            let character = format!("U+{:04X}", u32::from(hidden));
            tracing::warn!(
                server,
                place,
                character,
                "text of the server contains invisible characters"
            );
        }
    }
}

/// Returns what an instance had when it was last connected.
pub(super) fn recall(fleet: &Fleet, instance: Instance) -> Option<Recalled> {
    let declared = declared(fleet, instance);
    let record = fleet.memory.read(instance.server, &declared)?;
    let is_sufficient = record.covers(&declared);
    let age = record.learned.elapsed().unwrap_or_default();
    Some(Recalled { catalog: Arc::new(record.catalog), age, is_sufficient })
}

fn declared(fleet: &Fleet, instance: Instance) -> Vec<String> {
    let era = first_era(&fleet.audience.hosts_of(instance));
    declared_names(&declared::capabilities_for(fleet, instance, era))
}

/// Publishes the last catalogs of hybrid servers before any host has declared its capabilities.
/// `is_meant`: the server is new in the config.
pub(super) fn seed(fleet: &Fleet, is_meant: impl Fn(ServerId) -> bool) {
    let roster = fleet.servers.roster();
    let hybrid = roster.all().filter(|(server, slot)| {
        let is_hybrid = slot.config.startup == Startup::Hybrid;
        is_meant(*server) && is_hybrid && slot.config.has_first_attempt()
    });
    let seeds = hybrid.filter_map(|(server, _)| {
        Some((server, expose(fleet, server, &fleet.memory.seed(server)?)))
    });
    publishing::publish_seeds(fleet, seeds.collect());
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
        let is_unloaded = |view: &&Arc<Offer>| matches!(view.presence, Presence::Offered { .. });
        let unloaded = snapshot.offers.iter().filter(is_unloaded).map(|view| view.server);
        let known = unloaded.filter_map(|server| {
            let recalled = recall(&owned, roster.shared(server))?;
            Some((server, expose(&owned, server, &recalled.catalog)))
        });
        publishing::publish_recalled(&owned, &roster, known.collect());
    });
    // No outcome means that dormouse ends.
    let _ = fleet.context.tasks.track_future(reading).await;
}

/// Waits for the first attempts of eager and hybrid servers, but not beyond `startupWait`.
/// Remembers servers that hang, so that the next start does not wait for them.
pub(super) async fn wait_for_first_attempts(fleet: &Fleet) {
    let hung = fleet.servers.started(fleet.settings().loading.startup_wait).await;
    let Some(owned) = fleet.this.upgrade().filter(|_| !hung.is_empty()) else { return };
    fleet.context.tasks.spawn(run_blocking(move || {
        for server in hung {
            owned.memory.note_hung(server, true);
        }
    }));
}
