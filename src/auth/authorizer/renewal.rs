//! Obtains other credentials: reads them from the store, renews them, or requests them with the
//! client credentials grant.

use std::time::{Duration, SystemTime};

use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::Instant;

use super::{
    Authorizer, LoginUpdate, NEW_TOKEN_REFUSED, TOKEN_REFUSED,
    renewal_doubt::{LOST_PATIENCE, MISSING_PATIENCE, REJECTED_PATIENCE},
    store_error,
    token_cell::{LOGIN_EXPIRED, LOGIN_INVALID, TRIAL_TIMEOUT},
    unavailable,
};
use crate::{
    auth::{
        auth_client::AuthClient,
        auth_method::AuthMethod,
        configured_client::secret_of,
        credential::{Credential, LoginFacts, LoginGrant},
        discovery::{check_same_authority, discover},
        guarded_client::GuardedClientError,
        login_error::{LoginError, TokenError, scrubbed},
        login_store::{LoginLock, LoginStore},
        login_store_error::LOCK_TIMEOUT,
        scopes,
        token_request::{refresh, request_client_credentials},
    },
    store::StoredVersion,
    wire::credentials::{Authorization, Challenge, CredentialError},
};

/// Returns the error of a login whose newest state another replica may have.
fn in_doubt() -> CredentialError {
    CredentialError::StoreOutage("the store may not have the newest token".to_owned())
}

/// Time after which a store that could not be used is asked again.
const STORE_RETRY_DELAY: Duration = Duration::from_millis(200);

impl Authorizer {
    /// Performs an update. While the store cannot be used, it waits as long as for a lock: without
    /// the store, two processes could use one refresh token.
    pub(super) async fn perform(&self, work: LoginUpdate) -> Result<(), CredentialError> {
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match self.attempt(&work).await {
                Err(CredentialError::StoreOutage(_)) if Instant::now() < until => {
                    tokio::time::sleep(STORE_RETRY_DELAY).await;
                }
                done => return done,
            }
        }
    }

    async fn attempt(&self, work: &LoginUpdate) -> Result<(), CredentialError> {
        match work {
            LoginUpdate::Read => {
                let version = self.stored_version().await?;
                let kept = self.read_newest().await?;
                self.token.set(kept, version);
                Ok(())
            }
            LoginUpdate::Renew => {
                let shown = self.token.token().map(|token| token.authorization.clone());
                // The token is still valid if the renewal was early, so that another attempt can
                // wait.
                self.replace_token(shown, None).await.inspect_err(|_| self.token.postpone_renewal())
            }
            LoginUpdate::Replace { refused, challenge } => {
                self.replace_token(refused.clone(), Some(challenge)).await
            }
            LoginUpdate::Restore => self.restore().await,
        }
    }

    /// Replaces the current token. Holding the login's lock ensures that only one process requests
    /// a new token; the others read what it saved. `challenge` is set if the server refused the
    /// current token.
    pub(super) async fn replace_token(
        &self,
        refused: Option<Authorization>,
        challenge: Option<&Challenge>,
    ) -> Result<(), CredentialError> {
        let is_refused = challenge.is_some_and(|challenge| challenge.status == 401);
        let lock = self.store.lock(&self.target.key).await.map_err(store_error)?;
        let version = self.stored_version().await?;
        let kept = self.current_login(&lock, version).await?;
        let is_expired = |login: &Credential| login.is_expired(SystemTime::now());
        let is_other = |login: &Credential| {
            let kept = login.authorization();
            kept.is_some() && kept != refused && !is_expired(login)
        };
        let is_on_trial = is_refused
            && self.token.is_on_trial(refused.as_ref())
            && !kept.as_ref().is_some_and(is_expired);
        match kept {
            Some(login) if is_other(&login) => {
                self.token.set(Some(login), version);
                Ok(())
            }
            _ if is_on_trial => Err(self.unavailable_for_now(NEW_TOKEN_REFUSED)),
            kept if self.uses_client_credentials() => {
                let known = kept.map(|kept| kept.facts);
                let known = match known {
                    None => self.stored_facts().await,
                    known => known,
                };
                let said = challenge.map(|challenge| challenge.www_authenticate.as_str());
                let login = self.client_credentials_login(said.unwrap_or_default(), known).await?;
                self.token.note_granted(login.authorization());
                self.save(&lock, login).await;
                Ok(())
            }
            Some(login) if login.can_be_renewed() => {
                let shown = login.authorization();
                if self.token.may_be_lost(version) {
                    self.doubt.begin_again(shown.clone(), LOST_PATIENCE);
                } else if login.facts.lifetime.may_be_older {
                    self.doubt.begin(shown.clone(), LOST_PATIENCE);
                }
                if self.doubt.holds(shown.as_ref()) {
                    return Err(in_doubt());
                }
                self.renew(&lock, login, is_refused).await
            }
            None if self.waits_for_a_login(version) => Err(in_doubt()),
            kept => Err(self.cannot_renew(kept, version)),
        }
    }

    /// Returns whether to wait for a login that other replicas may have, and the store has lost. A
    /// login that there never was is waited for once.
    fn waits_for_a_login(&self, version: StoredVersion) -> bool {
        if !self.token.may_be_lost(version) {
            return false;
        }
        self.doubt.begin(None, MISSING_PATIENCE);
        self.doubt.holds(None)
    }

    /// Returns the error for a refusal that may be temporary; where users can log in, it also names
    /// the command.
    fn unavailable_for_now(&self, why: &str) -> CredentialError {
        CredentialError::Unavailable(if self.uses_client_credentials() {
            why.to_owned()
        } else {
            format!("{why}; if this persists, {}", self.remedy)
        })
    }

    /// Records that a user's stored login cannot be renewed, and returns the error that says why.
    fn cannot_renew(&self, kept: Option<Credential>, version: StoredVersion) -> CredentialError {
        let why = match kept {
            // The server refused a token that has not expired, possibly by mistake.
            Some(login) if login.tokens.is_some() && !login.is_expired(SystemTime::now()) => {
                let is_new = login.age().is_some_and(|age| age < TRIAL_TIMEOUT)
                    && !self.token.was_accepted(login.authorization().as_ref());
                self.token.set(Some(login), version);
                return if is_new {
                    self.unavailable_for_now(NEW_TOKEN_REFUSED)
                } else {
                    self.login_required(TOKEN_REFUSED)
                };
            }
            Some(login) if login.tokens.is_some() => {
                self.token.set_expired(login, version);
                return self.login_required(LOGIN_EXPIRED);
            }
            Some(login) if login.was_granted() => LOGIN_INVALID,
            Some(_) | None => "",
        };
        self.token.require_login(why, version);
        self.login_required(why)
    }

    /// Renews a login while its lock keeps other processes from doing so.
    async fn renew(
        &self,
        lock: &LoginLock,
        login: Credential,
        is_refused: bool,
    ) -> Result<(), CredentialError> {
        let client = self.client_with_secret(&login).await?;
        let http = self.target.http().map_err(unavailable)?;
        let reserved = self.store.run_for(&self.target.key, LoginStore::reserve_space).await;
        let reserved = reserved.map_err(store_error)?;
        self.note_renewal(lock, &login).await?;
        let granted = refresh(&http, &client, &login).await;
        drop(reserved);
        match granted {
            Ok(granted) => {
                tracing::info!(server = self.target.name, "login renewed");
                let renewed = granted.into_renewed(login);
                self.token.note_granted(renewed.authorization());
                self.save(lock, renewed).await;
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
        let is_of_config = login.facts.client.redirect_uri.is_none();
        let is_over = is_refused || login.is_expired(SystemTime::now());
        if matches!(error, TokenError::Rejected(_))
            && self.store.loses_logins()
            && self.doubt.begin(login.authorization(), REJECTED_PATIENCE)
        {
            tracing::warn!(server, %error, "waiting for a replica that may have the new token");
            return Err(in_doubt());
        }
        let lost = match &error {
            TokenError::Failed(why) => {
                tracing::warn!(server, %error, "cannot renew the login now");
                return Err(CredentialError::Unavailable(why.clone()));
            }
            TokenError::NotAToken => {
                tracing::warn!(server, %error, "cannot renew the login now");
                return Err(
                    self.unavailable_for_now("the authorization server answered without a token")
                );
            }
            // The stored login stays, since another config may name the right client for it.
            TokenError::UnknownClient(why) if is_of_config => {
                tracing::warn!(
                    server, %error,
                    "authorization server refused the client of the config",
                );
                let why =
                    format!("the authorization server refuses the client of \"oauth\" ({why})");
                return Err(CredentialError::Refused(why));
            }
            TokenError::UnknownClient(_) => login.without_client(),
            TokenError::Rejected(_) if is_over => login.without_tokens(),
            TokenError::Rejected(_) => login.without_refresh_token(),
            // The authorization server did not reject the refresh token itself, so it is kept; but
            // it may never work again.
            TokenError::Refused(_) | TokenError::InvalidToken(_) | TokenError::NoProof(_) => {
                tracing::warn!(server, %error, "cannot renew the login now");
                return Err(self.login_required(" (the present one cannot be renewed now)"));
            }
        };
        tracing::warn!(server, %error, "cannot renew the login");
        let is_usable = lost.tokens.is_some();
        self.save(lock, lost).await;
        if is_usable { Ok(()) } else { Err(self.login_required(LOGIN_INVALID)) }
    }

    /// Returns the client that the login was issued to, with its secret.
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

    /// Requests a token with the client credentials grant. `known`: facts of the previous login,
    /// whose scopes are requested again.
    async fn client_credentials_login(
        &self,
        challenge: &str,
        known: Option<LoginFacts>,
    ) -> Result<Credential, CredentialError> {
        let failed = |error: LoginError| match error {
            LoginError::Token(error @ TokenError::NotAToken) => {
                CredentialError::Unavailable(error.to_string())
            }
            // These failures may be temporary: the authorization server could not be reached.
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
            return Err(CredentialError::Refused("\"oauth\" has no client".to_owned()));
        };
        let client = AuthClient::from_config(configured, &auth_server, &self.store).await;
        let client = client.map_err(|error| failed(error.into()))?;
        let had = known.map(|known| [known.grant.scopes, known.grant.wanted].concat());
        let scopes = auth_server.scopes(&oauth.scopes, &had.unwrap_or_default()).await;
        let granted = request_client_credentials(&auth_server, &client, &scopes).await;
        let granted = granted.map_err(|error| failed(error.into()))?;
        let url = &self.target.remote.url;
        let mut login = granted.into_login(url, &auth_server, client, scopes);
        // The next token needs no user either.
        login.facts.lifetime.is_renewable = true;
        Ok(login)
    }

    /// Records scopes that the server requires beyond the granted ones. Returns whether any are
    /// still missing: the user may have logged in with them in the meantime.
    async fn record_missing_scopes(&self, scopes: Vec<String>) -> Result<bool, CredentialError> {
        let lock = self.store.lock(&self.target.key).await.map_err(store_error)?;
        let version = self.stored_version().await?;
        let Some(mut login) = self.current_login(&lock, version).await? else { return Ok(true) };
        let LoginGrant { wanted, scopes: granted, .. } = &mut login.facts.grant;
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
            self.token.set(Some(login), version);
        }
        Ok(is_more)
    }

    /// Handles a server's demand for scopes beyond the granted ones (RFC 6750 section 3.1).
    pub(super) async fn step_up(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
        if refused.is_none() {
            return self.replace_refused(None, challenge).await;
        }
        if self.stored_version().await.is_ok_and(|stored| stored != self.token.version()) {
            // The user may just have logged in.
            self.start_or_join(LoginUpdate::Read).await?;
        }
        let Some(token) = self.token.token() else { return Ok(()) };
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

    /// Returns the scopes that a server demands beyond those of a login.
    fn missing_scopes(
        &self,
        login: &LoginFacts,
        challenge: &Challenge,
    ) -> Result<Vec<String>, CredentialError> {
        let said = &challenge.www_authenticate;
        let asked = WWWAuthenticateParams::parse(said, &self.target.remote.url).scope;
        let asked = scopes::valid_scopes(asked.unwrap_or_default().split_whitespace());
        let missing: Vec<String> =
            asked.into_iter().filter(|scope| !login.grant.scopes.contains(scope)).collect();
        if missing.is_empty() {
            let why = "the server reports missing scopes, but names only granted ones";
            return Err(CredentialError::Refused(why.to_owned()));
        }
        if missing.iter().all(|scope| login.grant.asked.contains(scope)) {
            let missing = scopes::quoted(&missing);
            let why =
                format!("the authorization server has not granted the required scopes ({missing})");
            let again = format!("{why}; to request them again, {}", self.remedy);
            return Err(CredentialError::Refused(if self.uses_client_credentials() {
                why
            } else {
                again
            }));
        }
        Ok(missing)
    }
}
