//! How something else to show is come by: read from where it is kept, renewed, or got anew by a machine.

use std::time::SystemTime;

use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::Instant;

use super::{Authorizer, LOST, NOT_ACCEPTED, ON_TRIAL, Shown, TRIAL, Task, unavailable};
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
                let shown = match &self.memory.lock().shown {
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
        let kept = self.current(stamp).await?;
        let is_other = |login: &Credential| {
            let kept = login.authorization();
            kept.is_some() && kept != refused && !login.is_expired(SystemTime::now())
        };
        match kept {
            Some(login) if is_other(&login) => {
                self.show(Some(login), stamp);
                Ok(())
            }
            _ if is_refused && self.is_on_trial(refused.as_ref()) => Err(self.not_now(ON_TRIAL)),
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

    /// It may be over in a moment; or somebody has to log in, if anybody can.
    fn not_now(&self, why: &str) -> CredentialError {
        CredentialError::Unavailable(if self.is_machine() {
            why.to_owned()
        } else {
            format!("{why}; if that stays so, run `{}`", self.command)
        })
    }

    /// Why there is nothing to show for a person whose login, as it is kept, cannot be renewed.
    fn without_renewal(&self, kept: Option<Credential>, stamp: Stamp) -> CredentialError {
        let why = match kept {
            // It was refused, which may be a mistake.
            Some(login) if login.tokens.is_some() && !login.is_expired(SystemTime::now()) => {
                let is_new = login.age().is_some_and(|age| age < TRIAL)
                    && login.authorization() != self.memory.lock().accepted;
                self.show(Some(login), stamp);
                return if is_new {
                    self.not_now(ON_TRIAL)
                } else {
                    self.login_required(NOT_ACCEPTED)
                };
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
        let memory = self.memory.lock();
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
            TokenError::Odd => {
                tracing::warn!(server, %error, "the login is not renewed now");
                return Err(self.not_now("what is answered in its place is no token"));
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
            TokenError::Refused(_) => {
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

    /// Takes note of scopes that the server wants beyond those that it was given. Whether any are missing still: somebody
    /// may have logged in with them meanwhile.
    async fn want_more(&self, scopes: Vec<String>) -> Result<bool, CredentialError> {
        let held = self.store.hold(&self.site.slot).await.map_err(unavailable)?;
        let stamp = self.store.stamp(&self.site.slot);
        let Some(mut login) = self.current(stamp).await? else { return Ok(true) };
        let Facts { wanted, scopes: granted, .. } = &mut login.facts;
        let missing: Vec<String> =
            scopes.into_iter().filter(|scope| !granted.contains(scope)).collect();
        let is_more = !missing.is_empty();
        let before = wanted.len();
        wanted.extend(missing);
        wanted.sort();
        wanted.dedup();
        if wanted.len() > before {
            self.keep(&held, login).await;
        } else {
            self.show(Some(login), stamp);
        }
        Ok(is_more)
    }

    /// The login as it is: what is kept, or what is newer and could not be.
    async fn current(&self, stamp: Stamp) -> Result<Option<Credential>, CredentialError> {
        match self.unkept(stamp) {
            Some(newer) => Ok(Some(newer)),
            None => self.read().await,
        }
    }

    async fn read(&self) -> Result<Option<Credential>, CredentialError> {
        let read = self.store.at(&self.site.slot, Store::read).await;
        let known = match &read {
            Ok(login) => login.as_ref().map(|login| login.facts.clone()),
            // Its secrets are elsewhere, and what it is may be known all the same.
            Err(_) => self.store.facts(&self.site.slot),
        };
        self.memory.lock().login_id = known.and_then(|known| known.login_id);
        let read = match read {
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
        };
        if read.is_ok() {
            self.memory.lock().is_unkept = false;
        }
        read
    }

    /// Keeps a login, and shows it from now on. One that cannot be kept is good as long as the process lives.
    async fn keep(&self, held: &Held, login: Credential) {
        let (slot, held, kept) = (&self.site.slot, held.clone(), login.clone());
        let written = self.store.at(slot, move |store, slot| store.write(slot, &held, &kept)).await;
        self.show(Some(login), self.store.stamp(&self.site.slot));
        self.memory.lock().is_unkept = written.is_err();
        if let Err(error) = written {
            tracing::error!(server = self.site.name, %error, "the login cannot be kept");
        }
    }

    /// The same, where it was given just now.
    async fn keep_given(&self, held: &Held, login: Credential) {
        self.memory.lock().given = login.authorization().map(|token| (token, Instant::now()));
        self.keep(held, login).await;
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
        let stamp = self.memory.lock().stamp;
        if self.store.stamp(&self.site.slot) != stamp {
            // Somebody has just logged in.
            self.fly(Task::Read).await?;
        }
        let Shown::Token(token) = self.memory.lock().shown.clone() else { return Ok(()) };
        if Some(&token.authorization) != refused {
            return Ok(());
        }
        let missing = self.missing(&token.login.facts, challenge)?;
        let why = format!(" with more scopes ({})", scopes::in_words(&missing));
        match self.want_more(missing).await? {
            false => Ok(()),
            true if self.is_machine() => self.replace_refused(refused, challenge).await,
            true => Err(self.login_required(&why)),
        }
    }

    /// The scopes that a server asks for beyond those of a login.
    fn missing(
        &self,
        login: &Facts,
        challenge: &Challenge,
    ) -> Result<Vec<String>, CredentialError> {
        let said = &challenge.www_authenticate;
        let asked = WWWAuthenticateParams::parse(said, &self.site.remote.url).scope;
        let asked = scopes::named(asked.unwrap_or_default().split_whitespace());
        let missing: Vec<String> =
            asked.into_iter().filter(|scope| !login.scopes.contains(scope)).collect();
        if missing.is_empty() {
            let why = "it says that scopes are missing, and names none that were not given";
            return Err(CredentialError::Refused(why.to_owned()));
        }
        if missing.iter().all(|scope| login.asked.contains(scope)) {
            let missing = scopes::in_words(&missing);
            let why = format!("the authorization server has not given what it wants ({missing})");
            let again = format!("{why}; to ask for it again, run `{}`", self.command);
            return Err(CredentialError::Refused(if self.is_machine() { why } else { again }));
        }
        Ok(missing)
    }
}
