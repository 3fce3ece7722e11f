//! The stores that a process uses.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use etcetera::BaseStrategy as _;

use super::{
    ExpiringStore, FileStore, RedisStore, Store, StoreAddress, expiring_store::ExpiryBounds,
    redis_link::RedisLink, store_health::StoreHealth,
};

/// The stores of one installation, one for each kind of value.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    pub catalogs: Arc<dyn Store>,
    pub loads: Arc<dyn Store>,
    pub logins: Arc<dyn Store>,
    /// The server that holds them; `None` if they are files of this user.
    pub shared: Option<SharedStores>,
}

/// The server that holds the values of several machines.
#[derive(Clone, Debug)]
pub(crate) struct SharedStores {
    link: Arc<RedisLink>,
    kinds: Vec<RedisStore>,
    replicas: RedisStore,
    hosts: HostStores,
}

/// The stores for the state that a host would lose with its replica.
#[derive(Clone, Debug)]
pub(crate) struct HostStores {
    /// The records of hosts.
    pub records: ExpiringStore,
    /// The results that were cut for them.
    pub results: ExpiringStore,
}

/// The bounds of the records of hosts.
const HOSTS_BOUNDS: ExpiryBounds = ExpiryBounds {
    lifetime: Duration::from_hours(7 * 24),
    max_values: 20_000,
    max_bytes: 256 * 1024,
};
/// The bounds of results. The replica that has cut a result keeps it for as long.
const RESULTS_BOUNDS: ExpiryBounds = ExpiryBounds {
    lifetime: Duration::from_hours(1),
    max_values: 1000,
    // A text of 1 MiB, and the place of the JSON in it.
    max_bytes: 1024 * 1024 + 1024,
};

const CATALOGS: &str = "catalogs";
const LOADS: &str = "loads";
const LOGINS: &str = "logins";
const REPLICAS: &str = "replicas";
const HOSTS: &str = "hosts";
const RESULTS: &str = "results";

impl Stores {
    /// Returns the stores of files below the user's directories for caches and for data. `None` if
    /// the user has no home directory.
    pub(crate) fn of_user() -> Option<Self> {
        let strategy = etcetera::choose_base_strategy().ok()?;
        let cache = |kind: &str| strategy.cache_dir().join("dormouse").join(kind);
        let data = |kind: &str| strategy.data_dir().join("dormouse").join(kind);
        let files = |directory: PathBuf| Arc::new(FileStore::new(directory));
        Some(Self {
            catalogs: files(cache(CATALOGS)),
            loads: files(data(LOADS)),
            logins: Arc::new(FileStore::for_secrets(data(LOGINS))),
            shared: None,
        })
    }

    /// Returns the stores in a server. It is connected when it is first used.
    ///
    /// # Errors
    /// If the address is invalid.
    pub(crate) fn shared(address: &StoreAddress) -> io::Result<Self> {
        let link = RedisLink::open(address)?;
        let store = |kind: &'static str| {
            RedisStore::new(link.clone(), address.keys.clone(), &address.prefix, kind)
        };
        let (catalogs, loads, logins) = (store(CATALOGS), store(LOADS), store(LOGINS));
        let (records, results) = (store(HOSTS), store(RESULTS));
        let kinds = [&catalogs, &loads, &logins, &records, &results];
        let kinds = kinds.into_iter().cloned().collect();
        let hosts = HostStores {
            records: ExpiringStore::new(records, HOSTS_BOUNDS),
            results: ExpiringStore::new(results, RESULTS_BOUNDS),
        };
        let replicas = store(REPLICAS);
        Ok(Self {
            catalogs: Arc::new(catalogs),
            loads: Arc::new(loads),
            logins: Arc::new(logins),
            shared: Some(SharedStores { link, kinds, replicas, hosts }),
        })
    }
}

/// Returns the store of the configs that the user trusts. It is never shared: a config is trusted
/// on one machine. `None` if the user has no home directory.
pub(crate) fn trusted_configs() -> Option<Arc<dyn Store>> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(Arc::new(FileStore::new(strategy.data_dir().join("dormouse").join("trusted"))))
}

impl SharedStores {
    /// Returns the server and database, without user and password.
    pub(crate) fn place(&self) -> &str {
        self.link.place()
    }

    pub(crate) fn health(&self) -> &Arc<StoreHealth> {
        self.link.health()
    }

    /// Returns the store in which replicas tell of themselves.
    pub(super) fn replicas(&self) -> RedisStore {
        self.replicas.clone()
    }

    /// Returns the stores for the state of hosts.
    pub(crate) fn hosts(&self) -> HostStores {
        self.hosts.clone()
    }

    pub(super) fn link(&self) -> &Arc<RedisLink> {
        &self.link
    }

    pub(super) fn kinds(&self) -> &[RedisStore] {
        &self.kinds
    }
}
