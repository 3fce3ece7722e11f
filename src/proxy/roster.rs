//! Which servers there are, and the handle on each.

use std::sync::{Arc, Weak};

use super::{
    Fleet,
    instance::{Instance, InstanceObserver},
};
use crate::{
    catalog::ServerId,
    config::ServerConfig,
    upstream::{Context, Upstream},
};

/// Immutable, and swapped as a whole when the config changes.
#[derive(Clone, Default)]
pub(super) struct Roster {
    /// By id. A server that the config does not have any more keeps its place: what is in flight refers to it.
    slots: Vec<Slot>,
    /// Those that the config has, in its order.
    order: Vec<ServerId>,
}

#[derive(Clone)]
pub(super) struct Slot {
    /// The instance that hosts share.
    pub(super) upstream: Upstream,
    /// How often its config has changed.
    pub(super) version: u32,
}

impl Slot {
    pub(super) fn start(
        fleet: &Weak<Fleet>,
        context: &Context,
        id: ServerId,
        version: u32,
        config: ServerConfig,
    ) -> Self {
        let instance = Instance { server: id, version, owner: None };
        let observer = InstanceObserver { fleet: fleet.clone(), instance };
        let upstream = Upstream::start(Arc::new(config), Arc::new(observer), context, None);
        Self { upstream, version }
    }
}

impl Roster {
    pub(super) fn slot(&self, id: ServerId) -> &Slot {
        &self.slots[id.0]
    }

    /// The servers that there are, in config order.
    pub(super) fn ids(&self) -> impl Iterator<Item = ServerId> {
        self.order.iter().copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (ServerId, &Slot)> {
        self.order.iter().map(|id| (*id, self.slot(*id)))
    }

    /// Adds a server that had no place.
    pub(super) fn add(&mut self, start: impl FnOnce(ServerId) -> Slot) -> ServerId {
        let id = ServerId(self.slots.len());
        self.slots.push(start(id));
        self.order.push(id);
        id
    }
}
