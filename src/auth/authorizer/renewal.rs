//! How something else to show is come by: read from where it is kept, renewed, or got anew by a machine.

use std::time::SystemTime;

use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::Instant;

use super::{
    Authorizer, CurrentCredential, LOGIN_INVALID, LoginUpdate, NEW_TOKEN_REFUSED, TOKEN_REFUSED,
    TRIAL_TIMEOUT, unavailable,
};
use crate::{
    auth::{
        auth_client::{AuthClient, secret_of},
        credential::{AuthMethod, Credential, LoginFacts},
        discovery::discover,
        guarded_client::GuardedClientError,
        login_error::{LoginError, TokenError, scrubbed},
        preparation::check_same_authority,
        scopes,
        store::{FileStamp, LoginLock, LoginStore, StoreError},
        token_request::{refresh, request_client_credentials},
    },
    wire::credentials::{Authorization, Challenge, CredentialError},
};

impl Authorizer {
    pub(super) async fn perform(&self, task: LoginUpdate) -> Result<(), CredentialError> {
        match task {
            LoginUpdate::Read => {
                let stamp = self.store.stamp(&self.target.key);
                let kept = self.read().await?;
                self.set_current(kept, stamp);
                Ok(())
            }
            LoginUpdate::Renew => {
                let shown = match &self.state.lock().current {
                    CurrentCredential::Token(token) => Some(token.authorization.clone()),
                    _ => None,
                };
                // One that was early, and has come to nothing, can wait.
                self.replace_token(shown, None).await.inspect_err(|_| self.postpone_renewal())
            }
            LoginUpdate::Replace { refused, challenge } => {
                self.replace_token(refused, Some(&challenge)).await
            }
        }
    }

    /// Gets something else to show. Whoever holds the login in whatever process has just done so, or does it now.
    /// `challenge`: of the server, where it has refused what was shown.
    async fn replace_token(
        &self,
        refused: Option<Authorization>,
        challenge: Option<&Challenge>,
    ) -> Result<(), CredentialError> {
        let is_refused = challenge.is_some_and(|challenge| challenge.status == 401);
        let lock = self.store.lock(&self.target.key).await.map_err(unavailable)?;
        let stamp = self.store.stamp(&self.target.key);
        let kept = self.current_login(stamp).await?;
        let is_other = |login: &Credential| {
            let kept = login.authorization();
            kept.is_some() && kept != refused && !login.is_expired(SystemTime::now())
        };
        match kept {
            Some(login) if is_other(&login) => {
                self.set_current(Some(login), stamp);
                Ok(())
            }
            _ if is_refused && self.is_on_trial(refused.as_ref()) => {
                Err(self.unavailable_for_now(NEW_TOKEN_REFUSED))
            }
            kept if self.uses_client_credentials() => {
                let known = kept.map(|kept| kept.facts);
                let known = known.or_else(|| self.store.facts(&self.target.key));
                let said = challenge.map(|challenge| challenge.www_authenticate.as_str());
                let login = self.client_credentials_login(said.unwrap_or_default(), known).await?;
                self.save_granted(&lock, login).await;
                Ok(())
            }
            Some(login) if login.can_be_renewed() => self.renew(&lock, login, is_refused).await,
            kept => Err(self.cannot_renew(kept, stamp)),
        }
    }

    /// It may be over in a moment; or somebody has to log in, if anybody can.
    fn unavailable_for_now(&self, why: &str) -> CredentialError {
        CredentialError::Unavailable(if self.uses_client_credentials() {
            why.to_owned()
        } else {
            format!("{why}; if that stays so, run `{}`", self.command)
        })
    }

    /// Why there is nothing to show for a person whose login, as it is kept, cannot be renewed.
    fn cannot_renew(&self, kept: Option<Credential>, stamp: FileStamp) -> CredentialError {
        let why = match kept {
            // It was refused, which may be a mistake.
            Some(login) if login.tokens.is_some() && !login.is_expired(SystemTime::now()) => {
                let is_new = login.age().is_some_and(|age| age < TRIAL_TIMEOUT)
                    && login.authorization() != self.state.lock().accepted;
                self.set_current(Some(login), stamp);
                return if is_new {
                    self.unavailable_for_now(NEW_TOKEN_REFUSED)
                } else {
                    self.login_required(TOKEN_REFUSED)
                };
            }
            Some(login) if login.tokens.is_some() => " (the login has expired)",
            Some(login) if login.was_granted() => LOGIN_INVALID,
            Some(_) | None => "",
        };
        self.require_login(why, stamp);
        self.login_required(why)
    }

    /// What is newer than what is kept, if nobody else has kept anything since.
    fn unsaved_login(&self, stamp: FileStamp) -> Option<Credential> {
        let state = self.state.lock();
        match &state.current {
            CurrentCredential::Token(token) if state.is_unsaved && state.stamp == stamp => {
                Some(token.login.clone())
            }
            _ => None,
        }
    }

    /// Renews a login that nobody else renews meanwhile.
    async fn renew(
        &self,
        lock: &LoginLock,
        login: Credential,
        is_refused: bool,
    ) -> Result<(), CredentialError> {
        let client = self.client_with_secret(&login).await?;
        let http = self.target.http().map_err(unavailable)?;
        let reserved = self.store.run_for(&self.target.key, LoginStore::reserve_space).await;
        let reserved = reserved.map_err(unavailable)?;
        let granted = refresh(&http, &client, &login).await;
        drop(reserved);
        match granted {
            Ok(granted) => {
                tracing::info!(server = self.target.name, "the login is renewed");
                self.save_granted(lock, granted.into_renewed(login)).await;
                Ok(())
            }
            Err(error) => self.handle_renewal_failure(lock, login, is_refused, error).await,
        }
    }

    async fn handle_renewal_failure(
        &self,
        lock: &LoginLock,
        login: Credential,
        is_refused: bool,
        error: TokenError,
    ) -> Result<(), CredentialError> {
        let server = &self.target.name;
        let is_of_config = login.facts.redirect_uri.is_none();
        let is_over = is_refused || login.is_expired(SystemTime::now());
        let lost = match &error {
            TokenError::Failed(why) => {
                tracing::warn!(server, %error, "the login is not renewed now");
                return Err(CredentialError::Unavailable(why.clone()));
            }
            TokenError::NotAToken => {
                tracing::warn!(server, %error, "the login is not renewed now");
                return Err(self.unavailable_for_now("what is answered in its place is no token"));
            }
            // Somebody else's config may have the right one.
            TokenError::UnknownClient(why) if is_of_config => {
                tracing::warn!(server, %error, "the client of the config is refused");
                let why = format!("the client of its \"oauth\" is refused ({why})");
                return Err(CredentialError::Refused(why));
            }
            TokenError::UnknownClient(_) => login.without_client(),
            TokenError::Rejected(_) if is_over => login.without_tokens(),
            TokenError::Rejected(_) => login.without_refresh_token(),
            // Nobody has said that what it was shown is no good; but whether it ever will be, nobody knows.
            TokenError::Refused(_) => {
                tracing::warn!(server, %error, "the login is not renewed now");
                return Err(self.login_required(" (the one that there is cannot be renewed now)"));
            }
        };
        tracing::warn!(server, %error, "the login cannot be renewed");
        let is_usable = lost.tokens.is_some();
        self.save(lock, lost).await;
        if is_usable { Ok(()) } else { Err(self.login_required(LOGIN_INVALID)) }
    }

    /// The client that a login was given to, with its secret.
    async fn client_with_secret(&self, login: &Credential) -> Result<AuthClient, CredentialError> {
        let mut client = AuthClient::from_login(login);
        if let Some(configured) = &self.target.oauth.client
            && client.secret.is_none()
            && client.method != AuthMethod::None
        {
            client.secret = secret_of(configured, &self.store).await.map_err(unavailable)?;
        }
        Ok(client)
    }

    /// `known`: of what it had before, whose scopes it goes on to have.
    async fn client_credentials_login(
        &self,
        challenge: &str,
        known: Option<LoginFacts>,
    ) -> Result<Credential, CredentialError> {
        let failed = |error: LoginError| match error {
            LoginError::Token(error @ TokenError::NotAToken) => {
                CredentialError::Unavailable(error.to_string())
            }
            // Whoever would say more cannot be asked now.
            LoginError::Token(TokenError::Failed(cause))
            | LoginError::Unreachable(cause)
            | LoginError::Discovery(cause) => CredentialError::Unavailable(cause),
            LoginError::GuardedClient(error @ GuardedClientError::Failed { .. }) => {
                CredentialError::Unavailable(error.to_string())
            }
            error => CredentialError::Refused(scrubbed(&error.to_string(), &[])),
        };
        let auth_server = discover(&self.target, challenge).await.map_err(failed)?;
        if let Some(known) = &known {
            check_same_authority(&self.target, &known.issuer, &auth_server).map_err(failed)?;
        }
        let oauth = &self.target.oauth;
        let Some(configured) = &oauth.client else {
            return Err(CredentialError::Refused("its \"oauth\" has no client".to_owned()));
        };
        let client = AuthClient::from_config(configured, &auth_server, &self.store).await;
        let client = client.map_err(|error| failed(error.into()))?;
        let had = known.map(|known| [&known.scopes[..], &known.wanted].concat());
        let scopes = auth_server.scopes(&oauth.scopes, &had.unwrap_or_default()).await;
        let granted = request_client_credentials(&auth_server, &client, &scopes).await;
        let granted = granted.map_err(|error| failed(error.into()))?;
        let url = &self.target.remote.url;
        let mut login = granted.into_login(url, &auth_server, client, scopes);
        // Nobody has to do anything for the next one.
        login.facts.is_renewable = true;
        Ok(login)
    }

    /// Takes note of scopes that the server wants beyond those that it was given. Whether any are missing still: somebody
    /// may have logged in with them meanwhile.
    async fn record_missing_scopes(&self, scopes: Vec<String>) -> Result<bool, CredentialError> {
        let lock = self.store.lock(&self.target.key).await.map_err(unavailable)?;
        let stamp = self.store.stamp(&self.target.key);
        let Some(mut login) = self.current_login(stamp).await? else { return Ok(true) };
        let LoginFacts { wanted, scopes: granted, .. } = &mut login.facts;
        let missing: Vec<String> =
            scopes.into_iter().filter(|scope| !granted.contains(scope)).collect();
        let is_more = !missing.is_empty();
        let before = wanted.len();
        wanted.extend(missing);
        wanted.sort();
        wanted.dedup();
        if wanted.len() > before {
            self.save(&lock, login).await;
        } else {
            self.set_current(Some(login), stamp);
        }
        Ok(is_more)
    }

    /// The login as it is: what is kept, or what is newer and could not be.
    async fn current_login(&self, stamp: FileStamp) -> Result<Option<Credential>, CredentialError> {
        match self.unsaved_login(stamp) {
            Some(newer) => Ok(Some(newer)),
            None => self.read().await,
        }
    }

    async fn read(&self) -> Result<Option<Credential>, CredentialError> {
        let read = self.store.run_for(&self.target.key, LoginStore::read).await;
        let known = match &read {
            Ok(login) => login.as_ref().map(|login| login.facts.clone()),
            // Its secrets are elsewhere, and what it is may be known all the same.
            Err(_) => self.store.facts(&self.target.key),
        };
        self.state.lock().login_id = known.and_then(|known| known.login_id);
        let read = match read {
            // It gets another.
            Err(StoreError::Keychain(_)) if self.uses_client_credentials() => Ok(None),
            Err(error @ StoreError::Unreadable(_)) => {
                // A new login takes its place.
                tracing::warn!(server = self.target.name, "{error}");
                Ok(None)
            }
            // Logged in here, it is kept in a file.
            Err(StoreError::Keychain(error)) => {
                let why = format!(" (where the one that there is cannot be read here: {error})");
                Err(self.login_required(&why))
            }
            read => read.map_err(unavailable),
        };
        if read.is_ok() {
            self.state.lock().is_unsaved = false;
        }
        read
    }

    /// Keeps a login, and shows it from now on. One that cannot be kept is good as long as the process lives.
    async fn save(&self, lock: &LoginLock, login: Credential) {
        let (key, lock, kept) = (&self.target.key, lock.clone(), login.clone());
        let written =
            self.store.run_for(key, move |store, key| store.write(key, &lock, &kept)).await;
        self.set_current(Some(login), self.store.stamp(&self.target.key));
        self.state.lock().is_unsaved = written.is_err();
        if let Err(error) = written {
            tracing::error!(server = self.target.name, %error, "the login cannot be kept");
        }
    }

    /// The same, where it was given just now.
    async fn save_granted(&self, lock: &LoginLock, login: Credential) {
        self.state.lock().last_grant = login.authorization().map(|token| (token, Instant::now()));
        self.save(lock, login).await;
    }

    /// The server wants scopes beyond those that were granted (RFC 6750 section 3.1).
    pub(super) async fn step_up(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
        if refused.is_none() {
            return self.replace_refused(None, challenge).await;
        }
        let stamp = self.state.lock().stamp;
        if self.store.stamp(&self.target.key) != stamp {
            // Somebody has just logged in.
            self.start_or_join(LoginUpdate::Read).await?;
        }
        let CurrentCredential::Token(token) = self.state.lock().current.clone() else {
            return Ok(());
        };
        if Some(&token.authorization) != refused {
            return Ok(());
        }
        let missing = self.missing_scopes(&token.login.facts, challenge)?;
        let why = format!(" with more scopes ({})", scopes::quoted(&missing));
        match self.record_missing_scopes(missing).await? {
            false => Ok(()),
            true if self.uses_client_credentials() => {
                self.replace_refused(refused, challenge).await
            }
            true => Err(self.login_required(&why)),
        }
    }

    /// The scopes that a server asks for beyond those of a login.
    fn missing_scopes(
        &self,
        login: &LoginFacts,
        challenge: &Challenge,
    ) -> Result<Vec<String>, CredentialError> {
        let said = &challenge.www_authenticate;
        let asked = WWWAuthenticateParams::parse(said, &self.target.remote.url).scope;
        let asked = scopes::valid_scopes(asked.unwrap_or_default().split_whitespace());
        let missing: Vec<String> =
            asked.into_iter().filter(|scope| !login.scopes.contains(scope)).collect();
        if missing.is_empty() {
            let why = "it says that scopes are missing, and names none that were not given";
            return Err(CredentialError::Refused(why.to_owned()));
        }
        if missing.iter().all(|scope| login.asked.contains(scope)) {
            let missing = scopes::quoted(&missing);
            let why = format!("the authorization server has not given what it wants ({missing})");
            let again = format!("{why}; to ask for it again, run `{}`", self.command);
            return Err(CredentialError::Refused(if self.uses_client_credentials() {
                why
            } else {
                again
            }));
        }
        Ok(missing)
    }
}
