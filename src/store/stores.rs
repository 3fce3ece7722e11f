//! The stores that a user has.

use std::{path::PathBuf, sync::Arc};

use etcetera::BaseStrategy as _;

use super::{FileStore, Store};

/// The stores of the current user, one for each kind of value.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    pub catalogs: Arc<dyn Store>,
    pub loads: Arc<dyn Store>,
    pub logins: Arc<dyn Store>,
    /// The configs that may run commands.
    pub trusted: Arc<dyn Store>,
}

impl Stores {
    /// Returns the stores of files below the user's directories for caches and for data. `None` if
    /// the user has no home directory.
    pub(crate) fn of_user() -> Option<Self> {
        let strategy = etcetera::choose_base_strategy().ok()?;
        let cache = |kind: &str| strategy.cache_dir().join("dormouse").join(kind);
        let data = |kind: &str| strategy.data_dir().join("dormouse").join(kind);
        let files = |directory: PathBuf| Arc::new(FileStore::new(directory));
        Some(Self {
            catalogs: files(cache("catalogs")),
            loads: files(data("loads")),
            logins: Arc::new(FileStore::for_secrets(data("logins"))),
            trusted: files(data("trusted")),
        })
    }
}
