//! The store of logins: one file for each login, readable by the current user only; its secrets are
//! in the system's keychain if there is one. Several processes use the store at once: files are
//! replaced as a whole, and a process that changes one holds its lock.

use std::{io, sync::Arc, time::Duration};

use secrecy::zeroize::Zeroizing;
use tokio::sync::broadcast;

use super::{
    credential::{Credential, LoginFacts, LoginSummary},
    keychain::{Keychain, LOGINS_SERVICE, SECRETS_SERVICE},
    login_file::{LoginFile, StoredSecrets},
    login_key::LoginKey,
    login_store_error::{LOCK_TIMEOUT, LoginStoreError},
};
use crate::{
    base::{LockError, run_blocking},
    config::Secret,
    store::{Store, StoreLease, StoredVersion, lease, wait_for_change},
};

/// A larger file is not from dormouse.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum number of saved logins that somebody who waits for one has not looked at.
const MAX_UNHEARD: usize = 64;
/// More than a login with long tokens needs.
const RESERVED_BYTES: usize = 16 * 1024;

/// The stored logins.
pub(crate) struct LoginStore {
    /// `None` if the user has no home directory: nothing is stored.
    store: Option<Arc<dyn Store>>,
    keychain: Keychain,
    /// Tells of logins that this process saves.
    saved: broadcast::Sender<LoginKey>,
}

/// A lock that keeps other processes and tasks from changing a login until the last clone is
/// dropped.
#[derive(Clone)]
pub(super) struct LoginLock {
    _lease: Option<Arc<StoreLease>>,
}

impl LoginStore {
    /// Keeps logins in a store for secrets. Their secrets go to the system's keychain if it has
    /// one and `uses_keychain` is set.
    pub(crate) fn new(store: Option<Arc<dyn Store>>, uses_keychain: bool) -> Self {
        let keychain = if uses_keychain { Keychain::system() } else { Keychain::disabled() };
        let (saved, _) = broadcast::channel(MAX_UNHEARD);
        Self { store, keychain, saved }
    }

    /// Runs work that may block on the disk, or on the user who has to unlock the keychain.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, LoginStoreError> + Send + 'static,
    ) -> Result<T, LoginStoreError> {
        let store = self.clone();
        // The work has no result only if the runtime is shutting down.
        run_blocking(move || work(&store)).await.unwrap_or(Err(LoginStoreError::ShuttingDown))
    }

    /// Runs blocking work on one login.
    pub(super) async fn run_for<T: Send + 'static>(
        self: &Arc<Self>,
        key: &LoginKey,
        work: impl FnOnce(&Self, &LoginKey) -> Result<T, LoginStoreError> + Send + 'static,
    ) -> Result<T, LoginStoreError> {
        let key = key.clone();
        self.run(move |store| work(store, &key)).await
    }

    /// Waits for the login's lock, and saves the login.
    pub(super) async fn save(
        self: &Arc<Self>,
        key: &LoginKey,
        login: Credential,
    ) -> Result<(), LoginStoreError> {
        let lock = self.lock(key).await?;
        self.run_for(key, move |store, key| store.write(key, &lock, &login)).await?;
        // Nobody may be waiting.
        let _ = self.saved.send(key.clone());
        Ok(())
    }

    /// Reads a secret that the config refers to by its name in the keychain.
    pub(super) fn secret(&self, name: &str) -> Result<Option<Secret>, LoginStoreError> {
        Ok(self.keychain.get(SECRETS_SERVICE, name)?)
    }

    /// Returns the version of a stored login. The login is not read.
    pub(super) fn version(&self, key: &LoginKey) -> Result<StoredVersion, LoginStoreError> {
        let Some(store) = &self.store else { return Ok(StoredVersion::default()) };
        let name = key.stored_name();
        store
            .version(&name)
            .map_err(|cause| LoginStoreError::Io { place: store.describe(&name), cause })
    }

    /// Returns the version of a stored login as it was at most `max_age` ago, without blocking on a
    /// network; `None` if it is not known.
    pub(super) fn known_version(&self, key: &LoginKey, max_age: Duration) -> Option<StoredVersion> {
        let Some(store) = &self.store else { return Some(StoredVersion::default()) };
        store.known_version(&key.stored_name(), max_age)
    }

    /// Returns whether a stored login may vanish without a logout.
    pub(super) fn loses_logins(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.loses_values())
    }

    /// Returns what is shown of a login. A login that cannot be read is logged.
    pub(super) fn summary(&self, key: &LoginKey) -> Option<LoginSummary> {
        let kept = self.read_file(key).inspect_err(|error| tracing::warn!("{error}"));
        Some(LoginSummary::of(&kept.ok()??.facts))
    }

    /// Reads the parts of a login that are not secret; `None` if there is no readable login.
    pub(super) fn facts(&self, key: &LoginKey) -> Option<LoginFacts> {
        Some(self.read_file(key).ok()??.facts)
    }

    /// Waits until the user has made a login other than `known` that includes all that the server
    /// has demanded and was requested with these scopes or has them.
    pub(super) async fn wait_for_login(
        self: &Arc<Self>,
        key: &LoginKey,
        known: Option<&str>,
        scopes: &[String],
    ) {
        let Some(store) = &self.store else { return std::future::pending().await };
        let (mut seen, mut saved) = (StoredVersion::default(), self.saved.subscribe());
        loop {
            let name = key.stored_name();
            tokio::select! {
                version = wait_for_change(store, &name, seen) => seen = version,
                () = is_saved(&mut saved, key) => {}
            }
            let facts = self.run_for(key, |logins, key| Ok(logins.facts(key))).await;
            let facts = facts.ok().flatten().filter(|facts| facts.satisfies(scopes));
            // A renewal keeps the id.
            if facts.is_some_and(|facts| facts.grant.login_id.as_deref() != known) {
                return;
            }
        }
    }

    /// Waits until this process has saved a login.
    pub(super) async fn wait_until_saved(&self, key: &LoginKey) {
        is_saved(&mut self.saved.subscribe(), key).await;
    }

    /// Reads a login. Blocks while the user has to unlock the keychain.
    pub(super) fn read(&self, key: &LoginKey) -> Result<Option<Credential>, LoginStoreError> {
        let Some(kept) = self.read_file(key)? else { return Ok(None) };
        let in_keychain = || -> Result<StoredSecrets, LoginStoreError> {
            let text = self.keychain.get(LOGINS_SERVICE, key.as_str())?;
            let secrets = text.map(|text| serde_json::from_str(text.expose()).unwrap_or_default());
            Ok(secrets.unwrap_or_default())
        };
        kept.into_login(in_keychain).map(Some)
    }

    fn read_file(&self, key: &LoginKey) -> Result<Option<LoginFile>, LoginStoreError> {
        let Some(store) = &self.store else { return Ok(None) };
        let name = key.stored_name();
        let place = || store.describe(&name);
        let text = match store.get(&name, MAX_FILE_BYTES) {
            Ok(Some(text)) => Zeroizing::new(text),
            Ok(None) => return Ok(None),
            Err(cause) => return Err(LoginStoreError::Io { place: place(), cause }),
        };
        // The error does not quote the content, which may be secret.
        let kept = LoginFile::decode(&text).ok_or_else(|| LoginStoreError::Unreadable(place()))?;
        Ok(Some(kept))
    }

    /// Replaces the stored login.
    pub(super) fn write(
        &self,
        key: &LoginKey,
        _lock: &LoginLock,
        login: &Credential,
    ) -> Result<(), LoginStoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let name = key.stored_name();
        let secrets = StoredSecrets::of(login);
        let is_in_keychain = !login.is_in_file && self.save_to_keychain(key, &secrets);
        let secrets = (!is_in_keychain).then_some(secrets);
        let kept = LoginFile::new(login.facts.clone(), secrets);
        let text = kept.encode().map_err(|_| LoginStoreError::Unreadable(store.describe(&name)))?;
        store
            .put(&name, &text)
            .map_err(|cause| LoginStoreError::Io { place: store.describe(&name), cause })
    }

    /// Notes that the refresh token of a login is about to be used. If the store or this process
    /// fails before the new token is stored, other replicas know that they have to wait.
    pub(super) fn note_renewal(
        &self,
        key: &LoginKey,
        lock: &LoginLock,
        mut login: Credential,
    ) -> Result<(), LoginStoreError> {
        if !self.loses_logins() || std::mem::replace(&mut login.facts.lifetime.may_be_older, true) {
            return Ok(());
        }
        self.write(key, lock, &login)
    }

    /// Saves a registered client, unless the user is logged in.
    pub(super) fn write_client(
        &self,
        key: &LoginKey,
        lock: &LoginLock,
        client: &Credential,
    ) -> Result<(), LoginStoreError> {
        let is_logged_in = self.facts(key).is_some_and(|facts| facts.lifetime.is_usable);
        if is_logged_in { Ok(()) } else { self.write(key, lock, client) }
    }

    /// Saves the secrets in the keychain. Returns whether the keychain has accepted them; if not,
    /// they go into the file.
    fn save_to_keychain(&self, key: &LoginKey, secrets: &StoredSecrets) -> bool {
        if !self.keychain.is_available() {
            return false;
        }
        let Ok(text) = serde_json::to_string(secrets) else { return false };
        let given = self.keychain.set(LOGINS_SERVICE, key.as_str(), Secret::new(text));
        if let Err(error) = &given {
            tracing::warn!(%error, "the keychain refused the login; storing it in a file");
            // An entry that stays would be older than the file.
            let _ = self.keychain.delete(LOGINS_SERVICE, key.as_str());
        }
        given.is_ok()
    }

    /// Removes a client's registration and its tokens from the stored login.
    pub(super) fn forget_client(
        &self,
        key: &LoginKey,
        lock: &LoginLock,
        client_id: &str,
    ) -> Result<(), LoginStoreError> {
        match self.read(key)? {
            Some(login) if login.facts.client.id == client_id => {
                self.write(key, lock, &login.without_client())
            }
            _ => Ok(()),
        }
    }

    /// Deletes a login. Returns whether there was one.
    pub(super) fn remove(
        &self,
        key: &LoginKey,
        _lock: &LoginLock,
    ) -> Result<bool, LoginStoreError> {
        let Some(store) = &self.store else { return Ok(false) };
        if self.keychain.is_available() {
            self.keychain.delete(LOGINS_SERVICE, key.as_str())?;
        }
        let name = key.stored_name();
        store
            .remove(&name)
            .map_err(|cause| LoginStoreError::Io { place: store.describe(&name), cause })
    }

    /// Waits for the lock of a login. Another process may hold it while it renews the login over
    /// the network.
    pub(super) async fn lock(&self, key: &LoginKey) -> Result<LoginLock, LoginStoreError> {
        let Some(store) = &self.store else { return Ok(LoginLock { _lease: None }) };
        let name = key.lease_name();
        match lease(store, &name, LOCK_TIMEOUT).await {
            Ok(lease) => Ok(LoginLock { _lease: Some(Arc::new(lease)) }),
            // Nothing can be stored here, so that no processes can conflict.
            Err(LockError::Io(cause)) if is_unwritable(&cause) => Ok(LoginLock { _lease: None }),
            Err(LockError::Io(cause)) => {
                Err(LoginStoreError::Io { place: store.describe(&name), cause })
            }
            Err(LockError::Held(_)) => Err(LoginStoreError::Locked(store.describe(&name))),
        }
    }

    /// Reserves disk space for the login until the result is dropped: a token that is valid once
    /// must not be lost because the disk is full or the file is not writable.
    pub(super) fn reserve_space(
        &self,
        key: &LoginKey,
    ) -> Result<Option<Box<dyn Send + Sync>>, LoginStoreError> {
        let Some(store) = &self.store else { return Ok(None) };
        let name = key.stored_name();
        let reserved = store.reserve(&name, RESERVED_BYTES);
        reserved
            .map(Some)
            .map_err(|cause| LoginStoreError::Io { place: store.describe(&name), cause })
    }

    /// Checks that this login can be stored.
    pub(super) fn check_writable(&self, key: &LoginKey) -> Result<(), LoginStoreError> {
        let store = self.store.as_ref().ok_or(LoginStoreError::NoDirectory)?;
        store.check_writable().map_err(|cause| LoginStoreError::Io {
            place: store.describe(&key.stored_name()),
            cause,
        })
    }
}

fn is_unwritable(cause: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem | NotADirectory)
}

/// Waits until this process has saved a login, or may have.
async fn is_saved(saved: &mut broadcast::Receiver<LoginKey>, key: &LoginKey) {
    while let Ok(other) = saved.recv().await {
        if other == *key {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{
        super::{
            auth_method::AuthMethod,
            credential::{LoginClient, LoginGrant, LoginLifetime, Tokens, login_of_test as login},
        },
        *,
    };
    use crate::{
        config::{Framing, OAuth, Remote},
        store::{CHECK_INTERVAL, FileStore},
    };

    fn store_in(directory: &Path) -> LoginStore {
        LoginStore::new(Some(Arc::new(FileStore::for_secrets(directory))), false)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_new_and_sufficient_login_ends_the_wait() {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(store_in(&directory.path().join("logins")));
        let key = LoginKey::of_test("x");
        let lock = store.lock(&key).await.unwrap();
        store.write(&key, &lock, &login("one")).unwrap();
        let scopes = ["a".to_owned()];
        let is_noticed = async || {
            let noticed = store.wait_for_login(&key, Some("first"), &scopes);
            tokio::time::timeout(CHECK_INTERVAL * 5, noticed).await.is_ok()
        };
        store.write(&key, &lock, &login("renewed")).unwrap();
        assert!(!is_noticed().await);
        store.write(&key, &lock, &login("").without_tokens()).unwrap();
        let only = Credential { tokens: None, ..login("") }.without_tokens();
        store.write_client(&key, &lock, &only).unwrap();
        assert!(!is_noticed().await);

        let mut another = login("two");
        another.facts.grant.login_id = Some("second".to_owned());
        another.facts.grant.wanted = vec!["more".to_owned()];
        store.write(&key, &lock, &another).unwrap();
        assert!(!is_noticed().await, "it is not enough");
        another.facts.grant.wanted.clear();
        another.facts.grant.scopes = vec!["b".to_owned()];
        store.write(&key, &lock, &another).unwrap();
        assert!(!is_noticed().await, "it is for something else");
        another.facts.grant.asked = vec!["a".to_owned(), "b".to_owned()];
        store.write(&key, &lock, &another).unwrap();
        assert!(is_noticed().await);

        store.write_client(&key, &lock, &only).unwrap();
        assert_eq!(store.read(&key).unwrap().unwrap().tokens, another.tokens, "it is not lost");
    }

    #[tokio::test]
    async fn saved_login_is_read_back_and_changes_the_version() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("logins");
        let store = store_in(&place);
        let key = LoginKey::of_test("x");
        assert!(store.read(&key).unwrap().is_none());
        let before = store.version(&key).unwrap();
        let lock = store.lock(&key).await.unwrap();
        store.write(&key, &lock, &login("one")).unwrap();
        let after = store.version(&key).unwrap();
        assert_ne!(before, after);
        // This file has the same size, and may have the same modification time.
        store.write(&key, &lock, &login("two")).unwrap();
        assert_ne!(store.version(&key).unwrap(), after);
        let read = store.read(&key).unwrap().unwrap();
        assert_eq!(read.tokens, login("two").tokens);
        assert_eq!((read.facts, read.client_secret), (login("").facts, Some(Secret::new("s"))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&place), 0o700);
            for file in fs::read_dir(&place).unwrap() {
                assert_eq!(mode(&file.unwrap().path()), 0o600);
            }
        }
        let reserved = store.reserve_space(&key).unwrap();
        fs::write(place.join("x.json.new"), "left by a process that was killed").unwrap();
        assert!(store.remove(&key, &lock).unwrap());
        assert!(!store.remove(&key, &lock).unwrap());
        drop(reserved);
        let left: Vec<_> =
            fs::read_dir(&place).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left, ["x.lock"]);
    }

    #[tokio::test]
    async fn login_file_keeps_its_format() {
        let directory = tempfile::tempdir().unwrap();
        let store = store_in(directory.path());
        let key = LoginKey::of_test("x");
        let lock = store.lock(&key).await.unwrap();
        let file = || fs::read_to_string(directory.path().join("x.json")).unwrap();
        store.write(&key, &lock, &login("one")).unwrap();
        let short = file();
        let mut full = login("one").facts;
        full.revocation_endpoint = Some("https://as.example/revoke".to_owned());
        full.client.redirect_uri = Some("http://127.0.0.1:1/callback".to_owned());
        full.client.registered_scopes = vec!["a".to_owned()];
        full.client.expires_at = Some(3);
        full.grant.asked = vec!["a".to_owned()];
        full.grant.wanted = vec!["b".to_owned()];
        store.write(&key, &lock, &Credential { facts: full.clone(), ..login("one") }).unwrap();
        assert_eq!(store.facts(&key).unwrap(), full);
        insta::assert_snapshot!(format!("{short}\n\n{}", file()));
        fs::write(directory.path().join("x.json"), short).unwrap();
        assert_eq!(store.facts(&key).unwrap(), login("one").facts);
    }

    #[tokio::test]
    async fn secrets_are_stored_in_an_available_keychain() {
        let directory = tempfile::tempdir().unwrap();
        let files: Arc<dyn Store> = Arc::new(FileStore::for_secrets(directory.path()));
        let store = LoginStore {
            store: Some(files.clone()),
            keychain: Keychain::mock(),
            saved: broadcast::channel(1).0,
        };
        let key = LoginKey::of_test("x");
        let lock = store.lock(&key).await.unwrap();
        store.write(&key, &lock, &login("canary")).unwrap();
        let kept = fs::read_to_string(directory.path().join("x.json")).unwrap();
        assert!(!kept.contains("canary") && !kept.contains("secrets"), "{kept}");
        let read = store.read(&key).unwrap().unwrap();
        assert_eq!(
            (read.tokens, read.client_secret),
            (login("canary").tokens, Some(Secret::new("s")))
        );
        // Users' secrets are under another name in the keychain than logins.
        assert!(store.secret("x").unwrap().is_none());
        // A process without a keychain reports that, and leaves the login unchanged.
        let without = LoginStore::new(Some(files), false);
        assert!(matches!(without.read(&key), Err(LoginStoreError::Keychain(_))));
        // A login saved without a keychain stays in the file, even when a process with a keychain
        // renews it.
        without.write(&key, &lock, &login("elsewhere")).unwrap();
        let read = store.read(&key).unwrap().unwrap();
        store.write(&key, &lock, &read).unwrap();
        assert_eq!(without.read(&key).unwrap().unwrap().tokens, login("elsewhere").tokens);
        assert!(store.remove(&key, &lock).unwrap());
        assert!(store.keychain.get(LOGINS_SERVICE, "x").unwrap().is_none());
    }

    #[tokio::test]
    async fn unknown_file_format_is_rejected_without_quoting_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = store_in(directory.path());
        let key = LoginKey::of_test("x");
        for text in ["", "{\"version\": 9}", "{\"accessToken\": \"canary\"}"] {
            fs::write(directory.path().join("x.json"), text).unwrap();
            let error = store.read(&key).unwrap_err();
            assert!(matches!(error, LoginStoreError::Unreadable(_)), "{error}");
            assert!(!error.to_string().contains("canary"));
        }
    }

    #[test]
    fn login_of_0_1_0_is_read() {
        const FILE: &str = "c5edba1da2a8edba8257afd2133d908e.json";
        let text = include_bytes!(
            "../../tests/golden/0.1.0/data/dormouse/logins/c5edba1da2a8edba8257afd2133d908e.json"
        );
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), text).unwrap();
        let store = store_in(directory.path());
        let url = url::Url::parse("http://127.0.0.1:18999/mcp").unwrap();
        let headers = std::collections::BTreeMap::new();
        let remote = Remote { url, headers, framing: Framing::Either, oauth: None };
        let key = LoginKey::of(&remote, &OAuth::default(), None);
        assert_eq!(key.stored_name(), FILE);
        let Credential { facts, client_secret, tokens, is_in_file } =
            store.read(&key).unwrap().unwrap();
        let scopes = vec!["read".to_owned(), "write".to_owned()];
        let expected = LoginFacts {
            server: "http://127.0.0.1:18999/mcp".to_owned(),
            issuer: "http://127.0.0.1:18999".to_owned(),
            resource: "http://127.0.0.1:18999/mcp".to_owned(),
            token_endpoint: "http://127.0.0.1:18999/token".to_owned(),
            revocation_endpoint: Some("http://127.0.0.1:18999/revoke".to_owned()),
            client: LoginClient {
                id: "golden-client".to_owned(),
                method: AuthMethod::ClientSecretBasic,
                redirect_uri: Some("http://127.0.0.1:42061/callback".to_owned()),
                registered_scopes: scopes.clone(),
                expires_at: None,
            },
            grant: LoginGrant {
                asked: scopes.clone(),
                scopes,
                wanted: Vec::new(),
                login_id: Some("jf1-NLSz3MbC".to_owned()),
            },
            lifetime: LoginLifetime {
                obtained_at: 1_795_511_468,
                expires_at: Some(1_795_515_068),
                is_renewable: true,
                is_usable: true,
                renewals: 0,
                may_be_older: false,
            },
        };
        assert_eq!(facts, expected);
        let refresh = Some(Secret::new("golden-refresh-token"));
        assert_eq!(tokens, Some(Tokens { access: Secret::new("golden-access-token"), refresh }));
        assert_eq!(client_secret, Some(Secret::new("golden-client-secret")));
        assert!(is_in_file);
    }
}
