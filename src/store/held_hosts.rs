//! The hosts for which a replica keeps something: their loads, or their instances of servers.

use std::collections::BTreeSet;

use crate::base::Lock;

/// A hash by which all replicas know a host.
pub(crate) type HostNumber = u64;

/// Maximum number of hosts in the record of a replica. Others begin anew when a replica joins that
/// gets their requests.
const MAX_TOLD: usize = 5000;

/// The hosts of one replica.
#[derive(Debug, Default)]
pub(super) struct HeldHosts {
    all: Lock<BTreeSet<HostNumber>>,
}

impl HeldHosts {
    pub(super) fn has(&self, host: HostNumber) -> bool {
        self.all.lock().contains(&host)
    }

    /// Adds a host. Returns whether it is new.
    pub(super) fn add(&self, host: HostNumber) -> bool {
        self.all.lock().insert(host)
    }

    pub(super) fn remove(&self, host: HostNumber) {
        self.all.lock().remove(&host);
    }

    /// Returns the hosts that the others are told of.
    pub(super) fn told(&self) -> BTreeSet<HostNumber> {
        self.all.lock().iter().take(MAX_TOLD).copied().collect()
    }
}
