//! The key of an offer.

use sha2::{Digest as _, Sha256};

use super::ServerId;

/// The key of an offer, which stays the same for as long as the process lives. The offer's
/// position in a snapshot may change with the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OfferId {
    server: ServerId,
    /// A hash of the toolset's name; 0 for the offer of everything that the server has.
    toolset: u64,
}

impl OfferId {
    /// Returns the offer of everything that a server has.
    pub fn whole(server: ServerId) -> Self {
        Self { server, toolset: 0 }
    }

    /// Returns the offer of a toolset. A toolset that a reload of the config renames is another.
    pub fn toolset(server: ServerId, name: &str) -> Self {
        let hash = Sha256::digest(name.as_bytes());
        let hash = hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self { server, toolset: hash.max(1) }
    }

    /// Returns the server whose connection serves the offer.
    pub fn server(self) -> ServerId {
        self.server
    }

    pub fn is_whole(self) -> bool {
        self.toolset == 0
    }
}
