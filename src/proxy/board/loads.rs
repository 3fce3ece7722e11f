//! The offers that hosts have loaded.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{base::Lock, catalog::OfferId, config, proxy::Principal};

/// The offers that each session has loaded, where loads belong to sessions (`"loads": "session"`).
pub(super) struct SessionLoads {
    policy: config::Loads,
    by_principal: Lock<HashMap<Principal, Arc<BTreeSet<OfferId>>>>,
}

impl SessionLoads {
    pub(super) fn new(policy: config::Loads) -> Self {
        Self { policy, by_principal: Lock::default() }
    }

    /// Returns the offers that a principal has loaded; `None` where all hosts see all loads.
    pub(super) fn of(&self, principal: Principal) -> Option<Arc<BTreeSet<OfferId>>> {
        match self.policy {
            config::Loads::Process => None,
            config::Loads::Session => {
                Some(self.by_principal.lock().get(&principal).cloned().unwrap_or_default())
            }
        }
    }

    /// Returns whether a principal sees a load of this offer.
    pub(super) fn are_seen_by(&self, principal: Principal, offer: OfferId) -> bool {
        self.of(principal).is_none_or(|loaded| loaded.contains(&offer))
    }

    /// Notes a load. Returns whether it is new to this principal, and to no other.
    pub(super) fn add(&self, principal: Principal, offer: OfferId) -> bool {
        self.policy == config::Loads::Session
            && Arc::make_mut(self.by_principal.lock().entry(principal).or_default()).insert(offer)
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.by_principal.lock().remove(&principal);
    }
}

/// The offers that have been requested since the start. A server with several offers loads only
/// these when a request connects it.
#[derive(Default)]
pub(super) struct RequestedLoads(Lock<BTreeSet<OfferId>>);

impl RequestedLoads {
    pub(super) fn note(&self, offer: OfferId) {
        self.0.lock().insert(offer);
    }

    pub(super) fn has(&self, offer: OfferId) -> bool {
        self.0.lock().contains(&offer)
    }
}
