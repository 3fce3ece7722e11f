//! The system's keychain: Keychain on macOS, the Credential Manager on Windows, the Secret Service
//! on Linux. A machine without a desktop has none.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use keyring_core::{CredentialStore, Entry, Error};

use crate::config::Secret;

/// Name under which users store the secrets for `keychain:NAME`.
pub(super) const SECRETS_SERVICE: &str = "dormouse";
/// Name under which logins are stored, so that no config can refer to them.
pub(super) const LOGINS_SERVICE: &str = "dormouse-logins";

/// Maximum time for the user to unlock the keychain.
const UNLOCK_TIMEOUT: Duration = Duration::from_mins(1);

/// Access to the keychain through a thread of its own, because on Linux the keychain may be neither
/// used nor dropped on a thread that runs tasks. The first use opens it.
pub(super) struct Keychain {
    open: KeychainOpener,
    jobs: OnceLock<Option<mpsc::Sender<KeychainJob>>>,
}

type KeychainOpener = fn() -> Result<Arc<CredentialStore>, Error>;

type KeychainJob = Box<dyn FnOnce(&CredentialStore) + Send>;

#[derive(Debug, thiserror::Error)]
#[error("the system's keychain: {0}")]
pub(crate) struct KeychainError(String);

impl Keychain {
    pub(super) fn system() -> Self {
        Self { open, jobs: OnceLock::new() }
    }

    /// Makes a keychain that is never available.
    pub(super) fn disabled() -> Self {
        Self { open, jobs: OnceLock::from(None) }
    }

    /// Makes a keychain in memory.
    #[cfg(test)]
    pub(super) fn mock() -> Self {
        let open: KeychainOpener = || Ok(keyring_core::mock::Store::new()?);
        Self { open, jobs: OnceLock::new() }
    }

    fn jobs(&self) -> Option<&mpsc::Sender<KeychainJob>> {
        self.jobs.get_or_init(|| start_thread(self.open)).as_ref()
    }

    pub(super) fn is_available(&self) -> bool {
        self.jobs().is_some()
    }

    /// Reads an entry. Blocks while the user has to unlock the keychain.
    pub(super) fn get(
        &self,
        service: &'static str,
        name: &str,
    ) -> Result<Option<Secret>, KeychainError> {
        self.with_entry(service, name, |entry| match entry.get_password() {
            Ok(text) => Ok(Some(Secret::new(text))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(keychain_error(&error)),
        })
    }

    /// Writes an entry; blocks as `get` does.
    pub(super) fn set(
        &self,
        service: &'static str,
        name: &str,
        text: Secret,
    ) -> Result<(), KeychainError> {
        let set = move |entry: Entry| entry.set_password(text.expose());
        self.with_entry(service, name, move |entry| {
            set(entry).map_err(|error| keychain_error(&error))
        })
    }

    /// Deletes an entry; blocks as `get` does.
    pub(super) fn delete(&self, service: &'static str, name: &str) -> Result<(), KeychainError> {
        self.with_entry(service, name, |entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(keychain_error(&error)),
        })
    }

    fn with_entry<T: Send + 'static>(
        &self,
        service: &'static str,
        name: &str,
        work: impl FnOnce(Entry) -> Result<T, KeychainError> + Send + 'static,
    ) -> Result<T, KeychainError> {
        let jobs = self.jobs().ok_or_else(|| KeychainError("no keychain available".to_owned()))?;
        let (reply, answer) = mpsc::channel();
        let (name, is_late) = (name.to_owned(), Arc::new(AtomicBool::new(false)));
        let was_late = is_late.clone();
        let job: KeychainJob = Box::new(move |store| {
            // The caller has given up, and the login may have changed since then.
            if was_late.load(Ordering::Relaxed) {
                return;
            }
            let entry = store.build(service, &name, None).map_err(|error| keychain_error(&error));
            // The caller may have given up.
            let _ = reply.send(entry.and_then(work));
        });
        let late = || KeychainError("no answer; the keychain may be locked".to_owned());
        jobs.send(job).map_err(|_| late())?;
        answer.recv_timeout(UNLOCK_TIMEOUT).unwrap_or_else(|_| {
            is_late.store(true, Ordering::Relaxed);
            Err(late())
        })
    }
}

/// Starts the thread that opens the keychain. It ends when the last sender is dropped.
fn start_thread(open: KeychainOpener) -> Option<mpsc::Sender<KeychainJob>> {
    let (jobs, inbox) = mpsc::channel::<KeychainJob>();
    let (opened, is_open) = mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        let store = open().inspect_err(|error| tracing::debug!(%error, "no keychain")).ok();
        // The receiver below waits for this, unless it has timed out.
        let _ = opened.send(store.is_some());
        if let Some(store) = store {
            for job in inbox {
                job(store.as_ref());
            }
        }
    });
    if let Err(error) = thread {
        tracing::debug!(%error, "cannot start a thread for the keychain");
        return None;
    }
    let is_open = is_open.recv_timeout(UNLOCK_TIMEOUT).unwrap_or(false);
    is_open.then_some(jobs)
}

/// Leaves out the text of errors that contain the secret.
fn keychain_error(error: &Error) -> KeychainError {
    KeychainError(match error {
        Error::BadEncoding(_) | Error::BadDataFormat(..) => "the entry is not text".to_owned(),
        Error::Ambiguous(_) => "several entries have this name".to_owned(),
        Error::TooLong(..) => "the text is too long for it".to_owned(),
        other => other.to_string(),
    })
}

#[cfg(all(feature = "keychain", target_os = "linux"))]
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

#[cfg(all(feature = "keychain", target_os = "macos"))]
fn open() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = apple_native_keyring_store::keychain::Store::new()?;
    Ok(store)
}

#[cfg(all(feature = "keychain", windows))]
fn open() -> Result<Arc<CredentialStore>, Error> {
    let store: Arc<CredentialStore> = windows_native_keyring_store::Store::new()?;
    Ok(store)
}

#[cfg(not(all(feature = "keychain", any(target_os = "linux", target_os = "macos", windows))))]
fn open() -> Result<Arc<CredentialStore>, Error> {
    Err(Error::NoDefaultStore)
}
