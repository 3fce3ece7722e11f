//! The servers that each session has loaded, where loads belong to sessions (`"loads": "session"`).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{base::Lock, catalog::ServerId, config, proxy::Principal};

pub(super) struct SessionLoads {
    policy: config::Loads,
    by_principal: Lock<HashMap<Principal, Arc<BTreeSet<ServerId>>>>,
}

impl SessionLoads {
    pub(super) fn new(policy: config::Loads) -> Self {
        Self { policy, by_principal: Lock::default() }
    }

    /// Returns the servers that a principal has loaded; `None` where all hosts see all loads.
    pub(super) fn of(&self, principal: Principal) -> Option<Arc<BTreeSet<ServerId>>> {
        match self.policy {
            config::Loads::Process => None,
            config::Loads::Session => {
                Some(self.by_principal.lock().get(&principal).cloned().unwrap_or_default())
            }
        }
    }

    /// Returns whether a principal sees a load of this server.
    pub(super) fn are_seen_by(&self, principal: Principal, server: ServerId) -> bool {
        self.of(principal).is_none_or(|loaded| loaded.contains(&server))
    }

    /// Notes a load. Returns whether it is new to this principal, and to no other.
    pub(super) fn add(&self, principal: Principal, server: ServerId) -> bool {
        self.policy == config::Loads::Session
            && Arc::make_mut(self.by_principal.lock().entry(principal).or_default()).insert(server)
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.by_principal.lock().remove(&principal);
    }
}
