//! Stores the catalogs that servers have told, one after the other, and logs suspicious changes.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Event, Fleet, catalogs::reread_pins, instance::Instance, waiting_catalogs::WaitingCatalog,
};
use crate::{
    base::run_blocking,
    catalog::{CacheError, ServerCatalog, ServerId, hidden_characters},
    config::Pin,
};

/// Maximum number of tools of one server that are named in the log at once.
const MAX_REPORTED: usize = 50;

/// The report about a catalog that could not be stored.
const NOT_STORED: &str = "not stored";

/// Keeps a catalog that an instance has just learned, and has it stored if it is new.
pub(super) fn keep(fleet: &Fleet, instance: Instance, catalog: &Arc<ServerCatalog>) {
    let is_whole = fleet.context.reads_lists;
    if !is_whole || !fleet.servers.is_current(instance) {
        return;
    }
    let (catalogs, server) = (&fleet.memory.catalogs, instance.server);
    let place = (server, catalog.discovery.declared.clone());
    if catalogs.is_news(server, catalog) {
        catalogs.waiting().add(place, instance);
    } else if !catalogs.waiting().has(&place) {
        fleet.events.send(Event::CatalogStored);
    }
}

/// Starts to store the catalogs that are kept. At the end of the fleet, all that wait are stored.
pub(super) fn store_catalogs(fleet: &Fleet) {
    let (weak, stop) = (fleet.this.clone(), fleet.context.stop.clone());
    let waiting = fleet.memory.catalogs.waiting().clone();
    fleet.context.tasks.spawn(async move {
        while let Some(due) = stop.run_until_cancelled(waiting.take_due()).await {
            let weak = weak.clone();
            let storing = run_blocking(move || {
                let fleet = weak.upgrade()?;
                (!store(&fleet, &due)).then_some(due)
            });
            if let Some(Some(failed)) = storing.await {
                waiting.add_again(failed);
            }
        }
        let Some(fleet) = weak.upgrade() else { return };
        let storing = run_blocking(move || {
            for last in waiting.take_all() {
                store(&fleet, &last);
            }
        });
        let _ = storing.await;
    });
}

/// Stores the newest catalog of a place. Returns `false` if that has to be tried again.
fn store(fleet: &Fleet, waiting: &WaitingCatalog) -> bool {
    let WaitingCatalog { place, instance, .. } = waiting;
    if !fleet.servers.is_current(*instance) {
        return true;
    }
    let (catalogs, server) = (&fleet.memory.catalogs, instance.server);
    let Some(catalog) = catalogs.newest(place) else { return true };
    report_hidden(fleet, server, &catalog);
    catalogs.note_hung(server, false);
    let config = fleet.servers.config(server);
    let changed = match catalogs.write(place, &config.name, &catalog) {
        Ok(Some(changed)) => changed,
        Ok(None) => return true,
        Err(error) => {
            if catalogs.is_first_report(server, NOT_STORED.to_owned()) {
                tracing::warn!(server = config.name, %error, "cannot store the catalog");
            }
            // The catalog of a newer version of dormouse stays as it is.
            return matches!(error, CacheError::Unreadable { .. });
        }
    };
    catalogs.forget_report(server, NOT_STORED);
    fleet.events.send(Event::CatalogStored);
    if config.settings.pin != Pin::Off {
        let suspicious = catalogs.suspicious(server, config.settings.pin, &catalog);
        report_changed(fleet, server, &suspicious);
    }
    if config.settings.pin == Pin::Block && !changed.is_empty() {
        // Another process may have pinned other definitions first.
        reread_pins(fleet, server);
    }
    true
}

fn report_changed(fleet: &Fleet, server: ServerId, changed: &BTreeSet<String>) {
    let config = fleet.servers.config(server);
    let commands = &fleet.settings().launch.commands;
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
        if fleet.memory.catalogs.is_first_report(server, format!("changed {tool}")) {
            tracing::warn!(
                server = config.name,
                tool,
                "the tool's definition has changed since it was first seen, or cannot be \
                    compared: review it, and run `{}`{blocked}",
                commands.approve(&config.name, None)
            );
        }
    }
}

fn report_hidden(fleet: &Fleet, server: ServerId, catalog: &ServerCatalog) {
    for (place, hidden) in hidden_characters(catalog) {
        if fleet.memory.catalogs.is_first_report(server, format!("hidden {place}")) {
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
