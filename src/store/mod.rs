//! Values by name that outlive a process. All processes of a user share them.
//!
//! This layer does not know what the values are: catalogs, logins, loads and trusted configs are
//! on top of it, each in the layer that uses them. [`Stores`] makes the stores, and only it knows
//! where their values are. The original files of apps are not values: `cli` chooses their
//! directory.

mod change_channel;
mod expiring_store;
mod file_store;
mod held_hosts;
mod known_replicas;
mod lease_wait;
#[cfg(test)]
mod linearizability;
mod pruning;
mod redis_lease;
mod redis_link;
#[cfg(test)]
pub(crate) mod redis_server;
mod redis_store;
mod replica_news;
mod replicas;
mod store_address;
mod store_health;
mod store_lease;
mod store_report;
mod stored_kind;
mod stored_record;
mod stored_version;
mod stores;
mod value_store;
mod watching;

pub(crate) use expiring_store::ExpiringStore;
pub(crate) use file_store::FileStore;
pub(crate) use held_hosts::HostNumber;
pub(crate) use known_replicas::Replica;
pub(crate) use lease_wait::{lease, lease_blocking};
pub(crate) use pruning::PruneLimits;
use redis_store::RedisStore;
pub(crate) use replicas::{Home, Occasion, Replicas, SharedState};
pub(crate) use store_address::StoreAddress;
pub(crate) use store_health::StoreHealth;
pub(crate) use store_lease::StoreLease;
pub(crate) use store_report::StoreReport;
use stored_kind::StoredKind;
pub(crate) use stored_version::StoredVersion;
pub(crate) use stores::{HostStores, SharedStores, Stores, trusted_configs};
pub(crate) use value_store::{STORE_LEASE, Store};
pub(crate) use watching::{CHECK_INTERVAL, wait_for_change};
