//! How the servers are, for people who ask.

use std::{collections::BTreeSet, sync::Arc};

use super::{Fleet, instance::Instance};
use crate::{
    auth::Summary,
    catalog::{Inventory, ServerId},
    config::ServerConfig,
    upstream::{Phase, Status, Upstream},
};

/// One server, at this moment.
pub struct Overview {
    pub config: Arc<ServerConfig>,
    /// Of the instance that does most, where hosts have instances of their own.
    pub status: Status,
    /// How many instances of it are connected.
    pub awake: usize,
    /// `None` where nothing is known of what it has.
    pub inventory: Option<Inventory>,
    /// `None` where nobody is logged in.
    pub login: Option<Summary>,
}

impl Fleet {
    /// All servers, in config order. Reads from disk what is known of those that have not been loaded.
    pub fn overview(&self) -> Vec<Overview> {
        let instances = self.servers.instances();
        self.servers.roster().ids().map(|server| overview_of(self, server, &instances)).collect()
    }

    /// How many hosts there are.
    pub fn host_count(&self) -> usize {
        self.audience.hosts().len()
    }
}

fn overview_of(fleet: &Fleet, server: ServerId, instances: &[(Instance, Upstream)]) -> Overview {
    let of_server = instances.iter().filter(|(instance, _)| instance.server == server);
    let statuses: Vec<Status> = of_server.map(|(_, upstream)| upstream.status()).collect();
    let is_awake = |status: &&Status| status.phase == Phase::Awake;
    let (shared, config) = (fleet.servers.shared(server), fleet.servers.config(server));
    let catalog = shared.catalog();
    let recalled = || Some(Arc::new(fleet.memory.last(server)?));
    let inventory = catalog.or_else(recalled).map(|catalog| {
        let changed: BTreeSet<String> = fleet.memory.suspicious(server, config.pin, &catalog);
        Inventory::of(&config, &catalog, &changed)
    });
    Overview {
        login: fleet.context.auth.summary(&config),
        config,
        awake: statuses.iter().filter(is_awake).count(),
        status: statuses.iter().find(is_awake).cloned().unwrap_or_else(|| shared.status()),
        inventory,
    }
}
