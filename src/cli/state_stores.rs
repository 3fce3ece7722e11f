//! The stores that a command uses for logins, catalogs and loads: the user's files, or a server
//! that several machines share.

use anyhow::Context as _;

use super::{settings, shared_flags::Options};
use crate::{
    auth::{Auth, Browser, LoginStore},
    catalog::Cache,
    config::{ConfigFile, Settings, StoreSettings},
    proxy::{RememberedLoads, Storage},
    store::{SharedStores, StoreAddress, Stores},
};

/// If set, logins are kept in files even if there is a keychain.
const NO_KEYCHAIN: &str = "DORMOUSE_NO_KEYCHAIN";

/// The stores of one config.
pub(super) struct StateStores {
    /// `None` without a home directory: nothing is kept.
    stores: Option<Stores>,
}

impl StateStores {
    /// Returns the stores that a config names.
    ///
    /// # Errors
    /// If the certificates of a shared store cannot be read, or its address is invalid.
    pub(super) fn of(settings: &Settings) -> anyhow::Result<Self> {
        let Some(address) = address(&settings.store)? else { return Ok(Self::of_user()) };
        let stores = Stores::shared(&address).context("cannot use the store of the config")?;
        Ok(Self { stores: Some(stores) })
    }

    /// Returns the stores of files of the user.
    pub(super) fn of_user() -> Self {
        Self { stores: Stores::of_user() }
    }

    pub(super) fn catalogs(&self) -> Option<Cache> {
        Some(Cache::new(self.stores.as_ref()?.catalogs.clone()))
    }

    /// Returns the store that several machines share, if the config names one.
    pub(super) fn shared(&self) -> Option<&SharedStores> {
        self.stores.as_ref()?.shared.as_ref()
    }

    /// Returns the place of catalogs, and of the loads of this config.
    pub(super) fn storage(&self, config: Option<&ConfigFile>) -> Storage {
        let Some(stores) = &self.stores else { return Storage::default() };
        let loads = |file: &ConfigFile| {
            // Machines that share a store have the config at different places.
            let name = if stores.shared.is_some() { SHARED_LOADS } else { &file.fingerprint() };
            RememberedLoads::new(stores.loads.clone(), name.to_owned())
        };
        let hosts = stores.shared.as_ref().map(SharedStores::hosts);
        Storage { catalogs: self.catalogs(), loads: config.map(loads), hosts }
    }

    /// Returns the logins. `config` is the config of their servers; errors name the command that
    /// logs in.
    pub(super) fn auth(&self, config: Option<&ConfigFile>, options: &Options) -> Auth {
        self.auth_with(config, options, Browser::Here)
    }

    /// Returns the logins, for a process that reaches the user's browser in this way.
    pub(super) fn auth_with(
        &self,
        config: Option<&ConfigFile>,
        options: &Options,
        browser: Browser,
    ) -> Auth {
        let logins = self.stores.as_ref().map(|stores| stores.logins.clone());
        // Other machines cannot read the keychain of this one.
        let uses_keychain = self.shared().is_none()
            && std::env::var_os(NO_KEYCHAIN).is_none_or(|value| value.is_empty());
        let commands = settings::user_commands(config, options);
        Auth::new(LoginStore::new(logins, uses_keychain), commands, browser)
    }
}

/// The name of the loads in a shared store.
const SHARED_LOADS: &str = "loaded";

/// Returns the address of the store that several machines share, if the config names one.
fn address(settings: &StoreSettings) -> anyhow::Result<Option<StoreAddress>> {
    let StoreSettings { store, store_prefix, store_certificates, .. } = settings;
    let Some(url) = store.clone() else { return Ok(None) };
    let keys = settings.sealing_keys();
    let keys = keys.context("storeKeys needs a key: run `dormouse store key`")?;
    let read = |path: &std::path::PathBuf| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let certificates = store_certificates.as_ref().map(read).transpose()?;
    Ok(Some(StoreAddress { url, prefix: store_prefix.clone(), keys, certificates }))
}
