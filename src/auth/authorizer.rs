//! What one server's requests show: kept in memory, renewed before it expires, and renewed once however many need it, in
//! however many processes.

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

use super::{
    LoginTarget,
    credential::Credential,
    store::{CHECK_INTERVAL, FileStamp, LoginStore},
};
use crate::{
    base::Lock,
    config::Grant,
    wire::credentials::{Authorization, Challenge, CredentialError, Credentials, Pending},
};

/// A renewal that was early, and failed, is tried again after this.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Gives one server's requests what they show.
pub(super) struct Authorizer {
    this: Weak<Self>,
    target: LoginTarget,
    /// By which somebody logs in.
    command: String,
    store: Arc<LoginStore>,
    tasks: TaskTracker,
    state: Lock<AuthorizerState>,
}

struct AuthorizerState {
    current: CurrentCredential,
    /// Of the kept login, when it was last read.
    stamp: FileStamp,
    /// Which one that was.
    login_id: Option<String>,
    checked_at: Instant,
    /// Whether what is shown is newer than what is kept, which could not be replaced.
    is_unsaved: bool,
    /// What we were given last, and when.
    last_grant: Option<(Authorization, Instant)>,
    /// What the server took last.
    accepted: Option<Authorization>,
    /// What is being done about it, which everyone shares.
    update: Option<SharedUpdate>,
}

/// What there is to show.
#[derive(Clone)]
enum CurrentCredential {
    /// Nobody has looked yet.
    Unread,
    /// Nothing; and the server has asked for nothing so far.
    NoLogin,
    /// Nothing that the server would accept. `why`: the end of a sentence, for whoever has to log in.
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

/// What can be done about what is shown.
enum LoginUpdate {
    /// Read what is kept.
    Read,
    /// Renew what has expired, or soon will.
    Renew,
    /// Get something else than what was refused. `challenge`: of the server.
    Replace { refused: Option<Authorization>, challenge: Challenge },
}

/// What a look comes to.
enum LoginDecision {
    Use(Option<Authorization>),
    UpdateFirst(LoginUpdate),
    /// Show it, and meanwhile renew it.
    UseAndRenew(Authorization),
}

/// Somebody else may change the login whenever it is looked at; but not for ever.
const MAX_ATTEMPTS: usize = 4;

impl Authorizer {
    pub(super) fn new(
        target: LoginTarget,
        command: String,
        store: Arc<LoginStore>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let (stamp, checked_at) = (FileStamp::default(), Instant::now());
        let state = Lock::new(AuthorizerState {
            current: CurrentCredential::Unread,
            stamp,
            login_id: None,
            checked_at,
            is_unsaved: false,
            last_grant: None,
            accepted: None,
            update: None,
        });
        Arc::new_cyclic(|this| Self { this: this.clone(), target, command, store, tasks, state })
    }

    /// Whether it is for a server that is reached, and logged in to, like this.
    pub(super) fn is_for(&self, target: &LoginTarget) -> bool {
        self.target.remote == target.remote
    }

    /// Reads anew what is kept, when it is next looked at.
    pub(super) fn invalidate(&self) {
        let mut state = self.state.lock();
        (state.current, state.stamp) = (CurrentCredential::Unread, FileStamp::default());
    }

    fn decide(&self) -> Result<LoginDecision, CredentialError> {
        let mut state = self.state.lock();
        let now = Instant::now();
        // Who is refused may have logged in a moment ago.
        let is_due = now.duration_since(state.checked_at) >= CHECK_INTERVAL
            || matches!(state.current, CurrentCredential::LoginRequired { .. });
        if is_due {
            state.checked_at = now;
            if self.store.stamp(&self.target.key) != state.stamp {
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
                } else if token.renew_at.is_some_and(|at| at <= now) && self.is_renewable(token) {
                    Ok(LoginDecision::UseAndRenew(authorization))
                } else {
                    Ok(LoginDecision::Use(Some(authorization)))
                }
            }
        }
    }

    fn is_renewable(&self, token: &CurrentToken) -> bool {
        token.login.can_be_renewed() || self.uses_client_credentials()
    }

    fn uses_client_credentials(&self) -> bool {
        self.target.oauth.grant == Grant::ClientCredentials
    }

    fn login_required(&self, why: &str) -> CredentialError {
        CredentialError::LoginRequired { why: why.to_owned(), command: self.command.clone() }
    }

    /// Does something about what is shown, or joins in what is being done already. It goes on when whoever asked for it
    /// has gone: a token that was given must be kept.
    fn start_or_join(&self, task: LoginUpdate) -> SharedUpdate {
        let mut state = self.state.lock();
        if let Some(update) = &state.update {
            return update.clone();
        }
        let this = self.this.clone();
        let spawned = self.tasks.spawn(async move {
            let Some(this) = this.upgrade() else { return Ok(()) };
            // However it ends, the next one may begin.
            let _running = RunningUpdate(&this);
            this.perform(task).await
        });
        let ended = |_| Err(CredentialError::Unavailable("dormouse is shutting down".to_owned()));
        let update = async move { spawned.await.unwrap_or_else(ended) }.boxed().shared();
        state.update = Some(update.clone());
        update
    }

    /// `stamp`: of the kept login, before it was read.
    fn set_current(&self, login: Option<Credential>, stamp: FileStamp) {
        let login = login.filter(Credential::was_granted);
        let token = login.map(|login| CurrentToken::of(login, fastrand::f64()));
        let mut state = self.state.lock();
        state.stamp = stamp;
        state.current = match token {
            Some(Some(token)) => CurrentCredential::Token(Arc::new(token)),
            Some(None) => CurrentCredential::LoginRequired { why: LOGIN_INVALID.to_owned() },
            None => CurrentCredential::NoLogin,
        };
    }

    fn require_login(&self, why: &str, stamp: FileStamp) {
        let mut state = self.state.lock();
        (state.current, state.stamp) =
            (CurrentCredential::LoginRequired { why: why.to_owned() }, stamp);
    }

    /// Shows what there is for a while longer.
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
                LoginDecision::UpdateFirst(task) => self.start_or_join(task).await?,
            }
        }
        Err(CredentialError::Unavailable("it changes all the time".to_owned()))
    }

    /// Whether we were given this token a moment ago, and the server has never taken it.
    fn is_on_trial(&self, shown: Option<&Authorization>) -> bool {
        let state = self.state.lock();
        let given = state.last_grant.as_ref().filter(|(token, _)| shown == Some(token));
        given.is_some_and(|(_, since)| since.elapsed() < TRIAL_TIMEOUT)
            && state.accepted.as_ref() != shown
    }

    /// Whether something else is shown by now than what was refused.
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
        Err(CredentialError::Refused("it does not accept any token".to_owned()))
    }
}

const NEW_TOKEN_REFUSED: &str = "it does not accept the token that was given a moment ago";
const TOKEN_REFUSED: &str = " (it does not accept the one that there is)";
/// A token that we were given, and that the server has not taken so far, is not replaced before this, lest it be done
/// without end.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(20);
const LOGIN_INVALID: &str = " (the login is not valid any more)";

fn unavailable(error: impl std::fmt::Display) -> CredentialError {
    CredentialError::Unavailable(error.to_string())
}

/// Makes room for another flight.
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

    fn accepted(&self, shown: &Authorization) {
        let accepted = &mut self.state.lock().accepted;
        if accepted.as_ref() != Some(shown) {
            *accepted = Some(shown.clone());
        }
    }

    fn changed(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let known = self.state.lock().login_id.clone();
            self.store.wait_for_login(&self.target.key, known.as_deref(), &[]).await;
            self.invalidate();
        })
    }
}
