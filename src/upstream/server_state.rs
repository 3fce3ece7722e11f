//! The life of a server (docs/design/lifecycle.md): one enum, and a pure function from state and
//! event to the next state and its effects.

#[cfg(test)]
mod laws;
#[cfg(test)]
pub(super) mod model;
#[cfg(test)]
mod sequences;
#[cfg(test)]
mod tests;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::AttemptError;
use crate::{base::Backoff, config::Startup};

/// Consecutive failed loads after which a server is no longer offered.
pub(super) const MAX_STRIKES: u8 = 3;
/// Time connected after which earlier failures of a server are forgotten.
const MIN_STABLE_UPTIME: Duration = Duration::from_mins(1);
/// Time since a failure within which a call does not try the server again.
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The delays between attempts to connect an eager server.
const RETRY_BACKOFF: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(5) };

/// The state of a server. `C` is the connection, so that a state without one cannot use it.
#[derive(Debug)]
pub(super) enum ServerState<C> {
    /// Never loaded in this run.
    Unloaded { strikes: u8 },
    /// An attempt is in progress; all callers that want the server share it.
    Loading(AttemptPurpose),
    /// Connected, and its catalog is live. `failures`: consecutive failed attempts and short lives
    /// before this one.
    Awake { connection: C, since: Instant, failures: u32 },
    /// Its catalog is live, and it is not connected.
    Asleep { last_failure: Option<FailedAttempt> },
    /// An eager server that cannot be reached now; the next attempt is at `until`.
    BackingOff { failures: u32, until: Instant, last_failure: Option<FailedAttempt> },
    /// The server demands a login. `purpose`: the attempt to make after the login.
    AwaitingLogin { purpose: AttemptPurpose },
    /// Too many loads failed.
    Evicted,
    /// `"enabled": false`
    Disabled,
    /// Replaced or removed in the config, and connected until nothing is in flight.
    Retiring { connection: C },
    /// Handles no more events. The actor closes `remaining` and returns.
    Ended { remaining: Option<C> },
}

/// The purpose of an attempt, which decides what its failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptPurpose {
    /// The first load of a lazy server: a failure is a strike.
    Load { strikes: u8 },
    /// The catalog is live already: a failure is only an error for the callers.
    Wake,
    /// An eager server: every failure is followed by another attempt.
    Eager { failures: u32 },
    /// The catalog of a hybrid server is unknown: it is connected once to learn it. A failure is a
    /// strike.
    Learn { strikes: u8 },
    /// The catalog of a hybrid server has expired: it is connected to compare.
    Relearn,
}

impl AttemptPurpose {
    /// Returns whether the server's lists are read before any caller gets the connection.
    pub(super) fn reads_lists(self) -> bool {
        self != Self::Wake
    }

    /// Returns the consecutive failures, for servers that are retried indefinitely.
    fn failures_before(self) -> u32 {
        match self {
            Self::Eager { failures } => failures,
            _ => 0,
        }
    }

    /// Returns whether only the server's lists are needed.
    pub(super) fn is_learning(self) -> bool {
        matches!(self, Self::Learn { .. } | Self::Relearn)
    }
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub(super) struct FailedAttempt {
    pub(super) at: Instant,
    pub(super) cause: Arc<AttemptError>,
}

#[derive(Debug)]
pub(super) enum ServerEvent<C> {
    /// A caller needs the server.
    Wanted,
    /// The server's catalog is unknown or has expired.
    CatalogWanted,
    /// The server's catalog is known from another run.
    Recalled,
    Connected(C),
    /// Connected, in a way that suits no waiting host: in the other era, or with too few declared
    /// capabilities.
    Mismatched(C),
    Failed(Arc<AttemptError>),
    /// The process exited, or closed its output.
    Died,
    /// The connection has been unused for long enough.
    Idled,
    /// The next attempt of an eager server is due.
    RetryDue,
    /// A user has logged in, here or elsewhere.
    LoggedIn,
    /// The connection is not the one that its first host needs.
    Unsuitable,
    /// The server was replaced or removed in the config.
    Retired,
    /// The instance is not needed any more: dormouse ends, or the host that owns it has left.
    Stopped,
}

/// The effects that the actor performs, in this order.
#[derive(Debug)]
pub(super) enum Effect<C> {
    StartAttempt(AttemptPurpose),
    /// End this connection.
    Close(C),
    /// Clean up a connection that ended by itself, and report how it ended.
    Bury(C),
    /// Publish the catalog, then give the connection to the waiting callers.
    Admit(AttemptPurpose),
    /// Refuse the waiting callers.
    Refuse(LoadRefusal),
    PublishUnreachable(Arc<AttemptError>),
    PublishAwaitingLogin(Arc<AttemptError>),
    /// The server can be offered again.
    PublishOffered,
    PublishEvicted(Arc<AttemptError>),
    /// Drop the catalog, since handles of a server that has ended may be held for long.
    ForgetCatalog,
}

#[derive(Clone, Debug)]
pub(super) enum LoadRefusal {
    Failed {
        cause: Arc<AttemptError>,
        attempts_left: u8,
    },
    GivenUp {
        cause: Arc<AttemptError>,
    },
    Unreachable {
        cause: Arc<AttemptError>,
    },
    LoginRequired {
        cause: Arc<AttemptError>,
    },
    /// The server was retired or stopped.
    Ending,
    Gone,
}

impl<C> ServerState<C> {
    /// Returns the first state. `is_known`: another instance of the server has shown its catalog.
    pub(super) fn initial(enabled: bool, is_known: bool) -> Self {
        match (enabled, is_known) {
            (false, _) => Self::Disabled,
            (true, true) => Self::Asleep { last_failure: None },
            (true, false) => Self::Unloaded { strikes: 0 },
        }
    }

    /// Returns the connection, if there is one that can be used.
    pub(super) fn connection(&self) -> Option<&C> {
        match self {
            Self::Awake { connection, .. } | Self::Retiring { connection } => Some(connection),
            _ => None,
        }
    }

    /// Applies an event. `random` in 0..1 spreads retries.
    pub(super) fn step(
        self,
        event: ServerEvent<C>,
        startup: Startup,
        now: Instant,
        random: f64,
    ) -> (Self, Vec<Effect<C>>) {
        use ServerEvent::{
            CatalogWanted, Connected, Died, Failed, Idled, LoggedIn, Mismatched, Recalled, Retired,
            RetryDue, Stopped, Unsuitable, Wanted,
        };
        match (self, event) {
            (state @ (Self::Retiring { .. } | Self::Ended { .. }), event) => state.end_with(event),
            (Self::Awake { connection, .. }, Retired) => {
                (Self::Retiring { connection }, Vec::new())
            }
            (Self::Awake { connection, .. }, Stopped) => end(Some(connection), []),
            (_, Retired) => end(None, [Effect::ForgetCatalog]),
            (_, Stopped) => end(None, []),
            (state, Wanted) => state.wanted(startup, now),
            (Self::Unloaded { .. }, Recalled) => (Self::Asleep { last_failure: None }, Vec::new()),
            (Self::Unloaded { strikes }, CatalogWanted) => start(AttemptPurpose::Learn { strikes }),
            (Self::Asleep { .. }, CatalogWanted) => start(AttemptPurpose::Relearn),
            (Self::BackingOff { failures, .. }, RetryDue) => {
                start(AttemptPurpose::Eager { failures })
            }
            (Self::AwaitingLogin { purpose }, LoggedIn) => after_login(purpose, startup),
            (Self::Loading(purpose), Connected(connection)) => {
                let failures = purpose.failures_before();
                (Self::Awake { connection, since: now, failures }, vec![Effect::Admit(purpose)])
            }
            (Self::Loading(purpose), Mismatched(connection)) => reconnect(connection, purpose),
            (Self::Loading(purpose), Failed(cause)) => after_failure(purpose, cause, now, random),
            (Self::Awake { connection, since, failures }, Died) => {
                let state = after_death(startup, since, failures, now, random);
                (state, vec![Effect::Bury(connection)])
            }
            (Self::Awake { connection, .. }, Idled) if startup != Startup::Eager => {
                (Self::Asleep { last_failure: None }, vec![Effect::Close(connection)])
            }
            (Self::Awake { connection, since, failures }, Unsuitable) => {
                let failures = if is_stable(since, now) { 0 } else { failures };
                reconnect(connection, reconnect_purpose(startup, failures))
            }
            // A connection that no caller waits for must not stay open.
            (state, Connected(connection) | Mismatched(connection)) => {
                (state, vec![Effect::Close(connection)])
            }
            (
                state,
                CatalogWanted | Recalled | Failed(_) | Died | Idled | RetryDue | LoggedIn
                | Unsuitable,
            ) => (state, Vec::new()),
        }
    }

    /// Starts an attempt for a caller, or refuses it.
    fn wanted(self, startup: Startup, now: Instant) -> (Self, Vec<Effect<C>>) {
        if let Self::Asleep { last_failure: Some(failure) }
        | Self::BackingOff { last_failure: Some(failure), .. } = &self
            && failure.is_fresh(now)
        {
            let refusal = LoadRefusal::Unreachable { cause: failure.cause.clone() };
            return (self, vec![Effect::Refuse(refusal)]);
        }
        match self {
            Self::Unloaded { strikes } => start(match startup {
                Startup::Lazy | Startup::Hybrid => AttemptPurpose::Load { strikes },
                Startup::Eager => AttemptPurpose::Eager { failures: 0 },
            }),
            Self::Asleep { .. } => start(reconnect_purpose(startup, 0)),
            Self::BackingOff { failures, .. } => start(AttemptPurpose::Eager { failures }),
            Self::AwaitingLogin { purpose } => start(purpose),
            Self::Evicted | Self::Disabled => (self, vec![Effect::Refuse(LoadRefusal::Gone)]),
            // The actor has a caller wait, or gives it the connection.
            Self::Loading(_) | Self::Awake { .. } | Self::Retiring { .. } | Self::Ended { .. } => {
                (self, Vec::new())
            }
        }
    }

    /// Applies an event to a server that is retiring or has ended.
    fn end_with(self, event: ServerEvent<C>) -> (Self, Vec<Effect<C>>) {
        match (self, event) {
            (Self::Retiring { connection }, ServerEvent::Idled | ServerEvent::Stopped) => {
                end(Some(connection), [Effect::ForgetCatalog])
            }
            (Self::Retiring { connection }, ServerEvent::Died) => {
                end(None, [Effect::Bury(connection), Effect::ForgetCatalog])
            }
            (state @ Self::Ended { .. }, ServerEvent::Wanted) => {
                (state, vec![Effect::Refuse(LoadRefusal::Ending)])
            }
            (state, ServerEvent::Connected(connection) | ServerEvent::Mismatched(connection)) => {
                (state, vec![Effect::Close(connection)])
            }
            (
                state,
                ServerEvent::Wanted
                | ServerEvent::CatalogWanted
                | ServerEvent::Recalled
                | ServerEvent::Failed(_)
                | ServerEvent::Died
                | ServerEvent::Idled
                | ServerEvent::RetryDue
                | ServerEvent::LoggedIn
                | ServerEvent::Unsuitable
                | ServerEvent::Retired
                | ServerEvent::Stopped,
            ) => (state, Vec::new()),
        }
    }
}

/// Ends a server. Its callers are refused after the other effects.
fn end<C, const N: usize>(
    remaining: Option<C>,
    effects: [Effect<C>; N],
) -> (ServerState<C>, Vec<Effect<C>>) {
    let refused = Effect::Refuse(LoadRefusal::Ending);
    (ServerState::Ended { remaining }, effects.into_iter().chain([refused]).collect())
}

/// Replaces a connection that does not suit its host.
fn reconnect<C>(connection: C, purpose: AttemptPurpose) -> (ServerState<C>, Vec<Effect<C>>) {
    let effects = vec![Effect::Close(connection), Effect::StartAttempt(purpose)];
    (ServerState::Loading(purpose), effects)
}

/// Returns the purpose of an attempt for a server whose catalog is live.
fn reconnect_purpose(startup: Startup, failures: u32) -> AttemptPurpose {
    match startup {
        Startup::Lazy | Startup::Hybrid => AttemptPurpose::Wake,
        Startup::Eager => AttemptPurpose::Eager { failures },
    }
}

fn start<C>(purpose: AttemptPurpose) -> (ServerState<C>, Vec<Effect<C>>) {
    (ServerState::Loading(purpose), vec![Effect::StartAttempt(purpose)])
}

/// Resumes the attempt that a missing login has stopped. A lazy server waits to be wanted; the
/// catalog of a hybrid one is learned, whoever wanted it.
fn after_login<C>(purpose: AttemptPurpose, startup: Startup) -> (ServerState<C>, Vec<Effect<C>>) {
    match purpose {
        AttemptPurpose::Load { strikes } if startup == Startup::Hybrid => {
            start(AttemptPurpose::Learn { strikes })
        }
        AttemptPurpose::Load { strikes } => {
            (ServerState::Unloaded { strikes }, vec![Effect::PublishOffered])
        }
        AttemptPurpose::Wake => (ServerState::Asleep { last_failure: None }, Vec::new()),
        AttemptPurpose::Eager { .. } | AttemptPurpose::Learn { .. } | AttemptPurpose::Relearn => {
            start(purpose)
        }
    }
}

fn after_death<C>(
    startup: Startup,
    since: Instant,
    failures: u32,
    now: Instant,
    random: f64,
) -> ServerState<C> {
    if startup != Startup::Eager {
        return ServerState::Asleep { last_failure: None };
    }
    let failures = if is_stable(since, now) { 1 } else { failures.saturating_add(1) };
    ServerState::BackingOff {
        failures,
        until: now + RETRY_BACKOFF.delay(failures.saturating_sub(1), random),
        last_failure: None,
    }
}

/// Returns whether a connection has lasted long enough for earlier failures to be forgotten.
fn is_stable(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= MIN_STABLE_UPTIME
}

fn after_failure<C>(
    purpose: AttemptPurpose,
    cause: Arc<AttemptError>,
    now: Instant,
    random: f64,
) -> (ServerState<C>, Vec<Effect<C>>) {
    if cause.wants_login() {
        let effects = vec![
            Effect::PublishAwaitingLogin(cause.clone()),
            Effect::Refuse(LoadRefusal::LoginRequired { cause }),
        ];
        return (ServerState::AwaitingLogin { purpose }, effects);
    }
    let failure = FailedAttempt { at: now, cause: cause.clone() };
    match purpose {
        AttemptPurpose::Load { strikes } if cause.is_no_strike() => {
            let refusal = LoadRefusal::Unreachable { cause };
            (ServerState::Unloaded { strikes }, vec![Effect::Refuse(refusal)])
        }
        AttemptPurpose::Learn { strikes } if cause.is_no_strike() => {
            let effects = vec![
                Effect::PublishUnreachable(cause.clone()),
                Effect::Refuse(LoadRefusal::Unreachable { cause }),
            ];
            (ServerState::Unloaded { strikes }, effects)
        }
        AttemptPurpose::Load { strikes } | AttemptPurpose::Learn { strikes }
            if strikes + 1 >= MAX_STRIKES =>
        {
            let refusal = LoadRefusal::GivenUp { cause: cause.clone() };
            (ServerState::Evicted, vec![Effect::PublishEvicted(cause), Effect::Refuse(refusal)])
        }
        AttemptPurpose::Load { strikes } => {
            let strikes = strikes + 1;
            let refusal = LoadRefusal::Failed { cause, attempts_left: MAX_STRIKES - strikes };
            (ServerState::Unloaded { strikes }, vec![Effect::Refuse(refusal)])
        }
        AttemptPurpose::Learn { strikes } => {
            let strikes = strikes + 1;
            let effects = vec![
                Effect::PublishUnreachable(cause.clone()),
                Effect::Refuse(LoadRefusal::Failed { cause, attempts_left: MAX_STRIKES - strikes }),
            ];
            (ServerState::Unloaded { strikes }, effects)
        }
        AttemptPurpose::Wake | AttemptPurpose::Relearn => {
            let refusal = LoadRefusal::Unreachable { cause };
            (ServerState::Asleep { last_failure: Some(failure) }, vec![Effect::Refuse(refusal)])
        }
        AttemptPurpose::Eager { failures } => {
            let failures = failures.saturating_add(1);
            let effects = vec![
                Effect::PublishUnreachable(cause.clone()),
                Effect::Refuse(LoadRefusal::Unreachable { cause }),
            ];
            let until = now + RETRY_BACKOFF.delay(failures.saturating_sub(1), random);
            (ServerState::BackingOff { failures, until, last_failure: Some(failure) }, effects)
        }
    }
}

impl FailedAttempt {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < MIN_RETRY_INTERVAL
    }
}
