//! All servers of the config, and the instances of them that run.

mod first_attempts;
mod owned_instances;
mod roster;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::{Host, instance::Instance};
use crate::{
    catalog::{ServerCatalog, ServerId},
    config::{Profiles, ServerConfig, Startup},
    protocol::Era,
    upstream::{Context, Phase, ServerObserver, Upstream},
};
use first_attempts::FirstAttempts;
use owned_instances::OwnedInstances;

pub(super) use roster::{Roster, Slot, SlotConfig};

/// Makes the observer of an instance.
pub(super) type Observe = Box<dyn Fn(Instance) -> Arc<dyn ServerObserver> + Send + Sync>;

/// The roster of servers and their instances. It keeps no host: an instance has an owner, or is for
/// all.
pub(super) struct Servers {
    context: Context,
    observe: Observe,
    roster: ArcSwap<Roster>,
    owned: OwnedInstances,
    first_attempts: FirstAttempts,
}

impl Servers {
    /// Makes the servers of a config; connects none. `adopt` is told of each, and returns whether
    /// the server hung in the last run.
    pub(super) fn new(
        context: Context,
        observe: Observe,
        configs: Vec<ServerConfig>,
        profiles: &Profiles,
        mut adopt: impl FnMut(ServerId, &SlotConfig) -> bool,
    ) -> Self {
        let mut first_attempts = FirstAttempts::default();
        let roster = Roster::default().reconfigured(configs, profiles, |id, _, version, config| {
            let has_hung = adopt(id, &config);
            if config.shown.has_first_attempt() {
                first_attempts.expect(id, has_hung);
            }
            Slot::start(&context, &observe, Instance::shared(id, version), config)
        });
        let roster = ArcSwap::from_pointee(roster);
        Self { context, observe, roster, owned: OwnedInstances::default(), first_attempts }
    }

    pub(super) fn roster(&self) -> Arc<Roster> {
        self.roster.load_full()
    }

    /// Puts another roster in force.
    pub(super) fn replace(&self, roster: Roster) {
        self.roster.store(Arc::new(roster));
    }

    /// Starts the handle of a server for a roster that is not in force yet.
    pub(super) fn start(&self, id: ServerId, version: u32, config: SlotConfig) -> Slot {
        Slot::start(&self.context, &self.observe, Instance::shared(id, version), config)
    }

    pub(super) fn config(&self, server: ServerId) -> Arc<ServerConfig> {
        self.roster.load().slot(server).config.clone()
    }

    /// Returns whether an instance has the config that is in force.
    pub(super) fn is_current(&self, instance: Instance) -> bool {
        let roster = self.roster.load();
        roster.has(instance.server) && roster.slot(instance.server).version == instance.version
    }

    /// Returns the instance of a server that a host uses.
    pub(super) fn instance(&self, server: ServerId, host: &dyn Host) -> Instance {
        let roster = self.roster.load();
        let Slot { config, version, .. } = roster.slot(server);
        Instance::of(host, server, *version, config)
    }

    /// Returns the handle of the shared instance of a server.
    pub(super) fn shared(&self, server: ServerId) -> Upstream {
        self.roster.load().slot(server).upstream.clone()
    }

    /// Returns the handle of an instance, which is made at the first use. `known` is the catalog
    /// with which it begins.
    pub(super) fn upstream(
        &self,
        instance: Instance,
        known: impl FnOnce() -> Option<Arc<ServerCatalog>>,
    ) -> Upstream {
        if instance.owner.is_none() {
            return self.shared(instance.server);
        }
        self.owned.using(instance, || {
            let (observer, config) = ((self.observe)(instance), self.config(instance.server));
            let login_owner = instance.login_owner();
            Upstream::start(config, observer, &self.context, known(), login_owner)
        })
    }

    /// Returns the handle of an instance that has been made.
    pub(super) fn existing(&self, instance: Instance) -> Option<Upstream> {
        match instance.owner {
            None => Some(self.shared(instance.server)),
            Some(_) => self.owned.find(instance),
        }
    }

    /// Returns all instances that have been made: the shared ones in config order, then the others.
    pub(super) fn instances(&self) -> Vec<(Instance, Upstream)> {
        let roster = self.roster.load();
        let shared = roster
            .all()
            .map(|(id, slot)| (Instance::shared(id, slot.version), slot.upstream.clone()));
        shared.chain(self.owned.all()).collect()
    }

    /// Returns the instances with owners.
    pub(super) fn owned(&self) -> &OwnedInstances {
        &self.owned
    }

    /// Connects the eager servers in the background, for hosts of this era, and learns what the
    /// hybrid ones have. Lazy servers for which `is_remembered` holds are loaded again; the first
    /// lists wait until their catalogs are read.
    pub(super) fn begin(&self, era: Era, is_remembered: impl Fn(ServerId) -> bool) {
        for (id, slot) in self.roster().all() {
            let is_lazy = slot.config.startup == Startup::Lazy && slot.shown.enabled;
            if is_lazy && is_remembered(id) {
                let (read, over) = (slot.upstream.restore(), self.first_attempts.begin_other());
                self.context.tasks.spawn(async move {
                    // An actor that has ended reads nothing.
                    let _ = read.await;
                    drop(over);
                });
            } else {
                slot.begin(era);
            }
        }
    }

    /// Counts another first attempt, of a server that is new in the config.
    pub(super) fn expect_first_attempt(&self) {
        self.first_attempts.add();
    }

    /// Counts first attempts of servers that were left out until now, for which the next lists
    /// wait as for those of the start.
    pub(super) fn expect_first_attempts_of(&self, roster: &Roster, servers: &[ServerId]) {
        let has_attempt = |id: &&ServerId| roster.slot(**id).shown.has_first_attempt();
        let expected = servers.iter().filter(has_attempt).count();
        (0..expected).for_each(|_| self.first_attempts.add());
        if expected > 0 {
            self.first_attempts.begin_again();
        }
    }

    /// Counts a first attempt of a server as over.
    pub(super) fn first_attempt_over(&self, server: ServerId) {
        self.first_attempts.finish(server);
    }

    /// Waits until the first attempts of eager and hybrid servers are over, but not beyond `limit`
    /// after the start. Returns the servers that have hung, once.
    pub(super) async fn started(&self, limit: Duration) -> Vec<ServerId> {
        let began = Instant::now();
        if self.first_attempts.over(limit).await || began >= self.first_attempts.deadline(limit) {
            return Vec::new();
        }
        let roster = self.roster();
        let hung = roster.all().filter(|(_, slot)| {
            slot.shown.has_first_attempt()
                && slot.upstream.catalog().is_none()
                && slot.upstream.status().phase == Phase::Loading
        });
        hung.map(|(server, _)| server).collect()
    }
}
