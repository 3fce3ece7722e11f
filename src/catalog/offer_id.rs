//! The key of an offer.

use super::ServerId;

/// The key of an offer, which stays the same for as long as the process lives. The offer's
/// position in a snapshot may change with the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OfferId {
    server: ServerId,
    /// The number among the offers of the server; 0 for the offer of everything that it has.
    number: u32,
}

impl OfferId {
    /// Returns the offer of everything that a server has.
    pub fn whole(server: ServerId) -> Self {
        Self { server, number: 0 }
    }

    /// Returns an offer of a part of a server.
    #[cfg(test)]
    pub(crate) fn part(server: ServerId, number: u32) -> Self {
        Self { server, number }
    }

    /// Returns the server whose connection serves the offer.
    pub fn server(self) -> ServerId {
        self.server
    }

    pub fn is_whole(self) -> bool {
        self.number == 0
    }
}
