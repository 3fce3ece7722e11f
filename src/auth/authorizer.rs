//! What one server's requests show: kept in memory, renewed before it expires, and renewed once however many need it, in
//! however many processes.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    Site,
    client::{Client, secret_of},
    credential::{AuthMethod, Credential},
    discovery::discover,
    error::{LoginError, TokenError, scrubbed},
    guard::Guard,
    store::{Held, Stamp, Store, StoreError},
    token::{for_machine, refreshed},
};
use crate::{
    config::Grant,
    wire::credentials::{Authorization, Challenge, CredentialError, Credentials, Pending},
};

/// How often it is looked whether another process has changed the login.
const LOOK: Duration = Duration::from_secs(1);
/// A renewal that was early, and failed, is tried again after this.
const PAUSE: Duration = Duration::from_secs(30);

/// Gives one server's requests what they show.
pub(super) struct Authorizer {
    this: Weak<Self>,
    site: Site,
    /// By which somebody logs in.
    command: String,
    store: Arc<Store>,
    tasks: TaskTracker,
    // A std mutex: held for a look or a change.
    memory: Mutex<Memory>,
}

struct Memory {
    shown: Shown,
    /// Of the kept login, when it was last read.
    stamp: Stamp,
    looked_at: Instant,
    /// What is being done about it, which everyone shares.
    flight: Option<Flight>,
}

/// What there is to show.
#[derive(Clone)]
enum Shown {
    /// Nobody has looked yet.
    Unknown,
    /// Nothing; and the server has asked for nothing so far.
    Nothing,
    /// Nothing that the server would accept. `why`: the end of a sentence, for whoever has to log in.
    Wanting {
        why: String,
    },
    Token(Arc<Token>),
}

struct Token {
    login: Credential,
    authorization: Authorization,
    renew_at: Option<SystemTime>,
}

type Flight = Shared<BoxFuture<'static, Result<(), CredentialError>>>;

/// What can be done about what is shown.
enum Task {
    /// Read what is kept.
    Read,
    /// Renew what has expired, or soon will.
    Renew,
    /// Get something else than what was refused. `challenge`: of the server.
    Replace { refused: Option<Authorization>, challenge: String },
}

/// What a look comes to.
enum Look {
    Show(Option<Authorization>),
    First(Task),
    /// Show it, and meanwhile renew it.
    ShowAndRenew(Authorization),
}

/// Somebody else may change the login whenever it is looked at; but not for ever.
const MOST_LOOKS: usize = 4;

impl Authorizer {
    pub(super) fn new(
        site: Site,
        command: String,
        store: Arc<Store>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let (stamp, looked_at) = (Stamp::default(), Instant::now());
        let memory = Memory { shown: Shown::Unknown, stamp, looked_at, flight: None };
        let memory = Mutex::new(memory);
        Arc::new_cyclic(|this| Self { this: this.clone(), site, command, store, tasks, memory })
    }

    /// Reads anew what is kept, when it is next looked at.
    pub(super) fn forget(&self) {
        let mut memory = self.lock();
        (memory.shown, memory.stamp) = (Shown::Unknown, Stamp::default());
    }

    fn look(&self) -> Result<Look, CredentialError> {
        let mut memory = self.lock();
        let now = Instant::now();
        // Who is refused may have logged in a moment ago.
        let is_due = now.duration_since(memory.looked_at) >= LOOK
            || matches!(memory.shown, Shown::Wanting { .. });
        if is_due {
            memory.looked_at = now;
            if self.store.stamp(&self.site.slot) != memory.stamp {
                return Ok(Look::First(Task::Read));
            }
        }
        match &memory.shown {
            Shown::Unknown => Ok(Look::First(Task::Read)),
            Shown::Nothing => Ok(Look::Show(None)),
            Shown::Wanting { why } => Err(self.login_required(why)),
            Shown::Token(token) => {
                let now = SystemTime::now();
                let authorization = token.authorization.clone();
                if token.login.is_expired(now) {
                    Ok(Look::First(Task::Renew))
                } else if token.renew_at.is_some_and(|at| at <= now) && self.is_renewable(token) {
                    Ok(Look::ShowAndRenew(authorization))
                } else {
                    Ok(Look::Show(Some(authorization)))
                }
            }
        }
    }

    fn is_renewable(&self, token: &Token) -> bool {
        token.login.can_be_renewed() || self.is_machine()
    }

    fn is_machine(&self) -> bool {
        self.site.oauth.grant == Grant::ClientCredentials
    }

    fn login_required(&self, why: &str) -> CredentialError {
        CredentialError::LoginRequired { why: why.to_owned(), command: self.command.clone() }
    }

    /// Does something about what is shown, or joins in what is being done already. It goes on when whoever asked for it
    /// has gone: a token that was given must be kept.
    fn fly(&self, task: Task) -> Flight {
        let mut memory = self.lock();
        if let Some(flight) = &memory.flight {
            return flight.clone();
        }
        let this = self.this.clone();
        let flying = self.tasks.spawn(async move {
            let Some(this) = this.upgrade() else { return Ok(()) };
            let outcome = this.perform(task).await;
            this.lock().flight = None;
            outcome
        });
        let ended = |_| Err(CredentialError::Unavailable("dormouse is shutting down".to_owned()));
        let flight = async move { flying.await.unwrap_or_else(ended) }.boxed().shared();
        memory.flight = Some(flight.clone());
        flight
    }

    async fn perform(&self, task: Task) -> Result<(), CredentialError> {
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

    /// `stamp`: of the kept login, before it was read.
    fn show(&self, login: Option<Credential>, stamp: Stamp) {
        let token = login.map(|login| Token::of(login, fastrand::f64()));
        let mut memory = self.lock();
        memory.stamp = stamp;
        memory.shown = match token {
            Some(Some(token)) => Shown::Token(Arc::new(token)),
            Some(None) => Shown::Wanting { why: LOST.to_owned() },
            None => Shown::Nothing,
        };
    }

    fn want(&self, why: &str, stamp: Stamp) {
        let mut memory = self.lock();
        (memory.shown, memory.stamp) = (Shown::Wanting { why: why.to_owned() }, stamp);
    }

    /// Shows what there is for a while longer.
    fn postpone(&self) {
        let mut memory = self.lock();
        if let Shown::Token(token) = &memory.shown {
            let renew_at = Some(SystemTime::now() + PAUSE);
            let (login, authorization) = (token.login.clone(), token.authorization.clone());
            memory.shown = Shown::Token(Arc::new(Token { login, authorization, renew_at }));
        }
    }

    async fn authorize(&self) -> Result<Option<Authorization>, CredentialError> {
        for _ in 0..MOST_LOOKS {
            match self.look()? {
                Look::Show(authorization) => return Ok(authorization),
                Look::ShowAndRenew(authorization) => {
                    drop(self.fly(Task::Renew));
                    return Ok(Some(authorization));
                }
                Look::First(task) => self.fly(task).await?,
            }
        }
        Err(CredentialError::Unavailable("it changes all the time".to_owned()))
    }

    /// Whether something else is shown by now than what was refused.
    fn shows_other(&self, refused: Option<&Authorization>) -> bool {
        match &self.lock().shown {
            Shown::Token(token) => Some(&token.authorization) != refused,
            _ => false,
        }
    }

    async fn replace_refused(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
        for _ in 0..MOST_LOOKS {
            if self.shows_other(refused) {
                return Ok(());
            }
            let task = Task::Replace {
                refused: refused.cloned(),
                challenge: challenge.www_authenticate.clone(),
            };
            self.fly(task).await?;
        }
        Err(CredentialError::Refused("it does not accept any token".to_owned()))
    }

    /// The server wants scopes beyond those that were granted (RFC 6750 section 3.1).
    async fn step_up(
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

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const LOST: &str = " (the login is not valid any more)";

fn unavailable(error: impl std::fmt::Display) -> CredentialError {
    CredentialError::Unavailable(error.to_string())
}

impl Token {
    fn of(login: Credential, random: f64) -> Option<Self> {
        let authorization = Authorization::bearer(login.tokens.as_ref()?.access.expose())?;
        let renew_at = login.renew_at(random);
        Some(Self { login, authorization, renew_at })
    }
}

impl Credentials for Authorizer {
    fn authorization(&self) -> Pending<'_, Result<Option<Authorization>, CredentialError>> {
        Box::pin(self.authorize())
    }

    fn refused<'a>(
        &'a self,
        shown: Option<&'a Authorization>,
        challenge: &'a Challenge,
    ) -> Pending<'a, Result<(), CredentialError>> {
        Box::pin(async move {
            match challenge.status {
                403 => self.step_up(shown, challenge).await,
                _ => self.replace_refused(shown, challenge).await,
            }
        })
    }

    fn changed(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let known = self.lock().stamp;
            while self.store.stamp(&self.site.slot) == known {
                tokio::time::sleep(LOOK).await;
            }
            self.forget();
        })
    }
}
