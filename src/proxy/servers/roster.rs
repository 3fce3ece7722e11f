//! The servers of the config, with the handle of each.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use super::Observe;
use crate::{
    catalog::ServerId,
    config::{ProfileName, Profiles, ServerConfig, Startup},
    protocol::Era,
    proxy::instance::Instance,
    upstream::{Context, Upstream},
};

/// All servers. A roster is immutable; another config swaps it as a whole.
#[derive(Clone, Default)]
pub(in crate::proxy) struct Roster {
    /// Servers by id. A removed server keeps its place, since requests in flight refer to it.
    slots: Vec<Slot>,
    /// The ids of the servers in the config, in its order.
    order: Vec<ServerId>,
    /// The profiles that hosts have chosen since the start.
    chosen: Arc<BTreeSet<ProfileName>>,
}

#[derive(Clone)]
pub(in crate::proxy) struct Slot {
    /// The shared instance.
    pub(in crate::proxy) upstream: Upstream,
    /// The present config. The instance keeps the connection of the config that it was started
    /// with.
    pub(in crate::proxy) config: Arc<ServerConfig>,
    /// The present config as the profiles in use show it, for reports and for the start.
    pub(in crate::proxy) shown: Arc<ServerConfig>,
    /// The number of changes of the connection.
    pub(in crate::proxy) version: u32,
}

/// The config of a server, whole and as the profiles in use show it.
pub(in crate::proxy) struct SlotConfig {
    pub(in crate::proxy) config: Arc<ServerConfig>,
    pub(in crate::proxy) shown: Arc<ServerConfig>,
}

impl SlotConfig {
    fn new(config: Arc<ServerConfig>, profiles: &Profiles, chosen: &BTreeSet<ProfileName>) -> Self {
        let shown = match profiles.in_use(&config, chosen) {
            Cow::Borrowed(_) => config.clone(),
            Cow::Owned(shown) => Arc::new(shown),
        };
        Self { config, shown }
    }
}

impl Slot {
    pub(in crate::proxy) fn start(
        context: &Context,
        observe: &Observe,
        instance: Instance,
        SlotConfig { config, shown }: SlotConfig,
    ) -> Self {
        let upstream = Upstream::start(config.clone(), observe(instance), context, None, None);
        Self { upstream, config, shown, version: instance.version }
    }

    /// Connects an eager server in the background, or learns what a hybrid one has.
    pub(in crate::proxy) fn begin(&self, era: Era) {
        match self.shown.startup {
            Startup::Eager if self.shown.has_first_attempt() => self.upstream.begin(era),
            Startup::Hybrid if self.shown.has_first_attempt() => self.upstream.learn(),
            _ => {}
        }
    }
}

impl Roster {
    pub(in crate::proxy) fn slot(&self, id: ServerId) -> &Slot {
        &self.slots[id.0]
    }

    /// Returns whether the config has a server.
    pub(in crate::proxy) fn has(&self, id: ServerId) -> bool {
        self.order.contains(&id)
    }

    /// Returns the shared instance of a server.
    pub(in crate::proxy) fn shared(&self, id: ServerId) -> Instance {
        Instance::shared(id, self.slot(id).version)
    }

    /// Returns the ids of the servers in config order.
    pub(in crate::proxy) fn ids(&self) -> impl Iterator<Item = ServerId> {
        self.order.iter().copied()
    }

    /// Returns the configs of the servers in their order.
    pub(in crate::proxy) fn configs(&self) -> Vec<(ServerId, &ServerConfig)> {
        self.all().map(|(id, slot)| (id, slot.config.as_ref())).collect()
    }

    pub(in crate::proxy) fn all(&self) -> impl Iterator<Item = (ServerId, &Slot)> {
        self.order.iter().map(|id| (*id, self.slot(*id)))
    }

    /// Returns whether hosts have chosen a profile since the start.
    pub(in crate::proxy) fn is_chosen(&self, profile: &ProfileName) -> bool {
        self.chosen.contains(profile)
    }

    /// Returns the roster in which one more profile is in use. No connection changes.
    pub(in crate::proxy) fn with_profile(&self, profile: ProfileName, profiles: &Profiles) -> Self {
        let mut chosen = BTreeSet::clone(&self.chosen);
        chosen.insert(profile);
        let mut after = Self { chosen: Arc::new(chosen), ..self.clone() };
        for id in &after.order {
            let slot = &mut after.slots[id.0];
            let SlotConfig { config, shown } =
                SlotConfig::new(slot.config.clone(), profiles, &after.chosen);
            *slot = Slot { config, shown, ..slot.clone() };
        }
        after
    }

    /// Returns the id of the server that has or had this name.
    fn find(&self, name: &str) -> Option<ServerId> {
        self.slots.iter().position(|slot| slot.config.name == name).map(ServerId)
    }

    /// Returns the roster for these servers. `replace` makes the slot of each, from its id, its
    /// present slot, and the new version.
    pub(in crate::proxy) fn reconfigured(
        &self,
        servers: Vec<ServerConfig>,
        profiles: &Profiles,
        mut replace: impl FnMut(ServerId, Option<&Slot>, u32, SlotConfig) -> Slot,
    ) -> Self {
        let mut after = Self { order: Vec::new(), ..self.clone() };
        for config in servers {
            let known = self.find(&config.name);
            let id = known.unwrap_or(ServerId(after.slots.len()));
            let before = self.slots.get(id.0).filter(|_| self.order.contains(&id));
            let version = self.slots.get(id.0).map_or(0, |slot| slot.version + 1);
            let config = SlotConfig::new(Arc::new(config), profiles, &self.chosen);
            let slot = replace(id, before, version, config);
            match after.slots.get_mut(id.0) {
                Some(place) => *place = slot,
                None => after.slots.push(slot),
            }
            after.order.push(id);
        }
        after
    }
}
