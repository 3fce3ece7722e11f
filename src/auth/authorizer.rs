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
    Site,
    credential::Credential,
    store::{LOOK, Stamp, Store},
};
use crate::{
    base::Lock,
    config::Grant,
    wire::credentials::{Authorization, Challenge, CredentialError, CredentialFuture, Credentials},
};

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
    memory: Lock<Memory>,
}

struct Memory {
    shown: Shown,
    /// Of the kept login, when it was last read.
    stamp: Stamp,
    /// Which one that was.
    login_id: Option<String>,
    looked_at: Instant,
    /// Whether what is shown is newer than what is kept, which could not be replaced.
    is_unkept: bool,
    /// What we were given last, and when.
    given: Option<(Authorization, Instant)>,
    /// What the server took last.
    accepted: Option<Authorization>,
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
    Replace { refused: Option<Authorization>, challenge: Challenge },
}

/// What a look comes to.
enum Look {
    Show(Option<Authorization>),
    First(Task),
    /// Show it, and meanwhile renew it.
    ShowAndRenew(Authorization),
}

/// Somebody else may change the login whenever it is looked at; but not for ever.
const MAX_LOOKS: usize = 4;

impl Authorizer {
    pub(super) fn new(
        site: Site,
        command: String,
        store: Arc<Store>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let (stamp, looked_at) = (Stamp::default(), Instant::now());
        let memory = Lock::new(Memory {
            shown: Shown::Unknown,
            stamp,
            login_id: None,
            looked_at,
            is_unkept: false,
            given: None,
            accepted: None,
            flight: None,
        });
        Arc::new_cyclic(|this| Self { this: this.clone(), site, command, store, tasks, memory })
    }

    /// Whether it is for a server that is reached, and logged in to, like this.
    pub(super) fn is_for(&self, site: &Site) -> bool {
        self.site.remote == site.remote
    }

    /// Reads anew what is kept, when it is next looked at.
    pub(super) fn forget(&self) {
        let mut memory = self.memory.lock();
        (memory.shown, memory.stamp) = (Shown::Unknown, Stamp::default());
    }

    fn look(&self) -> Result<Look, CredentialError> {
        let mut memory = self.memory.lock();
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
        let mut memory = self.memory.lock();
        if let Some(flight) = &memory.flight {
            return flight.clone();
        }
        let this = self.this.clone();
        let flying = self.tasks.spawn(async move {
            let Some(this) = this.upgrade() else { return Ok(()) };
            // However it ends, the next one may begin.
            let _landing = Landing(&this);
            this.perform(task).await
        });
        let ended = |_| Err(CredentialError::Unavailable("dormouse is shutting down".to_owned()));
        let flight = async move { flying.await.unwrap_or_else(ended) }.boxed().shared();
        memory.flight = Some(flight.clone());
        flight
    }

    /// `stamp`: of the kept login, before it was read.
    fn show(&self, login: Option<Credential>, stamp: Stamp) {
        let login = login.filter(Credential::was_given);
        let token = login.map(|login| Token::of(login, fastrand::f64()));
        let mut memory = self.memory.lock();
        memory.stamp = stamp;
        memory.shown = match token {
            Some(Some(token)) => Shown::Token(Arc::new(token)),
            Some(None) => Shown::Wanting { why: LOST.to_owned() },
            None => Shown::Nothing,
        };
    }

    fn want(&self, why: &str, stamp: Stamp) {
        let mut memory = self.memory.lock();
        (memory.shown, memory.stamp) = (Shown::Wanting { why: why.to_owned() }, stamp);
    }

    /// Shows what there is for a while longer.
    fn postpone(&self) {
        let mut memory = self.memory.lock();
        if let Shown::Token(token) = &memory.shown {
            let renew_at = Some(SystemTime::now() + PAUSE);
            let (login, authorization) = (token.login.clone(), token.authorization.clone());
            memory.shown = Shown::Token(Arc::new(Token { login, authorization, renew_at }));
        }
    }

    async fn authorize(&self) -> Result<Option<Authorization>, CredentialError> {
        for _ in 0..MAX_LOOKS {
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

    /// Whether we were given this token a moment ago, and the server has never taken it.
    fn is_on_trial(&self, shown: Option<&Authorization>) -> bool {
        let memory = self.memory.lock();
        let given = memory.given.as_ref().filter(|(token, _)| shown == Some(token));
        given.is_some_and(|(_, since)| since.elapsed() < TRIAL) && memory.accepted.as_ref() != shown
    }

    /// Whether something else is shown by now than what was refused.
    fn shows_other(&self, refused: Option<&Authorization>) -> bool {
        match &self.memory.lock().shown {
            Shown::Token(token) => Some(&token.authorization) != refused,
            _ => false,
        }
    }

    async fn replace_refused(
        &self,
        refused: Option<&Authorization>,
        challenge: &Challenge,
    ) -> Result<(), CredentialError> {
        for _ in 0..MAX_LOOKS {
            if self.shows_other(refused) {
                return Ok(());
            }
            let (refused, challenge) = (refused.cloned(), challenge.clone());
            self.fly(Task::Replace { refused, challenge }).await?;
        }
        Err(CredentialError::Refused("it does not accept any token".to_owned()))
    }
}

const ON_TRIAL: &str = "it does not accept the token that was given a moment ago";
const NOT_ACCEPTED: &str = " (it does not accept the one that there is)";
/// A token that we were given, and that the server has not taken so far, is not replaced before this, lest it be done
/// without end.
const TRIAL: Duration = Duration::from_secs(20);
const LOST: &str = " (the login is not valid any more)";

fn unavailable(error: impl std::fmt::Display) -> CredentialError {
    CredentialError::Unavailable(error.to_string())
}

/// Makes room for another flight.
struct Landing<'a>(&'a Authorizer);

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.0.memory.lock().flight = None;
    }
}

impl Token {
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
        let accepted = &mut self.memory.lock().accepted;
        if accepted.as_ref() != Some(shown) {
            *accepted = Some(shown.clone());
        }
    }

    fn changed(&self) -> CredentialFuture<'_, ()> {
        Box::pin(async {
            let known = self.memory.lock().login_id.clone();
            self.store.logged_in(&self.site.slot, known.as_deref(), &[]).await;
            self.forget();
        })
    }
}
