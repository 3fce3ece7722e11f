//! The era in which a server is connected: that of the host that needs it, if the server speaks it.

use std::sync::Arc;

use super::{ServerObserver, connection::ServerConnection, greet::HandshakePlan};
use crate::{catalog::ProtocolSupport, config::Protocol, protocol::Era};

/// The eras of a server and of its hosts.
pub(super) struct EraChoice {
    protocol: Protocol,
    /// Knows the capabilities that the hosts declare.
    observer: Arc<dyn ServerObserver>,
    /// The era in which the last attempt began.
    attempted: Era,
    /// The era of the host that last needed the server.
    wanted: Era,
    /// The eras and framings known from other runs; `None` before they were read from disk.
    known: Option<ProtocolSupport>,
}

impl EraChoice {
    pub(super) fn new(protocol: Protocol, observer: Arc<dyn ServerObserver>) -> Self {
        let (attempted, wanted) = (Era::Legacy, Era::Legacy);
        Self { protocol, observer, attempted, wanted, known: None }
    }

    /// Notes the era of the host that needs the server.
    pub(super) fn want(&mut self, host_era: Era) {
        self.wanted = host_era;
    }

    /// Notes which eras and framings the server was seen to use.
    pub(super) fn note_spoken(&mut self, spoken: ProtocolSupport) {
        self.known = Some(spoken);
    }

    /// Returns the era in which to begin an attempt, and the eras and framings known so far.
    pub(super) fn begin_attempt(&mut self) -> (Era, Option<ProtocolSupport>) {
        self.attempted = self.wanted;
        (self.wanted, self.known)
    }

    /// Returns whether another connection would suit a host better: in the host's era, if the
    /// server speaks it, or with all capabilities that the host declares.
    pub(super) fn is_unsuitable(&self, connection: &ServerConnection, host_era: Era) -> bool {
        self.is_in_another_era(connection, host_era) || self.declares_too_little(connection)
    }

    /// Returns the era of the first waiting host if the connection suits none of the waiting hosts.
    /// An attempt that was begun in that era is not repeated: the server does not speak it.
    pub(super) fn better(
        &self,
        connection: &ServerConnection,
        mut waiting: impl Iterator<Item = Era> + Clone,
    ) -> Option<Era> {
        let first = waiting.clone().next()?;
        let is_mismatch = |era| self.is_in_another_era(connection, era);
        let is_better = self.declares_too_little(connection)
            || first != self.attempted && waiting.all(is_mismatch);
        is_better.then_some(first)
    }

    /// Returns whether the server may speak this era although the connection uses the other.
    fn is_in_another_era(&self, connection: &ServerConnection, host_era: Era) -> bool {
        let connected = connection.greeting.era;
        let spoken = self.known.unwrap_or_default();
        let plan = HandshakePlan::choose(self.protocol, host_era, spoken);
        host_era != connected && plan != HandshakePlan::Only(connected)
    }

    fn declares_too_little(&self, connection: &ServerConnection) -> bool {
        self.observer.declares_more(&connection.terms.declared, connection.greeting.era)
    }
}
