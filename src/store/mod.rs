//! Values by name that outlive a process. All processes of a user share them.
//!
//! This layer does not know what the values are: catalogs, logins, loads and trusted configs are
//! on top of it, each in the layer that uses them. No other layer knows where the values are:
//! [`Stores`] makes the stores.

mod file_store;
mod lease_wait;
#[cfg(test)]
mod linearizability;
mod pruning;
mod store_lease;
mod stored_version;
mod stores;
mod value_store;
mod watching;

pub(crate) use file_store::FileStore;
pub(crate) use lease_wait::{lease, lease_blocking};
pub(crate) use pruning::PruneLimits;
pub(crate) use store_lease::StoreLease;
pub(crate) use stored_version::StoredVersion;
pub(crate) use stores::Stores;
pub(crate) use value_store::Store;
pub(crate) use watching::{CHECK_INTERVAL, wait_for_change};
