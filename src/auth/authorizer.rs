//! The credentials that one server's requests carry: held in memory, renewed before they expire,
//! and renewed once however many requests and processes need them.

mod renewal;

use std::{
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{LoginTarget, credential::Credential, login_store::LoginStore};
use crate::{
    base::Lock,
    config::Grant,
    store::{CHECK_INTERVAL, StoredVersion},
    wire::credentials::{Authorization, Challenge, CredentialError, CredentialFuture, Credentials},
};

/// Delay before another attempt after an early renewal has failed.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Supplies the credentials for one server's requests.
pub(super) struct Authorizer {
    this: Weak<Self>,
    target: LoginTarget,
    /// The command with which a user logs in.
    command: String,
    store: Arc<LoginStore>,
    tasks: TaskTracker,
    state: Lock<AuthorizerState>,
}

struct AuthorizerState {
    current: CurrentCredential,
    /// Stamp of the stored login when it was last read.
    version: StoredVersion,
    /// Identifies the stored login that was last read.
    login_id: Option<String>,
    checked_at: Instant,
    /// True if `current` is newer than the stored login because saving it failed.
    is_unsaved: bool,
    /// The token that an authorization server granted last, and when.
    last_grant: Option<(Authorization, Instant)>,
    /// The token that the server accepted last.
    accepted: Option<Authorization>,
    /// The update in progress, which all requests share.
    update: Option<SharedUpdate>,
}

/// The credentials that requests carry now.
#[derive(Clone)]
enum CurrentCredential {
    /// The store has not been read yet.
    Unread,
    /// There is no login, and the server has not asked for one so far.
    NoLogin,
    /// There is no token that the server would accept. `why` ends the sentence that tells the user
    /// to log in.
    LoginRequired {
        why: String,
    },
    Token(Arc<CurrentToken>),
}

struct CurrentToken {
    login: Credential,
    authorization: Authorization,
    renew_at: Option<SystemTime>,
}

type SharedUpdate = Shared<BoxFuture<'static, Result<(), CredentialError>>>;

/// A way to update the current credentials.
enum LoginUpdate {
    /// Reads the stored login.
    Read,
    /// Renews a token that has expired or soon will.
    Renew,
    /// Replaces a token that the server refused with `challenge`.
    Replace { refused: Option<Authorization>, challenge: Challenge },
}

/// The next step of a request that needs credentials.
enum LoginDecision {
    Use(Option<Authorization>),
    UpdateFirst(LoginUpdate),
    /// Use the token, and renew it in the background.
    UseAndRenew(Authorization),
}

/// Limit for repeated reads, since other processes may change the login each time.
const MAX_ATTEMPTS: usize = 4;

impl Authorizer {
    pub(super) fn new(
        target: LoginTarget,
        command: String,
        store: Arc<LoginStore>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let (version, checked_at) = (StoredVersion::default(), Instant::now());
        let state = Lock::new(AuthorizerState {
            current: CurrentCredential::Unread,
            version,
            login_id: None,
            checked_at,
            is_unsaved: false,
            last_grant: None,
            accepted: None,
            update: None,
        });
        Arc::new_cyclic(|this| Self { this: this.clone(), target, command, store, tasks, state })
    }

    /// Returns whether the authorizer was made for a server with this URL, headers and `oauth`
    /// entry.
    pub(super) fn is_for(&self, target: &LoginTarget) -> bool {
        self.target.remote == target.remote
    }

    /// Makes the next request read the stored login again.
    pub(super) fn invalidate(&self) {
        let mut state = self.state.lock();
        (state.current, state.version) = (CurrentCredential::Unread, StoredVersion::default());
    }

    fn decide(&self) -> Result<LoginDecision, CredentialError> {
        let mut state = self.state.lock();
        let now = Instant::now();
        // The user may have logged in since the last request was refused.
        let is_due = now.duration_since(state.checked_at) >= CHECK_INTERVAL
            || matches!(state.current, CurrentCredential::LoginRequired { .. });
        if is_due {
            state.checked_at = now;
            if self.store.version(&self.target.key) != state.version {
                return Ok(LoginDecision::UpdateFirst(LoginUpdate::Read));
            }
        }
        match &state.current {
            CurrentCredential::Unread => Ok(LoginDecision::UpdateFirst(LoginUpdate::Read)),
            CurrentCredential::NoLogin => Ok(LoginDecision::Use(None)),
            CurrentCredential::LoginRequired { why } => Err(self.login_required(why)),
            CurrentCredential::Token(token) => {
                let now = SystemTime::now();
                let authorization = token.authorization.clone();
                if token.login.is_expired(now) {
                    Ok(LoginDecision::UpdateFirst(LoginUpdate::Renew))
                } else if token.renew_at.is_some_and(|at| at <= now)
                    && (token.login.can_be_renewed() || self.uses_client_credentials())
                {
                    Ok(LoginDecision::UseAndRenew(authorization))
                } else {
                    Ok(LoginDecision::Use(Some(authorization)))
                }
            }
        }
    }

    fn uses_client_credentials(&self) -> bool {
        self.target.oauth.grant == Grant::ClientCredentials
    }

    fn login_required(&self, why: &str) -> CredentialError {
        CredentialError::LoginRequired { why: why.to_owned(), command: self.command.clone() }
    }

    /// Starts an update, or joins the one in progress. The update continues when its callers are
    /// dropped: a token that was granted must be saved.
    fn start_or_join(&self, work: LoginUpdate) -> SharedUpdate {
        let mut state = self.state.lock();
        if let Some(update) = &state.update {
            return update.clone();
        }
        let this = self.this.clone();
        let spawned = self.tasks.spawn(async move {
            let Some(this) = this.upgrade() else { return Ok(()) };
            // Allows the next update, even if this one panics or is cancelled.
            let _running = RunningUpdate(&this);
            this.perform(work).await
        });
        let ended = |_| Err(CredentialError::Unavailable("dormouse is shutting down".to_owned()));
        let update = async move { spawned.await.unwrap_or_else(ended) }.boxed().shared();
        state.update = Some(update.clone());
        update
    }

    /// Sets the current credentials. `version`: the stored login's version from before it was read.
    fn set_current(&self, login: Option<Credential>, version: StoredVersion) {
        let login = login.filter(Credential::was_granted);
        let token = login.map(|login| CurrentToken::of(login, fastrand::f64()));
        let mut state = self.state.lock();
        state.version = version;
        state.current = match token {
            Some(Some(token)) => CurrentCredential::Token(Arc::new(token)),
            Some(None) => CurrentCredential::LoginRequired { why: LOGIN_INVALID.to_owned() },
            None => CurrentCredential::NoLogin,
        };
    }

    fn require_login(&self, why: &str, version: StoredVersion) {
        let mut state = self.state.lock();
        (state.current, state.version) =
            (CurrentCredential::LoginRequired { why: why.to_owned() }, version);
    }

    /// Uses the current token for a while longer before it is renewed.
    fn postpone_renewal(&self) {
        let mut state = self.state.lock();
        if let CurrentCredential::Token(token) = &state.current {
            let renew_at = Some(SystemTime::now() + RENEWAL_RETRY_DELAY);
            let (login, authorization) = (token.login.clone(), token.authorization.clone());
            state.current =
                CurrentCredential::Token(Arc::new(CurrentToken { login, authorization, renew_at }));
        }
    }

    async fn authorize(&self) -> Result<Option<Authorization>, CredentialError> {
        for _ in 0..MAX_ATTEMPTS {
            match self.decide()? {
                LoginDecision::Use(authorization) => return Ok(authorization),
                LoginDecision::UseAndRenew(authorization) => {
                    drop(self.start_or_join(LoginUpdate::Renew));
                    return Ok(Some(authorization));
                }
                LoginDecision::UpdateFirst(work) => self.start_or_join(work).await?,
            }
        }
        Err(CredentialError::Unavailable("the login file keeps changing".to_owned()))
    }

    /// Returns whether this token was granted recently and the server has never accepted it.
    fn is_on_trial(&self, shown: Option<&Authorization>) -> bool {
        let state = self.state.lock();
        let given = state.last_grant.as_ref().filter(|(token, _)| shown == Some(token));
        given.is_some_and(|(_, since)| since.elapsed() < TRIAL_TIMEOUT)
            && state.accepted.as_ref() != shown
    }

    /// Returns whether the current token differs from the refused one.
    fn has_other_token(&self, refused: Option<&Authorization>) -> bool {
        match &self.state.lock().current {
            CurrentCredential::Token(token) => Some(&token.authorization) != refused,
            _ => false,
        }
    }

    async fn replace_refused(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
        for _ in 0..MAX_ATTEMPTS {
            if self.has_other_token(refused) {
                return Ok(());
            }
            let (refused, challenge) = (refused.cloned(), challenge.clone());
            self.start_or_join(LoginUpdate::Replace { refused, challenge }).await?;
        }
        Err(CredentialError::Refused("the server does not accept any token".to_owned()))
    }
}

const NEW_TOKEN_REFUSED: &str = "the server does not accept a token that was issued just now";
const TOKEN_REFUSED: &str = " (the server does not accept the present one)";
/// Minimum age of a token that the server has never accepted before it is replaced. Without this
/// limit, dormouse would request tokens in an endless loop.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(20);
const LOGIN_INVALID: &str = " (the login is no longer valid)";

fn unavailable(error: impl std::fmt::Display) -> CredentialError {
    CredentialError::Unavailable(error.to_string())
}

/// Allows another update when it is dropped.
struct RunningUpdate<'a>(&'a Authorizer);

impl Drop for RunningUpdate<'_> {
    fn drop(&mut self) {
        self.0.state.lock().update = None;
    }
}

impl CurrentToken {
    fn of(login: Credential, random: f64) -> Option<Self> {
        let authorization = login.authorization()?;
        let renew_at = login.renew_at(random);
        Some(Self { login, authorization, renew_at })
    }
}

impl Credentials for Authorizer {
    fn authorization(
        &self,
    ) -> CredentialFuture<'_, Result<Option<Authorization>, CredentialError>> {
        Box::pin(self.authorize())
    }

    fn refused<'a>(
        &'a self,
        shown: Option<&'a Authorization>,
        challenge: &'a Challenge,
    ) -> CredentialFuture<'a, Result<(), CredentialError>> {
        Box::pin(async move {
            match challenge.status {
                403 => self.step_up(shown, challenge).await,
                _ => self.replace_refused(shown, challenge).await,
            }
        })
    }

    fn accepted(&self, shown: &Authorization) {
        let accepted = &mut self.state.lock().accepted;
        if accepted.as_ref() != Some(shown) {
            *accepted = Some(shown.clone());
        }
    }

    fn changed(&self) -> CredentialFuture<'_, ()> {
        Box::pin(async {
            let known = self.state.lock().login_id.clone();
            self.store.wait_for_login(&self.target.key, known.as_deref(), &[]).await;
            self.invalidate();
        })
    }
}
