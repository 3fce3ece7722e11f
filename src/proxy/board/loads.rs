//! The offers that hosts have loaded.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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

/// The numbers of requests for offers since the start, without those that have failed. A server
/// with several offers loads only these when a request connects it.
#[derive(Default)]
pub(super) struct RequestedLoads(Lock<BTreeMap<OfferId, usize>>);

/// A request for an offer, which is forgotten if it fails or is cancelled.
#[must_use = "it is forgotten when it is dropped"]
pub(in crate::proxy) struct LoadRequest<'a> {
    requested: &'a RequestedLoads,
    offer: Option<OfferId>,
}

impl RequestedLoads {
    pub(super) fn begin(&self, offer: OfferId) -> LoadRequest<'_> {
        *self.0.lock().entry(offer).or_default() += 1;
        LoadRequest { requested: self, offer: Some(offer) }
    }

    pub(super) fn has(&self, offer: OfferId) -> bool {
        self.0.lock().contains_key(&offer)
    }
}

impl LoadRequest<'_> {
    /// Keeps the request: the offer is loaded with its server from now on.
    pub(in crate::proxy) fn keep(mut self) {
        self.offer = None;
    }
}

impl Drop for LoadRequest<'_> {
    fn drop(&mut self) {
        let Some(offer) = self.offer else { return };
        let mut requested = self.requested.0.lock();
        if let Some(count) = requested.get_mut(&offer) {
            *count -= 1;
            requested.retain(|_, count| *count > 0);
        }
    }
}
