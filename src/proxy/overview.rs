//! The present state of servers, for reports.

use std::{collections::BTreeSet, sync::Arc};

use super::{Fleet, instance::Instance};
use crate::{
    auth::LoginSummary,
    catalog::{Inventory, ServerId},
    config::ServerConfig,
    upstream::{Phase, Status, Upstream},
};

/// The state of one server.
pub(crate) struct Overview {
    pub config: Arc<ServerConfig>,
    /// The status of the instance that does most, if hosts have instances of their own.
    pub status: Status,
    /// The number of connected instances.
    pub awake: usize,
    /// The process groups of those on this machine.
    pub process_groups: Vec<u32>,
    /// The parts of the catalog; `None` if no catalog is known.
    pub inventory: Option<Inventory>,
    /// The login; `None` if no user is logged in.
    pub login: Option<LoginSummary>,
}

/// The place in which the catalog of a server is looked for.
#[derive(Clone, Copy)]
pub(super) enum CatalogSource {
    /// Only catalogs of servers that were connected are known.
    Memory,
    /// Those that are not in memory are read from disk.
    Disk,
}

pub(super) fn overview_of(
    fleet: &Fleet,
    server: ServerId,
    instances: &[(Instance, Upstream)],
    source: CatalogSource,
) -> Overview {
    let of_server = instances.iter().filter(|(instance, _)| instance.server == server);
    let statuses: Vec<Status> = of_server.map(|(_, upstream)| upstream.status()).collect();
    let is_awake = |status: &&Status| status.phase == Phase::Awake;
    let roster = fleet.servers.roster();
    let (shared, config) = (fleet.servers.shared(server), roster.slot(server).shown.clone());
    let catalog = shared.catalog();
    let recalled = || match source {
        CatalogSource::Memory => None,
        CatalogSource::Disk => Some(Arc::new(fleet.memory.catalogs.last(server)?)),
    };
    let inventory = catalog.or_else(recalled).map(|catalog| {
        let changed: BTreeSet<String> =
            fleet.memory.catalogs.suspicious(server, config.settings.pin, &catalog);
        Inventory::of(&config, &catalog, &changed)
    });
    let mut status = statuses.iter().find(is_awake).cloned().unwrap_or_else(|| shared.status());
    if !config.enabled {
        status.phase = Phase::Disabled;
    }
    Overview {
        login: fleet.context.auth.summary(&config),
        config,
        awake: statuses.iter().filter(is_awake).count(),
        process_groups: statuses
            .iter()
            .filter(is_awake)
            .filter_map(|status| status.process_group)
            .collect(),
        status,
        inventory,
    }
}
