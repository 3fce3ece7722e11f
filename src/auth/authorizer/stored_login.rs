//! The login of one server, in the store and in memory: either may be newer, and a shared store may
//! lose its own.

use super::{Authorizer, store_error};
use crate::{
    auth::{
        credential::{Credential, LoginFacts},
        login_store::{LoginLock, LoginStore},
        login_store_error::LoginStoreError,
    },
    store::StoredVersion,
    wire::credentials::CredentialError,
};

impl Authorizer {
    pub(super) async fn stored_version(&self) -> Result<StoredVersion, CredentialError> {
        self.store.run_for(&self.target.key, LoginStore::version).await.map_err(store_error)
    }

    /// Reads the parts of the stored login that are not secret.
    pub(super) async fn stored_facts(&self) -> Option<LoginFacts> {
        let facts = self.store.run_for(&self.target.key, |store, key| Ok(store.facts(key)));
        facts.await.ok().flatten()
    }

    /// Stores the login in use again, unless another process has stored a newer one meanwhile.
    pub(super) async fn restore(&self) -> Result<(), CredentialError> {
        let lock = self.store.lock(&self.target.key).await.map_err(store_error)?;
        let version = self.stored_version().await?;
        let kept = self.current_login(&lock, version).await?;
        let version = self.stored_version().await?;
        self.token.set(kept, version);
        Ok(())
    }

    /// Returns the current login: the stored one, or a newer one that could not be saved. A login
    /// that the store has lost, or has in an older state, is stored again, so that other replicas
    /// learn of it.
    pub(super) async fn current_login(
        &self,
        lock: &LoginLock,
        version: StoredVersion,
    ) -> Result<Option<Credential>, CredentialError> {
        let current = match self.token.unsaved_login(version) {
            Some(newer) => Some(newer),
            None => self.read_newest().await?,
        };
        if !self.token.is_ahead_of(version) {
            return Ok(current);
        }
        let Some(mut login) = current else { return Ok(None) };
        let server = &self.target.name;
        tracing::warn!(server, "the store has lost the login, or has an older one; storing it");
        login.facts.lifetime.may_be_older = true;
        self.save(lock, login.clone()).await;
        Ok(Some(login))
    }

    /// Returns the stored login, or the one in memory if that is newer or the store has lost its
    /// own.
    pub(super) async fn read_newest(&self) -> Result<Option<Credential>, CredentialError> {
        let Some(known) = self.token.kept_through_loss() else { return self.read().await };
        let mut stored = self.read().await?;
        if stored.is_none() && !self.token.may_be_lost(self.stored_version().await?) {
            // A user has logged out, or another replica has just stored the login again.
            stored = self.read().await?;
            if stored.is_none() {
                return Ok(None);
            }
        }
        let newer = stored.filter(|stored| !known.is_renewal_of(stored));
        if newer.is_none() {
            self.token.note_saved(false);
        }
        Ok(newer.or(Some(known)))
    }

    async fn read(&self) -> Result<Option<Credential>, CredentialError> {
        let read = self.store.run_for(&self.target.key, LoginStore::read).await;
        let known = match &read {
            Ok(login) => login.as_ref().map(|login| login.facts.clone()),
            // The secrets may be in a keychain that cannot be read; the facts are in the file.
            Err(_) => self.stored_facts().await,
        };
        self.token.note_read(known.and_then(|known| known.grant.login_id));
        let read = match read {
            // A new token is requested instead.
            Err(LoginStoreError::Keychain(_)) if self.uses_client_credentials() => Ok(None),
            Err(error @ LoginStoreError::Unreadable(_)) => {
                // The next login replaces the file.
                tracing::warn!(server = self.target.name, "{error}");
                Ok(None)
            }
            // A login made in this process is stored in a file.
            Err(LoginStoreError::Keychain(error)) => {
                let why = format!(" (the present one cannot be read: {error})");
                Err(self.login_required(&why))
            }
            read => read.map_err(store_error),
        };
        if read.is_ok() {
            self.token.note_saved(true);
        }
        read
    }

    /// Saves a login and uses it from now on. A login that cannot be saved is used until the
    /// process exits.
    pub(super) async fn save(&self, lock: &LoginLock, login: Credential) {
        let (key, lock, kept) = (&self.target.key, lock.clone(), login.clone());
        let written =
            self.store.run_for(key, move |store, key| store.write(key, &lock, &kept)).await;
        let version = match &written {
            Ok(()) => self.stored_version().await.ok(),
            Err(_) => None,
        };
        self.token.note_saved(written.is_ok());
        self.token.set(Some(login), version.unwrap_or_else(|| self.token.version()));
        if let Err(error) = written {
            tracing::error!(server = self.target.name, %error, "cannot store the login");
        }
    }

    /// Notes that the refresh token of a login is about to be used. Requests go on with the present
    /// token.
    pub(super) async fn note_renewal(
        &self,
        lock: &LoginLock,
        login: &Credential,
    ) -> Result<(), CredentialError> {
        let (begun, held) = (login.clone(), lock.clone());
        let note = move |store: &LoginStore, key: &_| store.note_renewal(key, &held, begun);
        self.store.run_for(&self.target.key, note).await.map_err(store_error)?;
        self.token.note_version(self.stored_version().await?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc, time::Duration};

    use tokio_util::task::TaskTracker;

    use super::{super::LoginUpdate, *};
    use crate::{
        auth::{credential::login_of_test, login_key::LoginKey, login_target::LoginTarget},
        config::{Environment, parse},
        store::redis_server::RedisServer,
        wire::credentials::Challenge,
    };

    /// One replica, and the logins that it shares with others.
    fn replica(server: &RedisServer) -> (Arc<Authorizer>, Arc<LoginStore>) {
        let text = r#"{"mcpServers": {"g": {"url": "http://127.0.0.1:1/mcp"}}}"#;
        let parsed = parse(text, Path::new("c.json"), &Environment::default()).unwrap();
        let target = LoginTarget::of(&parsed.config.servers[0], None).unwrap();
        let store = Arc::new(LoginStore::new(Some(server.logins()), false));
        let authorizer =
            Authorizer::new(target, "log in".to_owned(), store.clone(), TaskTracker::new());
        (authorizer, store)
    }

    /// Stores a login, as another replica.
    async fn put(store: &Arc<LoginStore>, key: &LoginKey, login: Credential) {
        let lock = store.lock(key).await.unwrap();
        let write = move |store: &LoginStore, key: &_| store.write(key, &lock, &login);
        store.run_for(key, write).await.unwrap();
    }

    /// Returns a login that has expired after so many renewals.
    fn login(renewals: u64) -> Credential {
        let mut login = login_of_test(&format!("t{renewals}"));
        login.facts.lifetime.renewals = renewals;
        login
    }

    #[tokio::test]
    async fn newer_login_survives_that_another_replica_restores_an_older_one() {
        let Some(server) = RedisServer::start() else { return };
        let (authorizer, store) = replica(&server);
        let key = authorizer.target.key.clone();
        // The store has lost the newer one, which this replica knows.
        authorizer.token.set(Some(login(2)), StoredVersion::default());
        put(&store, &key, login(1)).await;
        let renewals = |it: Credential| it.facts.lifetime.renewals;
        authorizer.restore().await.unwrap();
        assert_eq!(authorizer.token.kept_through_loss().map(renewals), Some(2));
        let stored = store.run_for(&key, LoginStore::read).await.unwrap().unwrap();
        assert!(stored.facts.lifetime.may_be_older);
        assert_eq!(renewals(stored), 2);
    }

    #[tokio::test]
    async fn login_survives_that_the_store_is_emptied_while_it_is_read_again() {
        let Some(server) = RedisServer::start() else { return };
        let (authorizer, _store) = replica(&server);
        authorizer.token.set(Some(login(1)), StoredVersion::default());
        authorizer.restore().await.unwrap();
        server.command(&["FLUSHALL"]);
        authorizer.perform(LoginUpdate::Read).await.unwrap();
        assert!(authorizer.token.kept_through_loss().is_some());
        authorizer.restore().await.unwrap();
        assert_ne!(authorizer.stored_version().await.unwrap(), StoredVersion::default());
    }

    #[tokio::test]
    async fn login_whose_renewal_has_begun_is_used_here_and_not_renewed_elsewhere_at_once() {
        let Some(server) = RedisServer::start() else { return };
        let ((here, store), (there, _)) = (replica(&server), replica(&server));
        here.token.set(Some(login(1)), StoredVersion::default());
        here.restore().await.unwrap();
        let lock = store.lock(&here.target.key).await.unwrap();
        here.note_renewal(&lock, &login(1)).await.unwrap();
        assert_eq!(here.token.version(), here.stored_version().await.unwrap());
        // The process ends before it has the new token.
        drop((here, lock));
        let renewed = there.replace_token(login(1).authorization(), None).await;
        assert!(matches!(renewed, Err(CredentialError::StoreOutage(_))), "{renewed:?}");
    }

    #[tokio::test]
    async fn login_that_is_lost_while_it_is_stored_is_stored_again() {
        let Some(server) = RedisServer::start() else { return };
        let (authorizer, store) = replica(&server);
        // What `save` finds in a store that is emptied after the write.
        authorizer.token.note_saved(true);
        authorizer.token.set(Some(login(1)), StoredVersion::default());
        put(&store, &authorizer.target.key, login(1)).await;
        assert!(authorizer.token.is_ahead_of(authorizer.stored_version().await.unwrap()));
    }

    #[tokio::test]
    async fn login_that_a_user_has_removed_is_not_kept() {
        let Some(server) = RedisServer::start() else { return };
        let (authorizer, store) = replica(&server);
        let key = authorizer.target.key.clone();
        authorizer.token.set(Some(login(1)), StoredVersion::default());
        authorizer.restore().await.unwrap();
        let lock = store.lock(&key).await.unwrap();
        store.run_for(&key, move |store, key| store.remove(key, &lock)).await.unwrap();
        authorizer.perform(LoginUpdate::Read).await.unwrap();
        assert!(authorizer.token.kept_through_loss().is_none());
    }

    #[tokio::test]
    async fn login_that_was_removed_or_made_during_a_pause_is_noticed_by_the_first_request() {
        let Some(server) = RedisServer::start() else { return };
        let ((authorizer, store), (_, elsewhere)) = (replica(&server), replica(&server));
        let key = authorizer.target.key.clone();
        let mut used = login(1);
        used.facts.lifetime.expires_at = None;
        put(&store, &key, used.clone()).await;
        assert!(authorizer.authorize().await.unwrap().is_some());
        tokio::time::pause();
        let lock = elsewhere.lock(&key).await.unwrap();
        elsewhere.run_for(&key, move |store, key| store.remove(key, &lock)).await.unwrap();
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(authorizer.authorize().await.unwrap(), None, "the user has logged out");
        let challenge = Challenge { status: 401, www_authenticate: String::new() };
        authorizer.replace_refused(None, &challenge).await.unwrap_err();
        authorizer.authorize().await.unwrap_err();
        put(&elsewhere, &key, used).await;
        assert!(authorizer.authorize().await.unwrap().is_some(), "the user has logged in");
    }

    #[tokio::test]
    async fn restored_login_is_not_renewed_at_once() {
        let Some(server) = RedisServer::start() else { return };
        let (authorizer, store) = replica(&server);
        let mut restored = login(1);
        restored.facts.lifetime.may_be_older = true;
        let shown = restored.authorization();
        put(&store, &authorizer.target.key, restored).await;
        let renewed = authorizer.replace_token(shown, None).await;
        assert!(matches!(renewed, Err(CredentialError::StoreOutage(_))), "{renewed:?}");
    }
}
