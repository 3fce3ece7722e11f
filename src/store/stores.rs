//! The stores that a process uses.

use std::{io, path::PathBuf, sync::Arc};

use etcetera::BaseStrategy as _;

use super::{
    FileStore, RedisStore, Store, StoreAddress, redis_link::RedisLink, store_health::StoreHealth,
};
use crate::base::SealingKeys;

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
    kinds: Vec<(&'static str, RedisStore)>,
    replicas: RedisStore,
    keys: SealingKeys,
}

const CATALOGS: &str = "catalogs";
const LOADS: &str = "loads";
const LOGINS: &str = "logins";
const REPLICAS: &str = "replicas";

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
        let kind = |kind: &'static str| {
            (kind, RedisStore::new(link.clone(), address.keys.clone(), &address.prefix, kind))
        };
        let kinds = vec![kind(CATALOGS), kind(LOADS), kind(LOGINS)];
        let (_, replicas) = kind(REPLICAS);
        let store = |at: usize| Arc::new(kinds[at].1.clone());
        Ok(Self {
            catalogs: store(0),
            loads: store(1),
            logins: store(2),
            shared: Some(SharedStores { link, kinds, replicas, keys: address.keys.clone() }),
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

    /// Returns the store in which replicas tell of themselves, and the keys that they share.
    pub(super) fn replicas(&self) -> (RedisStore, SealingKeys) {
        (self.replicas.clone(), self.keys.clone())
    }

    pub(super) fn link(&self) -> &Arc<RedisLink> {
        &self.link
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, &RedisStore)> {
        self.kinds.iter().map(|(kind, store)| (*kind, store))
    }
}
