//! How something else to show is come by: read from where it is kept, renewed, or got anew by a machine.

use std::time::SystemTime;

use rmcp::transport::auth::WWWAuthenticateParams;

use super::{Authorizer, LOST, Shown, Task, unavailable};
use crate::{
    auth::{
        client::{Client, secret_of},
        credential::{AuthMethod, Credential},
        discovery::discover,
        error::{LoginError, TokenError, scrubbed},
        guard::Guard,
        store::{Held, StoreError},
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
                self.replace(shown, None).await
            }
            Task::Replace { refused, challenge } => self.replace(refused, Some(&challenge)).await,
        }
    }

    /// Gets something else to show. Whoever holds the login in whatever process has just done so, or does it now.
    /// `challenge`: of the server, where it has refused what was shown.
    async fn replace(
        &self,
        refused: Option<Authorization>,
        challenge: Option<&str>,
    ) -> Result<(), CredentialError> {
        let held = self.store.hold(&self.site.slot).await.map_err(unavailable)?;
        let stamp = self.store.stamp(&self.site.slot);
        let kept = self.read().await?;
        let is_other = |login: &Credential| {
            let kept = login.tokens.as_ref();
            let kept = kept.and_then(|tokens| Authorization::bearer(tokens.access.expose()));
            kept.is_some() && kept != refused && !login.is_expired(SystemTime::now())
        };
        match kept {
            Some(login) if is_other(&login) => {
                self.show(Some(login), stamp);
                Ok(())
            }
            kept if self.is_machine() => {
                let wanted = kept.as_ref().map(|kept| kept.facts.wanted.clone());
                let challenge = challenge.unwrap_or_default();
                let login = self.for_machine(challenge, &wanted.unwrap_or_default()).await?;
                self.keep(&held, login).await;
                Ok(())
            }
            Some(login) if login.can_be_renewed() => {
                self.renew(&held, login, challenge.is_some()).await
            }
            kept => {
                let why = match kept {
                    Some(login) if login.tokens.is_some() && challenge.is_none() => {
                        " (the login has expired)"
                    }
                    Some(_) => LOST,
                    None => "",
                };
                self.want(why, stamp);
                Err(self.login_required(why))
            }
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
        let named = self.site.oauth.auth_server.clone();
        let own = [Some(self.site.remote.url.clone()), named].into_iter().flatten();
        let guard = Guard::new(own).await.map_err(unavailable)?;
        match refreshed(&guard, &client, &login).await {
            Ok(granted) => {
                tracing::info!(server = self.site.name, "the login is renewed");
                self.keep(held, granted.into_renewed(login)).await;
                Ok(())
            }
            Err(error @ (TokenError::Rejected(_) | TokenError::UnknownClient(_))) => {
                tracing::warn!(server = self.site.name, %error, "the login cannot be renewed");
                let is_over = is_refused || login.is_expired(SystemTime::now());
                let mut lost = if is_over { login.without_tokens() } else { login.unrenewable() };
                if matches!(error, TokenError::UnknownClient(_)) {
                    // The next login registers another.
                    (lost.facts.redirect_uri, lost.client_secret) = (None, None);
                }
                let is_usable = lost.tokens.is_some();
                self.keep(held, lost).await;
                if is_usable { Ok(()) } else { Err(self.login_required(LOST)) }
            }
            Err(error) => {
                tracing::warn!(server = self.site.name, %error, "the login is not renewed now");
                self.postpone();
                Err(CredentialError::Unavailable(error.to_string()))
            }
        }
    }

    /// The client that a login was given to, with its secret.
    async fn client_of(&self, login: &Credential) -> Result<Client, CredentialError> {
        let facts = &login.facts;
        let mut client = Client {
            id: facts.client_id.clone(),
            method: facts.method,
            secret: login.client_secret.clone(),
            redirect_uri: facts.redirect_uri.clone(),
        };
        if let Some(configured) = &self.site.oauth.client
            && client.secret.is_none()
            && client.method != AuthMethod::None
        {
            client.secret = secret_of(configured, &self.store).await.map_err(unavailable)?;
        }
        Ok(client)
    }

    async fn for_machine(
        &self,
        challenge: &str,
        wanted: &[String],
    ) -> Result<Credential, CredentialError> {
        let failed = |error: LoginError| match error {
            LoginError::Token(TokenError::Failed(cause)) | LoginError::Unreachable(cause) => {
                CredentialError::Unavailable(cause)
            }
            error => CredentialError::Refused(scrubbed(&error.to_string(), &[])),
        };
        let discovered = discover(&self.site, challenge).await.map_err(failed)?;
        let oauth = &self.site.oauth;
        let Some(configured) = &oauth.client else {
            return Err(CredentialError::Refused("its \"oauth\" has no client".to_owned()));
        };
        let client = Client::of_config(configured, &discovered, &self.store).await;
        let client = client.map_err(|error| failed(error.into()))?;
        let scopes = discovered.scopes(&oauth.scopes, wanted).await;
        let granted = for_machine(&discovered, &client, &scopes).await;
        let granted = granted.map_err(|error| failed(error.into()))?;
        Ok(granted.into_login(&self.site.remote.url, &discovered, client, scopes))
    }

    /// Takes note of scopes that the server wants beyond those that it was given.
    async fn want_more(&self, scopes: Vec<String>) -> Result<(), CredentialError> {
        let held = self.store.hold(&self.site.slot).await.map_err(unavailable)?;
        if let Some(mut login) = self.read().await?
            && login.facts.wanted != scopes
        {
            login.facts.wanted = scopes;
            self.keep(&held, login).await;
        }
        Ok(())
    }

    async fn read(&self) -> Result<Option<Credential>, CredentialError> {
        let slot = self.site.slot.clone();
        match self.store.run(move |store| store.read(&slot)).await {
            Err(error @ StoreError::Unreadable(_)) => {
                // A new login takes its place.
                tracing::warn!(server = self.site.name, "{error}");
                Ok(None)
            }
            read => read.map_err(unavailable),
        }
    }

    /// Keeps a login, and shows it from now on. One that cannot be kept is good as long as the process lives.
    async fn keep(&self, held: &Held, login: Credential) {
        let (slot, held, kept) = (self.site.slot.clone(), held.clone(), login.clone());
        if let Err(error) = self.store.run(move |store| store.write(&slot, &held, &kept)).await {
            tracing::error!(server = self.site.name, %error, "the login cannot be kept");
        }
        self.show(Some(login), self.store.stamp(&self.site.slot));
    }

    /// The server wants scopes beyond those that were granted (RFC 6750 section 3.1).
    pub(super) async fn step_up(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
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
        let asked: Vec<String> =
            asked.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let granted = &token.login.facts.scopes;
        let missing: Vec<String> =
            asked.into_iter().filter(|scope| !granted.contains(scope)).collect();
        if missing.is_empty() {
            let why = "it says that scopes are missing, and names none that were not given";
            return Err(CredentialError::Refused(why.to_owned()));
        }
        let why = format!(" with more scopes ({})", scrubbed(&missing.join(" "), &[]));
        self.want_more(missing).await?;
        if self.is_machine() {
            return self.replace_refused(refused, challenge).await;
        }
        Err(self.login_required(&why))
    }
}
