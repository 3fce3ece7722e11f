//! The system's keychain: Keychain on macOS, the Credential Manager on Windows, the Secret Service on Linux. A machine
//! without a desktop has none.

use std::sync::{Arc, OnceLock};

use keyring_core::{CredentialStore, Error};

use crate::config::Secret;

const SERVICE: &str = "dormouse";

/// Opened when it is first needed. Its calls may wait for a person.
pub(super) struct Keychain(OnceLock<Option<Arc<CredentialStore>>>);

#[derive(Debug, thiserror::Error)]
#[error("the system's keychain: {0}")]
pub struct KeychainError(String);

impl Keychain {
    pub(super) fn of_system() -> Self {
        Self(OnceLock::new())
    }

    /// None, whatever the system has.
    pub(super) fn none() -> Self {
        Self(OnceLock::from(None))
    }

    fn store(&self) -> Option<&Arc<CredentialStore>> {
        let open = || open().inspect_err(|error| tracing::debug!(%error, "no keychain")).ok();
        self.0.get_or_init(open).as_ref()
    }

    pub(super) fn is_there(&self) -> bool {
        self.store().is_some()
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<Secret>, KeychainError> {
        match self.entry(name)?.get_password() {
            Ok(text) => Ok(Some(Secret::new(text))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    pub(super) fn set(&self, name: &str, text: &Secret) -> Result<(), KeychainError> {
        self.entry(name)?.set_password(text.expose()).map_err(|error| failed(&error))
    }

    pub(super) fn delete(&self, name: &str) -> Result<(), KeychainError> {
        match self.entry(name)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }

    fn entry(&self, name: &str) -> Result<keyring_core::Entry, KeychainError> {
        let store = self.store().ok_or_else(|| KeychainError("there is none".to_owned()))?;
        store.build(SERVICE, name, None).map_err(|error| failed(&error))
    }
}

/// Some of its errors hold the secret.
fn failed(error: &Error) -> KeychainError {
    KeychainError(match error {
        Error::BadEncoding(_) | Error::BadDataFormat(..) => "what is there is no text".to_owned(),
        Error::Ambiguous(_) => "there are several entries of this name".to_owned(),
        Error::TooLong(..) => "it takes no text as long as this".to_owned(),
        other => other.to_string(),
    })
}

#[cfg(target_os = "linux")]
fn open() -> Result<Arc<CredentialStore>, Error> {
    let has_bus = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some()
        || std::env::var_os("XDG_RUNTIME_DIR")
            .is_some_and(|directory| std::path::Path::new(&directory).join("bus").exists());
    if !has_bus {
        return Err(Error::NoDefaultStore);
    }
    let store: Arc<CredentialStore> = zbus_secret_service_keyring_store::Store::new()?;
    Ok(store)
}

#[cfg(target_os = "macos")]
fn open() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = apple_native_keyring_store::keychain::Store::new()?;
    Ok(store)
}

#[cfg(windows)]
fn open() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = windows_native_keyring_store::Store::new()?;
    Ok(store)
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn open() -> Result<Arc<CredentialStore>, Error> {
    Err(Error::NoDefaultStore)
}
