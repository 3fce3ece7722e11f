//! The address of a store that several machines share.

use std::fmt;

use crate::base::SealingKeys;

/// The address of a Redis or Valkey store, and the keys of what is in it.
#[derive(Clone)]
pub(crate) struct StoreAddress {
    /// `redis://`, or `rediss://` for TLS, with user, password, host, port and database. It may
    /// have a password, and is not shown.
    pub url: String,
    /// The first part of all names in the store.
    pub prefix: String,
    pub keys: SealingKeys,
    /// The certificates that sign that of the store, in PEM; `None` for those of the system.
    pub certificates: Option<Vec<u8>>,
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAddress").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
