//! The offers that a host sees.

use std::{collections::BTreeSet, sync::Arc};

use super::{OfferId, Snapshot};
use crate::config::ProfileName;

/// A choice of offers: of an endpoint, of its profile, and of a session that loads its own servers.
/// The result of a choice is a smaller snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OfferChoice {
    /// The only offer, which has bare names: the host is connected to `/servers/<name>`.
    pub only: Option<OfferId>,
    /// The profile, which contains the offers and the tools that can be seen.
    pub profile: Option<ProfileName>,
    /// The offers that the session has loaded; `None` where loads are for all sessions.
    pub loaded: Option<Arc<BTreeSet<OfferId>>>,
}

impl OfferChoice {
    /// Returns whether a host with this choice sees the whole snapshot.
    pub(crate) fn is_whole(&self, snapshot: &Snapshot) -> bool {
        self.loaded.is_none() && self.profile.is_none() && self.only_in(snapshot).is_none()
    }

    /// Returns the part of a snapshot that is chosen.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> Snapshot {
        let mut chosen = match &self.loaded {
            Some(loaded) => snapshot.seen_by(|offer| loaded.contains(&offer)),
            None => snapshot.clone(),
        };
        if let Some(profile) = &self.profile {
            chosen = chosen.within(profile);
        }
        match self.only_in(snapshot) {
            Some(only) => chosen.only(only),
            None => chosen,
        }
    }

    /// Returns the only offer, unless the snapshot has only one anyway.
    fn only_in(&self, snapshot: &Snapshot) -> Option<OfferId> {
        self.only.filter(|_| snapshot.sole.is_none())
    }
}
