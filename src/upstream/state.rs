//! The life of a server (DESIGN.md section 2): one enum, and a pure function from state and event to
//! the next state and what is to be done.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{AttemptError, backoff};
use crate::config::Startup;

/// Failed loads in a row after which a server is no longer offered.
pub(super) const STRIKES: u8 = 3;
/// A server that stayed connected for this long has got over what made it fail before.
const STEADY: Duration = Duration::from_mins(1);
/// A server that failed less than this ago is not tried again for a call.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// `C` is the connection, so that it can exist in no other state than `Awake`.
#[derive(Debug)]
pub(super) enum State<C> {
    /// Never loaded in this run.
    Unloaded { strikes: u8 },
    /// One attempt is under way; everyone who wants the server shares it.
    Loading(Attempt),
    /// Connected, and its catalog is live. `failures`: attempts and short lives in a row before this one.
    Awake { connection: C, since: Instant, failures: u32 },
    /// Its catalog is live, and nothing is connected.
    Asleep { last_failure: Option<Failure> },
    /// Eager, and cannot be reached now; it is tried again at `until`.
    BackingOff { failures: u32, until: Instant, last_failure: Option<Failure> },
    /// It wants a login, and nobody is logged in. `attempt`: what is to be done when somebody is.
    AwaitingLogin { attempt: Attempt },
    /// Too many loads failed.
    Evicted,
    /// `"enabled": false`
    Disabled,
}

/// What an attempt is for, which decides what its failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The first load of a lazy server: a failure is a strike.
    Load { strikes: u8 },
    /// The catalog is live already: a failure is an error for those who asked, and no more.
    Wake,
    /// An eager server: a failure is followed by another attempt, for ever.
    Eager { failures: u32 },
    /// What a hybrid server has is not known: it is connected once to learn it. A failure is a strike.
    Learn { strikes: u8 },
    /// What is known of a hybrid server is old: it is connected to compare.
    LearnAnew,
}

impl Attempt {
    /// Whether the server's lists are read before anybody is given the connection.
    pub(super) fn reads_lists(self) -> bool {
        self != Self::Wake
    }

    /// In a row, as far as they are counted for ever.
    fn failures_before(self) -> u32 {
        match self {
            Self::Eager { failures } => failures,
            _ => 0,
        }
    }

    /// Whether nobody needs the server, but only what it says of itself.
    pub(super) fn is_study(self) -> bool {
        matches!(self, Self::Learn { .. } | Self::LearnAnew)
    }
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) at: Instant,
    pub(super) cause: Arc<AttemptError>,
}

#[derive(Debug)]
pub(super) enum Event<C> {
    /// Somebody needs the server.
    Wanted,
    /// What it has is not known, or what is known is old.
    Studied,
    /// What it has is known from another run.
    Recalled,
    Connected(C),
    /// Connected, in a way that suits no waiting host: in the other era, or with too little declared.
    Mismatched(C),
    Failed(Arc<AttemptError>),
    /// The process exited, or closed its output.
    Died,
    /// Nothing has used it for long enough.
    Idled,
    /// It is time to try an eager server again.
    RetryDue,
    /// Somebody has logged in, here or elsewhere.
    LoggedIn,
    /// The connection is not the one that its first host needs.
    Unsuitable,
}

/// What the actor has to do, in this order.
#[derive(Debug)]
pub(super) enum Effect<C> {
    StartAttempt(Attempt),
    /// End this connection.
    Close(C),
    /// End what is left of a connection that ended by itself, and say how it ended.
    Bury(C),
    /// Publish the catalog, then let those who wait have the connection.
    Admit(Attempt),
    /// Tell those who wait that they cannot have it.
    Refuse(Refusal),
    PublishUnreachable(Arc<AttemptError>),
    PublishAwaitingLogin(Arc<AttemptError>),
    /// Nothing speaks against it any more.
    PublishOffered,
    PublishEvicted(Arc<AttemptError>),
}

#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Failed { cause: Arc<AttemptError>, attempts_left: u8 },
    GivenUp { cause: Arc<AttemptError> },
    Unreachable { cause: Arc<AttemptError> },
    LoginRequired { cause: Arc<AttemptError> },
    Gone,
}

impl<C> State<C> {
    /// `is_known`: its catalog is live already, from another instance of the server.
    pub(super) fn initial(enabled: bool, is_known: bool) -> Self {
        match (enabled, is_known) {
            (false, _) => Self::Disabled,
            (true, true) => Self::Asleep { last_failure: None },
            (true, false) => Self::Unloaded { strikes: 0 },
        }
    }

    /// `random` in 0..1 spreads retries.
    pub(super) fn step(
        self,
        event: Event<C>,
        startup: Startup,
        now: Instant,
        random: f64,
    ) -> (Self, Vec<Effect<C>>) {
        use Event::{
            Connected, Died, Failed, Idled, LoggedIn, Mismatched, Recalled, RetryDue, Studied,
            Unsuitable, Wanted,
        };
        match (self, event) {
            (Self::Unloaded { strikes }, Wanted) => start(match startup {
                Startup::Lazy | Startup::Hybrid => Attempt::Load { strikes },
                Startup::Eager => Attempt::Eager { failures: 0 },
            }),
            (Self::Unloaded { .. }, Recalled) => (Self::Asleep { last_failure: None }, Vec::new()),
            (Self::Unloaded { strikes }, Studied) => start(Attempt::Learn { strikes }),
            (Self::Asleep { .. }, Studied) => start(Attempt::LearnAnew),
            (Self::Asleep { last_failure: Some(failure) }, Wanted) if failure.is_fresh(now) => {
                let refusal = Refusal::Unreachable { cause: failure.cause.clone() };
                (Self::Asleep { last_failure: Some(failure) }, vec![Effect::Refuse(refusal)])
            }
            (Self::Asleep { .. }, Wanted) => start(anew(startup, 0)),
            (Self::BackingOff { failures, until, last_failure: Some(failure) }, Wanted)
                if failure.is_fresh(now) =>
            {
                let refusal = Refusal::Unreachable { cause: failure.cause.clone() };
                let state = Self::BackingOff { failures, until, last_failure: Some(failure) };
                (state, vec![Effect::Refuse(refusal)])
            }
            (Self::BackingOff { failures, .. }, Wanted | RetryDue) => {
                start(Attempt::Eager { failures })
            }
            (Self::AwaitingLogin { attempt }, Wanted) => start(attempt),
            (Self::AwaitingLogin { attempt }, LoggedIn) => after_login(attempt),
            (Self::Loading(attempt), Connected(connection)) => {
                let failures = attempt.failures_before();
                (Self::Awake { connection, since: now, failures }, vec![Effect::Admit(attempt)])
            }
            (Self::Loading(attempt), Mismatched(connection)) => again(connection, attempt),
            (Self::Loading(attempt), Failed(cause)) => after_failure(attempt, cause, now, random),
            (Self::Awake { connection, since, failures }, Died) => {
                let state = after_death(startup, since, failures, now, random);
                (state, vec![Effect::Bury(connection)])
            }
            (Self::Awake { connection, .. }, Idled) if startup != Startup::Eager => {
                (Self::Asleep { last_failure: None }, vec![Effect::Close(connection)])
            }
            (Self::Awake { connection, failures, .. }, Unsuitable) => {
                again(connection, anew(startup, failures))
            }
            (state @ (Self::Evicted | Self::Disabled), Wanted) => {
                (state, vec![Effect::Refuse(Refusal::Gone)])
            }
            // A connection that nobody waits for any more must not be left open.
            (state, Connected(connection) | Mismatched(connection)) => {
                (state, vec![Effect::Close(connection)])
            }
            (
                state,
                Wanted | Studied | Recalled | Failed(_) | Died | Idled | RetryDue | LoggedIn
                | Unsuitable,
            ) => (state, Vec::new()),
        }
    }
}

/// Another connection in the place of one that is not what is needed.
fn again<C>(connection: C, attempt: Attempt) -> (State<C>, Vec<Effect<C>>) {
    let effects = vec![Effect::Close(connection), Effect::StartAttempt(attempt)];
    (State::Loading(attempt), effects)
}

/// The attempt for a server whose catalog is live.
fn anew(startup: Startup, failures: u32) -> Attempt {
    match startup {
        Startup::Lazy | Startup::Hybrid => Attempt::Wake,
        Startup::Eager => Attempt::Eager { failures },
    }
}

fn start<C>(attempt: Attempt) -> (State<C>, Vec<Effect<C>>) {
    (State::Loading(attempt), vec![Effect::StartAttempt(attempt)])
}

/// A lazy server still waits to be wanted; others take up what a missing login has stopped.
fn after_login<C>(attempt: Attempt) -> (State<C>, Vec<Effect<C>>) {
    match attempt {
        Attempt::Load { strikes } => (State::Unloaded { strikes }, vec![Effect::PublishOffered]),
        Attempt::Wake => (State::Asleep { last_failure: None }, Vec::new()),
        Attempt::Eager { .. } | Attempt::Learn { .. } | Attempt::LearnAnew => start(attempt),
    }
}

fn after_death<C>(
    startup: Startup,
    since: Instant,
    failures: u32,
    now: Instant,
    random: f64,
) -> State<C> {
    if startup != Startup::Eager {
        return State::Asleep { last_failure: None };
    }
    let was_steady = now.saturating_duration_since(since) >= STEADY;
    let failures = if was_steady { 1 } else { failures.saturating_add(1) };
    State::BackingOff {
        failures,
        until: now + backoff::delay(failures, random),
        last_failure: None,
    }
}

fn after_failure<C>(
    attempt: Attempt,
    cause: Arc<AttemptError>,
    now: Instant,
    random: f64,
) -> (State<C>, Vec<Effect<C>>) {
    if cause.wants_login() {
        let effects = vec![
            Effect::PublishAwaitingLogin(cause.clone()),
            Effect::Refuse(Refusal::LoginRequired { cause }),
        ];
        return (State::AwaitingLogin { attempt }, effects);
    }
    let failure = Failure { at: now, cause: cause.clone() };
    match attempt {
        Attempt::Load { strikes } | Attempt::Learn { strikes } if cause.is_no_strike() => {
            (State::Unloaded { strikes }, vec![Effect::Refuse(Refusal::Unreachable { cause })])
        }
        Attempt::Load { strikes } | Attempt::Learn { strikes } if strikes + 1 >= STRIKES => {
            let refusal = Refusal::GivenUp { cause: cause.clone() };
            (State::Evicted, vec![Effect::PublishEvicted(cause), Effect::Refuse(refusal)])
        }
        Attempt::Load { strikes } => {
            let strikes = strikes + 1;
            let refusal = Refusal::Failed { cause, attempts_left: STRIKES - strikes };
            (State::Unloaded { strikes }, vec![Effect::Refuse(refusal)])
        }
        Attempt::Learn { strikes } => {
            let strikes = strikes + 1;
            let effects = vec![
                Effect::PublishUnreachable(cause.clone()),
                Effect::Refuse(Refusal::Failed { cause, attempts_left: STRIKES - strikes }),
            ];
            (State::Unloaded { strikes }, effects)
        }
        Attempt::Wake | Attempt::LearnAnew => {
            let refusal = Refusal::Unreachable { cause };
            (State::Asleep { last_failure: Some(failure) }, vec![Effect::Refuse(refusal)])
        }
        Attempt::Eager { failures } => {
            let failures = failures.saturating_add(1);
            let effects = vec![
                Effect::PublishUnreachable(cause.clone()),
                Effect::Refuse(Refusal::Unreachable { cause }),
            ];
            let until = now + backoff::delay(failures, random);
            (State::BackingOff { failures, until, last_failure: Some(failure) }, effects)
        }
    }
}

impl Failure {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < RETRY_PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::credentials::CredentialError;
    use proptest::prelude::*;

    /// Plays events against a server and keeps what became visible.
    struct Life {
        state: Option<State<u32>>,
        startup: Startup,
        now: Instant,
        connections: u32,
        closed: u32,
        attempts: u32,
        log: Vec<String>,
    }

    fn life(startup: Startup) -> Life {
        let state = Some(State::initial(true, false));
        let now = Instant::now();
        Life { state, startup, now, connections: 0, closed: 0, attempts: 0, log: Vec::new() }
    }

    fn error() -> Arc<AttemptError> {
        Arc::new(AttemptError::ShuttingDown)
    }

    fn no_login() -> Arc<AttemptError> {
        let (why, command) = (String::new(), "dormouse login x".to_owned());
        Arc::new(CredentialError::LoginRequired { why, command }.into())
    }

    impl Life {
        fn play(&mut self, event: Event<u32>) -> &mut Self {
            let state = self.state.take().unwrap();
            let (next, effects) = state.step(event, self.startup, self.now, 1.0);
            for effect in effects {
                self.attempts += u32::from(matches!(effect, Effect::StartAttempt(_)));
                self.closed += u32::from(matches!(effect, Effect::Close(_) | Effect::Bury(_)));
                self.log.push(match effect {
                    Effect::StartAttempt(_) => "start".to_owned(),
                    Effect::Close(_) => "close".to_owned(),
                    Effect::Bury(_) => "bury".to_owned(),
                    Effect::Admit(_) => "admit".to_owned(),
                    Effect::Refuse(Refusal::Failed { attempts_left, .. }) => {
                        format!("refuse, {attempts_left} left")
                    }
                    Effect::Refuse(Refusal::GivenUp { .. }) => "refuse, given up".to_owned(),
                    Effect::Refuse(Refusal::Unreachable { .. }) => "refuse".to_owned(),
                    Effect::Refuse(Refusal::LoginRequired { .. }) => "refuse, log in".to_owned(),
                    Effect::Refuse(Refusal::Gone) => "gone".to_owned(),
                    Effect::PublishUnreachable(_) => "unreachable".to_owned(),
                    Effect::PublishAwaitingLogin(_) => "awaiting login".to_owned(),
                    Effect::PublishOffered => "offered".to_owned(),
                    Effect::PublishEvicted(_) => "evicted".to_owned(),
                });
            }
            if let State::BackingOff { until, .. } = &next {
                self.log.push(format!("retry after {:?}", *until - self.now));
            }
            self.state = Some(next);
            self
        }

        fn connect(&mut self) -> &mut Self {
            self.connections += 1;
            self.play(Event::Connected(self.connections))
        }

        fn mismatch(&mut self) -> &mut Self {
            self.connections += 1;
            self.play(Event::Mismatched(self.connections))
        }

        fn log(&self) -> Vec<&str> {
            self.log.iter().map(String::as_str).collect()
        }
    }

    #[test]
    fn many_who_want_a_server_share_one_attempt() {
        let mut life = life(Startup::Lazy);
        life.play(Event::Wanted).play(Event::Wanted).play(Event::Wanted).connect();
        assert_eq!(life.log(), ["start", "admit"]);
    }

    #[test]
    fn a_connection_that_suits_nobody_who_waits_is_made_again_within_the_attempt() {
        let mut life = life(Startup::Lazy);
        life.play(Event::Wanted).mismatch();
        assert!(matches!(life.state, Some(State::Loading(_))));
        life.connect();
        assert_eq!(life.log(), ["start", "close", "start", "admit"]);
    }

    #[test]
    fn the_third_failed_load_evicts() {
        let mut life = life(Startup::Lazy);
        for _ in 0..3 {
            life.play(Event::Wanted).play(Event::Failed(error()));
        }
        life.play(Event::Wanted);
        assert_eq!(
            life.log(),
            [
                "start",
                "refuse, 2 left",
                "start",
                "refuse, 1 left",
                "start",
                "evicted",
                "refuse, given up",
                "gone"
            ]
        );
    }

    #[test]
    fn a_wake_that_fails_is_no_strike_and_is_not_repeated_at_once() {
        let mut life = life(Startup::Lazy);
        life.play(Event::Wanted).connect().play(Event::Idled);
        for _ in 0..5 {
            life.play(Event::Wanted).play(Event::Failed(error())).play(Event::Wanted);
            life.now += RETRY_PAUSE;
        }
        life.play(Event::Wanted).connect();
        assert_eq!(life.attempts, 7);
        assert!(matches!(life.state, Some(State::Awake { .. })));
    }

    #[test]
    fn a_lazy_server_that_dies_sleeps_until_it_is_used() {
        let mut life = life(Startup::Lazy);
        life.play(Event::Wanted).connect().play(Event::Died).play(Event::RetryDue);
        assert_eq!(life.log(), ["start", "admit", "bury"]);
        assert!(matches!(life.state, Some(State::Asleep { .. })));
    }

    #[test]
    fn an_eager_server_is_tried_for_ever_and_never_sleeps() {
        let mut life = life(Startup::Eager);
        life.play(Event::Wanted);
        for _ in 0..50 {
            life.play(Event::Failed(error())).play(Event::RetryDue);
        }
        life.connect().play(Event::Idled);
        assert!(matches!(life.state, Some(State::Awake { .. })));
        assert_eq!(life.attempts, 51);
        assert_eq!(&life.log()[..5], ["start", "unreachable", "refuse", "retry after 1s", "start"]);
    }

    #[test]
    fn an_eager_server_that_dies_young_is_tried_less_and_less_often() {
        let mut life = life(Startup::Eager);
        life.play(Event::Wanted).connect();
        for _ in 0..3 {
            life.play(Event::Died).play(Event::RetryDue).connect();
        }
        life.now += STEADY;
        life.play(Event::Died);
        let retries: Vec<&str> =
            life.log().into_iter().filter(|line| line.starts_with("retry")).collect();
        assert_eq!(
            retries,
            ["retry after 1s", "retry after 2s", "retry after 4s", "retry after 1s"]
        );
        life.play(Event::Wanted);
        assert!(
            matches!(life.state, Some(State::Loading(_))),
            "a call does not wait for the retry"
        );
    }

    #[test]
    fn a_hybrid_server_that_cannot_be_learned_is_given_up_and_one_that_is_known_never() {
        let mut life = life(Startup::Hybrid);
        for _ in 0..3 {
            life.play(Event::Studied).play(Event::Failed(error()));
        }
        assert!(matches!(life.state, Some(State::Evicted)));
        let mut life = super::tests::life(Startup::Hybrid);
        life.play(Event::Recalled);
        for _ in 0..5 {
            life.play(Event::Studied).play(Event::Failed(error()));
        }
        assert!(matches!(life.state, Some(State::Asleep { .. })));
        life.play(Event::Recalled);
        assert!(matches!(life.state, Some(State::Asleep { .. })), "it is known already");
    }

    #[test]
    fn a_missing_login_is_no_strike_and_a_login_takes_up_what_it_stopped() {
        let mut life = life(Startup::Lazy);
        life.play(Event::Wanted).play(Event::Failed(error())).play(Event::Wanted);
        for _ in 0..5 {
            life.play(Event::Failed(no_login())).play(Event::Wanted);
        }
        life.play(Event::Failed(no_login())).play(Event::LoggedIn);
        assert!(matches!(life.state, Some(State::Unloaded { strikes: 1 })));
        assert_eq!(life.log().last(), Some(&"offered"));
        life.play(Event::Wanted).connect().play(Event::Idled).play(Event::Wanted);
        life.play(Event::Failed(no_login())).play(Event::LoggedIn);
        assert!(matches!(life.state, Some(State::Asleep { .. })));

        let mut life = super::tests::life(Startup::Eager);
        life.play(Event::Wanted).play(Event::Failed(no_login())).play(Event::RetryDue);
        assert_eq!(life.log(), ["start", "awaiting login", "refuse, log in"]);
        life.play(Event::LoggedIn).connect();
        assert!(matches!(life.state, Some(State::Awake { .. })));
    }

    proptest! {
        #[test]
        fn no_sequence_of_events_panics_or_leaks_a_connection(
            events in proptest::collection::vec((0..12u8, 0..3000u64), 0..200),
            startup in proptest::sample::select(vec![Startup::Eager, Startup::Lazy, Startup::Hybrid]),
        ) {
            let mut life = life(startup);
            for (event, millis) in events {
                life.now += Duration::from_millis(millis);
                match event {
                    0 => life.play(Event::Wanted),
                    1 => life.connect(),
                    2 => life.play(Event::Failed(error())),
                    3 => life.play(Event::Died),
                    4 => life.play(Event::Idled),
                    5 => life.play(Event::Unsuitable),
                    6 => life.play(Event::Studied),
                    7 => life.play(Event::Recalled),
                    8 => life.play(Event::Failed(no_login())),
                    9 => life.play(Event::LoggedIn),
                    10 => life.mismatch(),
                    _ => life.play(Event::RetryDue),
                };
            }
            let open = u32::from(matches!(life.state, Some(State::Awake { .. })));
            prop_assert_eq!(life.connections, life.closed + open);
        }
    }
}
