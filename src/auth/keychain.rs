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

use crate::{base::Lock, config::Secret};

/// Name under which users store the secrets for `keychain:NAME`.
pub(super) const SECRETS_SERVICE: &str = "dormouse";
/// Name under which logins are stored, so that no config can refer to them.
pub(super) const LOGINS_SERVICE: &str = "dormouse-logins";

/// Maximum time for the keychain to answer at all.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the user to unlock the keychain.
const UNLOCK_TIMEOUT: Duration = Duration::from_mins(1);

/// Access to the keychain through a thread of its own, because on Linux the keychain may be neither
/// used nor dropped on a thread that runs tasks. The first use opens it.
pub(super) struct Keychain {
    /// `None` if the keychain is not used.
    open: Option<KeychainOpener>,
    thread: OnceLock<Option<KeychainThread>>,
}

type KeychainOpener = fn() -> Result<Arc<CredentialStore>, Error>;

/// The thread that uses the keychain. It ends when this is dropped.
struct KeychainThread {
    jobs: mpsc::Sender<KeychainJob>,
    status: Arc<KeychainStatus>,
}

/// The state of the thread, for its callers.
#[derive(Default)]
struct KeychainStatus {
    is_open: AtomicBool,
    /// The job on which the thread works.
    running: Lock<Option<LateFlag>>,
}

struct KeychainJob {
    is_late: LateFlag,
    work: Box<dyn FnOnce(&mut OpenedKeychain) + Send>,
}

/// True if the caller of a job has given up.
type LateFlag = Arc<AtomicBool>;

/// The keychain, which is opened when it is needed and again when the connection to it is broken.
struct OpenedKeychain {
    open: KeychainOpener,
    store: Option<Arc<CredentialStore>>,
    status: Arc<KeychainStatus>,
}

#[derive(Debug, thiserror::Error)]
#[error("the system's keychain: {0}")]
pub(crate) struct KeychainError(String);

impl Keychain {
    pub(super) fn system() -> Self {
        Self { open: Some(open), thread: OnceLock::new() }
    }

    /// Makes a keychain that is never available.
    pub(super) fn disabled() -> Self {
        Self { open: None, thread: OnceLock::new() }
    }

    /// Makes a keychain in memory.
    #[cfg(test)]
    pub(super) fn mock() -> Self {
        let open: KeychainOpener = || Ok(keyring_core::mock::Store::new()?);
        Self { open: Some(open), thread: OnceLock::new() }
    }

    pub(super) fn is_available(&self) -> bool {
        self.open().is_ok()
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
            Err(error) => Err(error),
        })
    }

    /// Writes an entry; blocks as `get` does.
    pub(super) fn set(
        &self,
        service: &'static str,
        name: &str,
        text: Secret,
    ) -> Result<(), KeychainError> {
        self.with_entry(service, name, move |entry| entry.set_password(text.expose()))
    }

    /// Deletes an entry; blocks as `get` does.
    pub(super) fn delete(&self, service: &'static str, name: &str) -> Result<(), KeychainError> {
        self.with_entry(service, name, |entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        })
    }

    fn with_entry<T: Send + 'static>(
        &self,
        service: &'static str,
        name: &str,
        work: impl Fn(&Entry) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, KeychainError> {
        let name = name.to_owned();
        self.open()?;
        self.ask(UNLOCK_TIMEOUT, move |keychain| keychain.with_entry(service, &name, work))
    }

    /// Opens the keychain, unless it is open: another caller may be waiting for its user.
    fn open(&self) -> Result<(), KeychainError> {
        if self.thread()?.status.is_open.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.ask(OPEN_TIMEOUT, |keychain| keychain.store().map(drop))
    }

    fn thread(&self) -> Result<&KeychainThread, KeychainError> {
        let thread = self.thread.get_or_init(|| KeychainThread::start(self.open?));
        thread.as_ref().ok_or_else(unavailable)
    }

    /// Has the thread do some work, and waits for its outcome.
    fn ask<T: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut OpenedKeychain) -> Result<T, KeychainError> + Send + 'static,
    ) -> Result<T, KeychainError> {
        let thread = self.thread()?;
        let late = || KeychainError("no answer; the keychain may be locked".to_owned());
        if thread.is_stuck() {
            return Err(late());
        }
        let (reply, answer) = mpsc::channel();
        let is_late = LateFlag::default();
        let work = Box::new(move |keychain: &mut OpenedKeychain| {
            // The caller may have given up.
            let _ = reply.send(work(keychain));
        });
        thread.jobs.send(KeychainJob { is_late: is_late.clone(), work }).map_err(|_| late())?;
        answer.recv_timeout(timeout).unwrap_or_else(|_| {
            is_late.store(true, Ordering::Relaxed);
            Err(late())
        })
    }
}

impl KeychainThread {
    fn start(open: KeychainOpener) -> Option<Self> {
        let (jobs, inbox) = mpsc::channel::<KeychainJob>();
        let status = Arc::<KeychainStatus>::default();
        let mut keychain = OpenedKeychain { open, store: None, status: status.clone() };
        let thread = std::thread::Builder::new().spawn(move || {
            for KeychainJob { is_late, work } in inbox {
                // The login may have changed since the caller has given up.
                if !is_late.load(Ordering::Relaxed) {
                    *keychain.status.running.lock() = Some(is_late);
                    work(&mut keychain);
                    *keychain.status.running.lock() = None;
                }
            }
        });
        if let Err(error) = thread {
            tracing::debug!(%error, "cannot start a thread for the keychain");
            return None;
        }
        Some(Self { jobs, status })
    }

    /// Returns whether the thread still works on a job whose caller has given up.
    fn is_stuck(&self) -> bool {
        let running = self.status.running.lock();
        running.as_ref().is_some_and(|is_late| is_late.load(Ordering::Relaxed))
    }
}

impl OpenedKeychain {
    fn store(&mut self) -> Result<&CredentialStore, KeychainError> {
        if self.store.is_none() {
            let opened =
                (self.open)().inspect_err(|error| tracing::debug!(%error, "no keychain available"));
            self.store = Some(opened.map_err(|_| unavailable())?);
            self.status.is_open.store(true, Ordering::Relaxed);
        }
        self.store.as_deref().ok_or_else(unavailable)
    }

    fn with_entry<T>(
        &mut self,
        service: &str,
        name: &str,
        work: impl Fn(&Entry) -> Result<T, Error>,
    ) -> Result<T, KeychainError> {
        let outcome = self.try_with_entry(service, name, &work)?;
        // Only on Linux is there a connection that breaks, when the keychain is started again.
        let outcome = match outcome {
            Err(Error::PlatformFailure(_)) if cfg!(target_os = "linux") => {
                self.store = None;
                self.status.is_open.store(false, Ordering::Relaxed);
                self.try_with_entry(service, name, &work)?
            }
            outcome => outcome,
        };
        outcome.map_err(|error| keychain_error(&error))
    }

    fn try_with_entry<T>(
        &mut self,
        service: &str,
        name: &str,
        work: impl Fn(&Entry) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, KeychainError> {
        let entry = self.store()?.build(service, name, None);
        Ok(entry.and_then(|entry| work(&entry)))
    }
}

fn unavailable() -> KeychainError {
    KeychainError("no keychain available".to_owned())
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
