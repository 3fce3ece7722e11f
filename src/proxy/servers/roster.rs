//! Which servers there are, and the handle on each.

use std::sync::Arc;

use super::{Observe, has_first_attempt};
use crate::{
    catalog::ServerId,
    config::{ServerConfig, Startup},
    protocol::Era,
    proxy::instance::Instance,
    upstream::{Context, Upstream},
};

/// Immutable, and swapped as a whole when the config changes.
#[derive(Clone, Default)]
pub(in crate::proxy) struct Roster {
    /// By id. A server that the config does not have any more keeps its place: what is in flight refers to it.
    slots: Vec<Slot>,
    /// Those that the config has, in its order.
    order: Vec<ServerId>,
}

#[derive(Clone)]
pub(in crate::proxy) struct Slot {
    /// The instance that hosts share.
    pub(in crate::proxy) upstream: Upstream,
    /// As it is now. What of it concerns the connection is as it was when the instance was started.
    pub(in crate::proxy) config: Arc<ServerConfig>,
    /// How often that has changed.
    pub(in crate::proxy) version: u32,
}

impl Slot {
    pub(in crate::proxy) fn start(
        context: &Context,
        observe: &Observe,
        instance: Instance,
        config: Arc<ServerConfig>,
    ) -> Self {
        let upstream = Upstream::start(config.clone(), observe(instance), context, None);
        Self { upstream, config, version: instance.version }
    }

    /// Connects an eager server in the background, or finds out what a hybrid one has.
    pub(in crate::proxy) fn begin(&self, era: Era) {
        match self.config.startup {
            Startup::Eager if has_first_attempt(&self.config) => self.upstream.begin(era),
            Startup::Hybrid if has_first_attempt(&self.config) => self.upstream.learn(),
            _ => {}
        }
    }
}

impl Roster {
    pub(in crate::proxy) fn slot(&self, id: ServerId) -> &Slot {
        &self.slots[id.0]
    }

    /// Whether the config has it at this moment.
    pub(in crate::proxy) fn has(&self, id: ServerId) -> bool {
        self.order.contains(&id)
    }

    /// The instance of a server that hosts share.
    pub(in crate::proxy) fn shared(&self, id: ServerId) -> Instance {
        Instance::shared(id, self.slot(id).version)
    }

    /// The servers that there are, in config order.
    pub(in crate::proxy) fn ids(&self) -> impl Iterator<Item = ServerId> {
        self.order.iter().copied()
    }

    /// What the config says of each, in its order.
    pub(in crate::proxy) fn configs(&self) -> Vec<(ServerId, &ServerConfig)> {
        self.all().map(|(id, slot)| (id, slot.config.as_ref())).collect()
    }

    pub(in crate::proxy) fn all(&self) -> impl Iterator<Item = (ServerId, &Slot)> {
        self.order.iter().map(|id| (*id, self.slot(*id)))
    }

    /// The place of the server of this name, whether the config has it at this moment or once had it.
    fn find(&self, name: &str) -> Option<ServerId> {
        self.slots.iter().position(|slot| slot.config.name == name).map(ServerId)
    }

    /// The roster for these servers. `replace` says what becomes of one, given its place, and what was there if
    /// the config has it at this moment.
    pub(in crate::proxy) fn reconfigured(
        &self,
        servers: Vec<ServerConfig>,
        mut replace: impl FnMut(ServerId, Option<&Slot>, u32, Arc<ServerConfig>) -> Slot,
    ) -> Self {
        let mut after = Self { slots: self.slots.clone(), order: Vec::new() };
        for config in servers {
            let known = self.find(&config.name);
            let id = known.unwrap_or(ServerId(after.slots.len()));
            let before = self.slots.get(id.0).filter(|_| self.order.contains(&id));
            let version = self.slots.get(id.0).map_or(0, |slot| slot.version + 1);
            let slot = replace(id, before, version, Arc::new(config));
            match after.slots.get_mut(id.0) {
                Some(place) => *place = slot,
                None => after.slots.push(slot),
            }
            after.order.push(id);
        }
        after
    }
}
