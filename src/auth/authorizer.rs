//! The credentials that one server's requests carry: held in memory, renewed before they expire,
//! and renewed once however many requests and processes need them.

mod renewal;
mod renewal_doubt;
mod stored_login;
mod token_cell;

use std::{
    io,
    sync::{Arc, Weak},
    time::SystemTime,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio_util::task::TaskTracker;

use super::{LoginTarget, login_store::LoginStore, login_store_error::LoginStoreError};
use crate::{
    base::Lock,
    config::Grant,
    wire::credentials::{Authorization, Challenge, CredentialError, CredentialFuture, Credentials},
};
use renewal_doubt::RenewalDoubt;
use token_cell::{CurrentCredential, LOGIN_EXPIRED, TokenCell};

/// Supplies the credentials for one server's requests.
pub(super) struct Authorizer {
    this: Weak<Self>,
    target: LoginTarget,
    /// What a user has to do who is not logged in.
    remedy: String,
    store: Arc<LoginStore>,
    tasks: TaskTracker,
    token: TokenCell,
    doubt: RenewalDoubt,
    /// The update in progress, which all requests share.
    update: Lock<Option<SharedUpdate>>,
}

type SharedUpdate = Shared<BoxFuture<'static, Result<(), CredentialError>>>;

/// A way to update the current credentials.
enum LoginUpdate {
    /// Reads the stored login.
    Read,
    /// Renews a token that has expired or soon will.
    Renew,
    /// Stores the login in use again, which the store has lost or could not take.
    Restore,
    /// Replaces a token that the server refused with `challenge`.
    Replace { refused: Option<Authorization>, challenge: Challenge },
}

/// The next step of a request that needs credentials.
enum LoginDecision {
    Use(Option<Authorization>),
    /// Another process may have changed the login since its version was last looked up.
    LookUpVersionFirst,
    UpdateFirst(LoginUpdate),
    /// Use the token, and renew it in the background.
    UseAndRenew(Authorization),
}

/// Limit for repeated reads, since other processes may change the login each time.
const MAX_ATTEMPTS: usize = 5;

impl Authorizer {
    pub(super) fn new(
        target: LoginTarget,
        remedy: String,
        store: Arc<LoginStore>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let (token, update) = (TokenCell::new(store.loses_logins()), Lock::default());
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            target,
            remedy,
            store,
            tasks,
            token,
            doubt: RenewalDoubt::default(),
            update,
        })
    }

    /// Returns whether the authorizer was made for a server with this URL, headers and `oauth`
    /// entry.
    pub(super) fn is_for(&self, target: &LoginTarget) -> bool {
        self.target.remote == target.remote
    }

    /// Makes the next request read the stored login again.
    pub(super) fn invalidate(&self) {
        self.token.invalidate();
    }

    /// `is_looked_up`: the version of the login was looked up for this request.
    fn decide(&self, is_looked_up: bool) -> Result<LoginDecision, CredentialError> {
        let known = |max_age| self.store.known_version(&self.target.key, max_age);
        let Some(current) = self.token.current(is_looked_up, known) else {
            return Ok(LoginDecision::LookUpVersionFirst);
        };
        if self.token.is_restoration_due() {
            drop(self.start_or_join(LoginUpdate::Restore));
        }
        match current {
            CurrentCredential::Unread => Ok(LoginDecision::UpdateFirst(LoginUpdate::Read)),
            CurrentCredential::NoLogin => Ok(LoginDecision::Use(None)),
            CurrentCredential::LoginRequired { why } => Err(self.login_required(&why)),
            CurrentCredential::Expired(_) => Err(self.login_required(LOGIN_EXPIRED)),
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
        CredentialError::LoginRequired { why: why.to_owned(), remedy: self.remedy.clone() }
    }

    /// Starts an update, or joins the one in progress. The update continues when its callers are
    /// dropped: a token that was granted must be saved.
    fn start_or_join(&self, work: LoginUpdate) -> SharedUpdate {
        let mut running = self.update.lock();
        if let Some(update) = running.as_ref() {
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
        *running = Some(update.clone());
        update
    }

    async fn authorize(&self) -> Result<Option<Authorization>, CredentialError> {
        let mut is_looked_up = false;
        for _ in 0..MAX_ATTEMPTS {
            match self.decide(is_looked_up)? {
                LoginDecision::Use(authorization) => return Ok(authorization),
                LoginDecision::LookUpVersionFirst => {
                    // Without the store, the login in memory is used.
                    let _ = self.stored_version().await;
                    is_looked_up = true;
                }
                LoginDecision::UseAndRenew(authorization) => {
                    drop(self.start_or_join(LoginUpdate::Renew));
                    return Ok(Some(authorization));
                }
                LoginDecision::UpdateFirst(work) => self.start_or_join(work).await?,
            }
        }
        Err(CredentialError::Unavailable("the login file keeps changing".to_owned()))
    }

    async fn replace_refused(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
        for _ in 0..MAX_ATTEMPTS {
            if self.token.is_other(refused) {
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

fn unavailable(error: impl std::fmt::Display) -> CredentialError {
    CredentialError::Unavailable(error.to_string())
}

fn store_error(error: LoginStoreError) -> CredentialError {
    match error {
        LoginStoreError::Io { ref cause, .. } if cause.kind() == io::ErrorKind::NotConnected => {
            CredentialError::StoreOutage(error.to_string())
        }
        error => unavailable(error),
    }
}

/// Allows another update when it is dropped.
struct RunningUpdate<'a>(&'a Authorizer);

impl Drop for RunningUpdate<'_> {
    fn drop(&mut self) {
        *self.0.update.lock() = None;
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
        self.token.note_accepted(shown);
    }

    fn changed(&self) -> CredentialFuture<'_, ()> {
        Box::pin(async {
            let known = self.token.login_id();
            self.store.wait_for_login(&self.target.key, known.as_deref(), &[]).await;
            self.invalidate();
        })
    }
}
