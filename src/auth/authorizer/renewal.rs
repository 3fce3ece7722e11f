//! How something else to show is come by: read from where it is kept, renewed, or got anew by a machine.

use std::time::SystemTime;

use tokio::time::Instant;

use rmcp::transport::auth::WWWAuthenticateParams;

use super::{Authorizer, LOST, NOT_ACCEPTED, Shown, Task, unavailable};
use crate::{
    auth::{
        beginning::same_authority,
        client::{Client, secret_of},
        credential::{AuthMethod, Credential, Facts},
        discovery::discover,
        error::{LoginError, TokenError, scrubbed},
        guard::GuardError,
        scopes,
        store::{Held, Stamp, Store, StoreError},
        token::{for_machine, refreshed},
    },
    wire::credentials::{Authorization, Challenge, CredentialError},
};

impl Authorizer {
    pub(super) async fn perform(&self, task: Task) -> Result<(), CredentialError> {
        match task {
            Task::Read => {
                let stamp = self.store.stamp(&self.site.slot);
                let kept = self.read().await?;
                self.show(kept, stamp);
                Ok(())
            }
            Task::Renew => {
                let shown = match &self.lock().shown {
                    Shown::Token(token) => Some(token.authorization.clone()),
                    _ => None,
                };
                // One that was early, and has come to nothing, can wait.
                self.replace(shown, None).await.inspect_err(|_| self.postpone())
            }
            Task::Replace { refused, challenge } => self.replace(refused, Some(&challenge)).await,
        }
    }

    /// Gets something else to show. Whoever holds the login in whatever process has just done so, or does it now.
    /// `challenge`: of the server, where it has refused what was shown.
    async fn replace(
        &self,
        refused: Option<Authorization>,
        challenge: Option<&Challenge>,
    ) -> Result<(), CredentialError> {
        let is_refused = challenge.is_some_and(|challenge| challenge.status == 401);
        let held = self.store.hold(&self.site.slot).await.map_err(unavailable)?;
        let stamp = self.store.stamp(&self.site.slot);
        let kept = match self.unkept(stamp) {
            Some(newer) => Some(newer),
            None => self.read().await?,
        };
        let is_other = |login: &Credential| {
            let kept = login.authorization();
            kept.is_some() && kept != refused && !login.is_expired(SystemTime::now())
        };
        match kept {
            Some(login) if is_other(&login) => {
                self.show(Some(login), stamp);
                Ok(())
            }
            Some(login) if is_refused && self.is_on_trial(&login) => Err(self.on_trial()),
            kept if self.is_machine() => {
                let known = kept.map(|kept| kept.facts);
                let known = known.or_else(|| self.store.facts(&self.site.slot));
                let said = challenge.map(|challenge| challenge.www_authenticate.as_str());
                let login = self.for_machine(said.unwrap_or_default(), known).await?;
                self.keep_given(&held, login).await;
                Ok(())
            }
            Some(login) if login.can_be_renewed() => self.renew(&held, login, is_refused).await,
            kept => Err(self.without_renewal(kept, stamp)),
        }
    }

    fn on_trial(&self) -> CredentialError {
        let why = "it does not accept the token that was given a moment ago";
        CredentialError::Unavailable(if self.is_machine() {
            why.to_owned()
        } else {
            format!("{why}; if that stays so, run `{}`", self.command)
        })
    }

    /// Why a person has to log in, where what is kept of their login cannot be renewed.
    fn without_renewal(&self, kept: Option<Credential>, stamp: Stamp) -> CredentialError {
        let why = match kept {
            // It was refused, which may be a mistake.
            Some(login) if login.tokens.is_some() && !login.is_expired(SystemTime::now()) => {
                self.show(Some(login), stamp);
                return self.login_required(NOT_ACCEPTED);
            }
            Some(login) if login.tokens.is_some() => " (the login has expired)",
            Some(login) if login.was_given() => LOST,
            Some(_) | None => "",
        };
        self.want(why, stamp);
        self.login_required(why)
    }

    /// What is newer than what is kept, if nobody else has kept anything since.
    fn unkept(&self, stamp: Stamp) -> Option<Credential> {
        let memory = self.lock();
        match &memory.shown {
            Shown::Token(token) if memory.is_unkept && memory.stamp == stamp => {
                Some(token.login.clone())
            }
            _ => None,
        }
    }

    /// Renews a login that nobody else renews meanwhile.
    async fn renew(
        &self,
        held: &Held,
        login: Credential,
        is_refused: bool,
    ) -> Result<(), CredentialError> {
        let client = self.client_of(&login).await?;
        let guard = self.site.guard().map_err(unavailable)?;
        let reserved = self.store.at(&self.site.slot, Store::reserve).await;
        let reserved = reserved.map_err(unavailable)?;
        let granted = refreshed(&guard, &client, &login).await;
        drop(reserved);
        match granted {
            Ok(granted) => {
                tracing::info!(server = self.site.name, "the login is renewed");
                self.keep_given(held, granted.into_renewed(login)).await;
                Ok(())
            }
            Err(error) => self.not_renewed(held, login, is_refused, error).await,
        }
    }

    async fn not_renewed(
        &self,
        held: &Held,
        login: Credential,
        is_refused: bool,
        error: TokenError,
    ) -> Result<(), CredentialError> {
        let server = &self.site.name;
        let is_of_config = login.facts.redirect_uri.is_none();
        let is_over = is_refused || login.is_expired(SystemTime::now());
        let lost = match &error {
            TokenError::Failed(why) => {
                tracing::warn!(server, %error, "the login is not renewed now");
                return Err(CredentialError::Unavailable(why.clone()));
            }
            // Somebody else's config may have the right one.
            TokenError::UnknownClient(why) if is_of_config => {
                tracing::warn!(server, %error, "the client of the config is refused");
                let why = format!("the client of its \"oauth\" is refused ({why})");
                return Err(CredentialError::Refused(why));
            }
            TokenError::UnknownClient(_) => login.without_client(),
            TokenError::Rejected(_) if is_over => login.without_tokens(),
            TokenError::Rejected(_) => login.unrenewable(),
            // Nobody has said that what it was shown is no good; but whether it ever will be, nobody knows.
            TokenError::Refused(_) | TokenError::Odd => {
                tracing::warn!(server, %error, "the login is not renewed now");
                return Err(self.login_required(" (the one that there is cannot be renewed now)"));
            }
        };
        tracing::warn!(server, %error, "the login cannot be renewed");
        let is_usable = lost.tokens.is_some();
        self.keep(held, lost).await;
        if is_usable { Ok(()) } else { Err(self.login_required(LOST)) }
    }

    /// The client that a login was given to, with its secret.
    async fn client_of(&self, login: &Credential) -> Result<Client, CredentialError> {
        let mut client = Client::of_login(login);
        if let Some(configured) = &self.site.oauth.client
            && client.secret.is_none()
            && client.method != AuthMethod::None
        {
            client.secret = secret_of(configured, &self.store).await.map_err(unavailable)?;
        }
        Ok(client)
    }

    /// `known`: of what it had before, whose scopes it goes on to have.
    async fn for_machine(
        &self,
        challenge: &str,
        known: Option<Facts>,
    ) -> Result<Credential, CredentialError> {
        let failed = |error: LoginError| match error {
            LoginError::Token(error @ TokenError::Odd) => {
                CredentialError::Unavailable(error.to_string())
            }
            // Whoever would say more cannot be asked now.
            LoginError::Token(TokenError::Failed(cause))
            | LoginError::Unreachable(cause)
            | LoginError::Discovery(cause) => CredentialError::Unavailable(cause),
            LoginError::Guard(error @ GuardError::Failed { .. }) => {
                CredentialError::Unavailable(error.to_string())
            }
            error => CredentialError::Refused(scrubbed(&error.to_string(), &[])),
        };
        let discovered = discover(&self.site, challenge).await.map_err(failed)?;
        if let Some(known) = &known {
            same_authority(&self.site, &known.issuer, &discovered).map_err(failed)?;
        }
        let oauth = &self.site.oauth;
        let Some(configured) = &oauth.client else {
            return Err(CredentialError::Refused("its \"oauth\" has no client".to_owned()));
        };
        let client = Client::of_config(configured, &discovered, &self.store).await;
        let client = client.map_err(|error| failed(error.into()))?;
        let had = known.map(|known| [&known.scopes[..], &known.wanted].concat());
        let scopes = discovered.scopes(&oauth.scopes, &had.unwrap_or_default()).await;
        let granted = for_machine(&discovered, &client, &scopes).await;
        let granted = granted.map_err(|error| failed(error.into()))?;
        let url = &self.site.remote.url;
        let mut login = granted.into_login(url, &discovered, client, scopes);
        // Nobody has to do anything for the next one.
        login.facts.is_renewable = true;
        Ok(login)
    }

    /// Takes note of scopes that the server wants beyond those that it was given.
    async fn want_more(&self, scopes: Vec<String>) -> Result<(), CredentialError> {
        let held = self.store.hold(&self.site.slot).await.map_err(unavailable)?;
        let Some(mut login) = self.read().await? else { return Ok(()) };
        let Facts { wanted, scopes: granted, .. } = &mut login.facts;
        let before = wanted.len();
        // Somebody may have logged in with them meanwhile.
        wanted.extend(scopes.into_iter().filter(|scope| !granted.contains(scope)));
        wanted.sort();
        wanted.dedup();
        if wanted.len() > before {
            self.keep(&held, login).await;
        }
        Ok(())
    }

    async fn read(&self) -> Result<Option<Credential>, CredentialError> {
        let known = self.store.facts(&self.site.slot);
        self.lock().login_id = known.and_then(|known| known.login_id);
        match self.store.at(&self.site.slot, Store::read).await {
            // It gets another.
            Err(StoreError::Keychain(_)) if self.is_machine() => Ok(None),
            Err(error @ StoreError::Unreadable(_)) => {
                // A new login takes its place.
                tracing::warn!(server = self.site.name, "{error}");
                Ok(None)
            }
            // Logged in here, it is kept in a file.
            Err(StoreError::Keychain(error)) => {
                let why = format!(" (where the one that there is cannot be read here: {error})");
                Err(self.login_required(&why))
            }
            read => read.map_err(unavailable),
        }
    }

    /// The same for one with a token that was given just now.
    async fn keep_given(&self, held: &Held, login: Credential) {
        self.lock().on_trial = login.authorization().map(|token| (token, Instant::now()));
        self.keep(held, login).await;
    }

    /// Keeps a login, and shows it from now on. One that cannot be kept is good as long as the process lives.
    async fn keep(&self, held: &Held, login: Credential) {
        let (slot, held, kept) = (&self.site.slot, held.clone(), login.clone());
        let written = self.store.at(slot, move |store, slot| store.write(slot, &held, &kept)).await;
        self.show(Some(login), self.store.stamp(&self.site.slot));
        if let Err(error) = written {
            tracing::error!(server = self.site.name, %error, "the login cannot be kept");
            self.lock().is_unkept = true;
        }
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
        let stamp = self.lock().stamp;
        if self.store.stamp(&self.site.slot) != stamp {
            // Somebody has just logged in.
            self.fly(Task::Read).await?;
        }
        let Shown::Token(token) = self.lock().shown.clone() else { return Ok(()) };
        if Some(&token.authorization) != refused {
            return Ok(());
        }
        let url = &self.site.remote.url;
        let asked = WWWAuthenticateParams::parse(&challenge.www_authenticate, url).scope;
        let asked = scopes::named(asked.unwrap_or_default().split_whitespace());
        let granted = &token.login.facts.scopes;
        let missing: Vec<String> =
            asked.into_iter().filter(|scope| !granted.contains(scope)).collect();
        if missing.is_empty() {
            let why = "it says that scopes are missing, and names none that were not given";
            return Err(CredentialError::Refused(why.to_owned()));
        }
        let facts = &token.login.facts;
        if missing.iter().all(|scope| facts.asked.contains(scope)) {
            let missing = scopes::in_words(&missing);
            let why = format!(
                "the authorization server has not given the scopes that it wants ({missing})"
            );
            return Err(CredentialError::Refused(why));
        }
        let why = format!(" with more scopes ({})", scopes::in_words(&missing));
        self.want_more(missing).await?;
        if self.is_machine() {
            return self.replace_refused(refused, challenge).await;
        }
        Err(self.login_required(&why))
    }
}
