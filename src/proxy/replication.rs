//! What a fleet does as that of one replica of a service: state of hosts that moves to another
//! replica, and news of loads and catalogs.

use std::collections::BTreeSet;

use super::{
    Endpoint, Fleet, Principal, catalogs,
    host_memory::HostName,
    host_recall::{self, restore_offers},
    operator::{Operator, known},
};
use crate::{
    catalog::{OfferId, ServerId},
    config::Isolation,
};

/// The operations for other replicas of the service.
pub(crate) struct Replication<'a> {
    fleet: &'a Fleet,
}

impl<'a> Operator<'a> {
    /// Returns the operations for other replicas.
    pub(crate) fn replication(&self) -> Replication<'a> {
        Replication { fleet: self.fleet }
    }
}

impl Replication<'_> {
    /// Returns whether something is kept for single hosts at an endpoint, so that the requests of a
    /// host belong together: its own loads, or its own instances of servers.
    pub(crate) fn keeps_state_of_hosts(&self, endpoint: &Endpoint) -> bool {
        let roster = self.fleet.servers.roster();
        let is_of_hosts = |server: ServerId| {
            let config = &roster.slot(server).config;
            config.enabled
                && config.connecting.isolation == Isolation::Session
                && self.fleet.board.shows(endpoint, server)
        };
        self.fleet.board.has_loads_of_sessions() || roster.ids().any(is_of_hosts)
    }

    /// Returns the name of an offer, by which all replicas know it.
    pub(crate) fn offer_name(&self, offer: OfferId) -> Option<String> {
        Some(self.fleet.board.snapshot().offer(offer)?.name.clone())
    }

    /// Keeps the state of a new host for other replicas from now on.
    pub(crate) fn keep_host(&self, principal: Principal, name: impl FnOnce() -> HostName) {
        self.fleet.memory.hosts.add(principal, name);
    }

    /// Removes the state of a host that has ended its session from the store.
    pub(crate) fn remove_record_of(&self, principal: Principal) {
        host_recall::remove_record(self.fleet, principal);
    }

    /// Gives a host the state that another replica has kept, and keeps it from now on. Waits for
    /// the store the first time.
    pub(crate) async fn recall_host(&self, principal: Principal, name: impl FnOnce() -> HostName) {
        host_recall::recall_host(self.fleet, principal, name).await;
    }

    /// Has the next request of each host read its state again: others may have served the hosts.
    pub(crate) fn recall_hosts_again(&self) {
        self.fleet.memory.hosts.recall_again();
    }

    /// Loads offers that hosts have loaded at another replica. Their servers stay asleep until they
    /// are used, if their catalogs are known.
    pub(crate) fn adopt_loads(&self, names: &[String]) {
        if self.fleet.board.has_loads_of_sessions() {
            return;
        }
        restore_offers(self.fleet, |offer| names.contains(&offer.name));
    }

    /// Returns the names of the offers that hosts have loaded for all hosts.
    pub(crate) fn loads_for_all(&self) -> Vec<String> {
        if self.fleet.board.has_loads_of_sessions() {
            Vec::new()
        } else {
            self.fleet.operator().loaded()
        }
    }

    /// Waits until this process has stored catalogs, and returns the names of their servers. There
    /// is one receiver of these.
    pub(crate) async fn take_written_catalogs(&self) -> BTreeSet<String> {
        self.fleet.memory.catalogs.take_written().await
    }

    /// Shows the catalog of a server that another process has stored, if this one is not connected
    /// to the server.
    pub(crate) async fn read_stored_catalog(&self, server: &str) {
        if let Ok(server) = known(self.fleet, server) {
            catalogs::read_stored(self.fleet, server).await;
        }
    }

    /// Has another replica go on with a host that both have served. Its instances here end when
    /// nothing is in flight, and its state is read again if it comes back. Its results and tasks
    /// stay, since their ids lead here.
    pub(crate) fn hand_over(&self, host: Principal) {
        self.fleet.memory.hosts.recall_host_again(host);
        self.fleet.servers.owned().retire(|instance| !instance.is_of_host(host));
    }
}
