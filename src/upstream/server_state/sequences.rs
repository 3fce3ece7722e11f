//! Random events against [`ServerState::step`] and the reference model, which must agree on all
//! that hosts, callers and the actor see, and against laws that hold whatever the model says.
//!
//! `DORMOUSE_SEQUENCES=1000000 cargo nextest run --lib server_state` runs more sequences than the
//! default, and `DORMOUSE_SEED` begins with another one.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use super::{
    AttemptPurpose, Effect, LoadRefusal, ServerEvent, ServerState,
    laws::Laws,
    model::{Failure, LifeEvent, LifeModel, Notice, Reaction, Refusal, Start},
};
use crate::{
    base::{Sequence, check_sequences},
    config::Startup,
    peer::CallError,
    upstream::{AttemptError, Phase, Status},
    wire::credentials::CredentialError,
};

const DEFAULT_COUNT: u64 = 200_000;
const MAX_EVENTS: usize = 24;

/// The delays before an event: both sides of each limit of the state machine.
const DELAYS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(700),
    Duration::from_millis(1999),
    Duration::from_secs(2),
    Duration::from_millis(59_999),
    Duration::from_mins(1),
];

/// The events, those that lead somewhere in most states several times.
const EVENTS: [LifeEvent; 18] = [
    LifeEvent::Wanted,
    LifeEvent::Wanted,
    LifeEvent::Wanted,
    LifeEvent::Failed(Failure::Ordinary),
    LifeEvent::Failed(Failure::Ordinary),
    LifeEvent::Failed(Failure::Ordinary),
    LifeEvent::Failed(Failure::NoLogin),
    LifeEvent::Failed(Failure::BadLogin),
    LifeEvent::Failed(Failure::Exhausted),
    LifeEvent::Connected,
    LifeEvent::Mismatched,
    LifeEvent::Died,
    LifeEvent::Idled,
    LifeEvent::Unsuitable,
    LifeEvent::RetryDue,
    LifeEvent::LoggedIn,
    LifeEvent::Recalled,
    LifeEvent::CatalogWanted,
];

/// The server of a sequence.
#[derive(Clone, Copy, Debug)]
struct ServerKind {
    startup: Startup,
    is_enabled: bool,
    is_known: bool,
}

/// An event, the time before it, and the random number that it is given.
#[derive(Clone, Copy, Debug)]
struct TimedEvent {
    after: Duration,
    event: LifeEvent,
    random: f64,
}

fn generate(rng: &mut fastrand::Rng) -> Sequence<ServerKind, TimedEvent> {
    let startups = [Startup::Lazy, Startup::Hybrid, Startup::Eager];
    let startup = startups[rng.usize(..startups.len())];
    let (is_enabled, is_known) = (rng.u8(..) > 4, rng.u8(..) > 200);
    // Hybrid servers alone are studied, and an eager one has no use for another run's catalog.
    let event_count = match startup {
        Startup::Hybrid => EVENTS.len(),
        Startup::Lazy => EVENTS.len() - 1,
        Startup::Eager => EVENTS.len() - 2,
    };
    let length = rng.usize(1..=MAX_EVENTS);
    let events = (0..length).map(|_| {
        let random = rng.u32(..);
        let [event, delay, jitter, _] = random.to_le_bytes().map(usize::from);
        TimedEvent {
            after: DELAYS[delay % DELAYS.len()],
            // Little happens after these two.
            event: match event {
                0..4 => LifeEvent::Retired,
                4 => LifeEvent::Stopped,
                _ => EVENTS[event % event_count],
            },
            random: [0.0, 0.5, 1.0][jitter % 3],
        }
    });
    let events = events.collect();
    Sequence { setting: ServerKind { startup, is_enabled, is_known }, events }
}

/// One error of each kind, since making errors takes longer than a step.
static ERRORS: LazyLock<[(Failure, Arc<AttemptError>); 4]> = LazyLock::new(|| {
    let (why, remedy) = (String::new(), String::new());
    let exhausted = CallError::Exhausted(String::new());
    [
        (Failure::Ordinary, AttemptError::ShuttingDown),
        (Failure::NoLogin, CredentialError::LoginRequired { why, remedy }.into()),
        (Failure::BadLogin, CredentialError::Refused(String::new()).into()),
        (Failure::Exhausted, AttemptError::Call { phase: "", cause: exhausted }),
    ]
    .map(|(failure, error)| (failure, Arc::new(error)))
});

fn error(failure: Failure) -> Arc<AttemptError> {
    ERRORS[failure as usize].1.clone()
}

fn failure(error: &Arc<AttemptError>) -> Failure {
    let known = ERRORS.iter().find(|(_, known)| Arc::ptr_eq(known, error));
    known.expect("the state machine makes no errors").0
}

/// The code, the model, and the laws, side by side.
struct Comparison {
    startup: Startup,
    /// `None` only inside `step`.
    state: Option<ServerState<u32>>,
    status: Status,
    model: LifeModel,
    laws: Laws,
}

impl Comparison {
    fn new(kind: ServerKind) -> Self {
        let state = ServerState::initial(kind.is_enabled, kind.is_known);
        let mut status = Status::new();
        status.update(&state);
        let model = LifeModel::new(kind.startup, kind.is_enabled, kind.is_known);
        Self {
            startup: kind.startup,
            state: Some(state),
            status,
            model,
            laws: Laws::new(kind.startup, kind.is_known),
        }
    }

    /// Returns whether the server is neither retiring nor ended.
    fn is_live(&self) -> bool {
        let leaving = |state: &ServerState<u32>| {
            matches!(state, ServerState::Retiring { .. } | ServerState::Ended { .. })
        };
        !self.state.as_ref().is_some_and(leaving)
    }

    fn step(&mut self, event: LifeEvent, now: Duration, random: f64) -> Result<(), String> {
        let start = *START;
        let id = self.laws.arriving(event);
        let before = self.status.phase;
        let state = self.state.take().expect("a step puts a state back");
        let (state, effects) =
            state.step(server_event(event, id), self.startup, start + now, random);
        self.status.update(&state);
        self.laws.check(event, before, &effects, now)?;
        let (expected, found) = (self.model.happen(event, now, id, random), reaction_of(effects)?);
        if expected != found {
            return Err(format!("{event:?}: expected {expected:?},\n    found {found:?}"));
        }
        let expected = (self.model.phase(), self.model.strikes(), self.model.retry_at());
        let retry_at = self.status.retry_at.map(|at| at.duration_since(start));
        let found = (self.status.phase, self.status.strikes, retry_at);
        if expected != found {
            return Err(format!("after {event:?}: expected {expected:?}, found {found:?}"));
        }
        self.laws.check_open(connection_of(&state))?;
        self.state = Some(state);
        Ok(())
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn server_event(event: LifeEvent, id: u32) -> ServerEvent<u32> {
    match event {
        LifeEvent::Wanted => ServerEvent::Wanted,
        LifeEvent::CatalogWanted => ServerEvent::CatalogWanted,
        LifeEvent::Recalled => ServerEvent::Recalled,
        LifeEvent::Connected => ServerEvent::Connected(id),
        LifeEvent::Mismatched => ServerEvent::Mismatched(id),
        LifeEvent::Failed(failure) => ServerEvent::Failed(error(failure)),
        LifeEvent::Died => ServerEvent::Died,
        LifeEvent::Idled => ServerEvent::Idled,
        LifeEvent::RetryDue => ServerEvent::RetryDue,
        LifeEvent::LoggedIn => ServerEvent::LoggedIn,
        LifeEvent::Unsuitable => ServerEvent::Unsuitable,
        LifeEvent::Retired => ServerEvent::Retired,
        LifeEvent::Stopped => ServerEvent::Stopped,
    }
}

fn connection_of(state: &ServerState<u32>) -> Option<u32> {
    match state {
        ServerState::Ended { remaining } => *remaining,
        _ => state.connection().copied(),
    }
}

/// Returns effects in the model's terms; an error if one comes twice, or before its turn.
fn reaction_of(effects: Vec<Effect<u32>>) -> Result<Reaction, String> {
    let mut reaction = Reaction::default();
    let mut last = 0;
    for effect in effects {
        let turn = match effect {
            Effect::Close(id) => put(&mut reaction.closed, id, 1),
            Effect::Bury(id) => put(&mut reaction.buried, id, 1),
            Effect::StartAttempt(purpose) => put(&mut reaction.started, start_of(purpose), 2),
            Effect::Admit(_) => {
                reaction.is_admitted = true;
                3
            }
            // Hosts are told before callers, which may ask for a list at once.
            Effect::PublishUnreachable(_) => put(&mut reaction.told, Notice::Unreachable, 4),
            Effect::PublishAwaitingLogin(_) => put(&mut reaction.told, Notice::AwaitingLogin, 4),
            Effect::PublishOffered => put(&mut reaction.told, Notice::Offered, 4),
            Effect::PublishEvicted(_) => put(&mut reaction.told, Notice::Evicted, 4),
            Effect::ForgetCatalog => {
                reaction.is_forgotten = true;
                4
            }
            Effect::Refuse(refusal) => put(&mut reaction.refused, refusal_of(&refusal), 5),
        };
        if turn <= last {
            return Err(format!("effects in another order, or twice: {reaction:?}"));
        }
        last = turn;
    }
    Ok(reaction)
}

fn put<T>(place: &mut Option<T>, value: T, turn: u8) -> u8 {
    *place = Some(value);
    turn
}

fn start_of(purpose: AttemptPurpose) -> Start {
    Start { reads_lists: purpose.reads_lists(), is_study: purpose.is_learning() }
}

fn refusal_of(refusal: &LoadRefusal) -> (Refusal, Option<Failure>) {
    match refusal {
        LoadRefusal::Failed { cause, attempts_left } => {
            (Refusal::Strike { left: *attempts_left }, Some(failure(cause)))
        }
        LoadRefusal::GivenUp { cause } => (Refusal::GivenUp, Some(failure(cause))),
        LoadRefusal::Unreachable { cause } => (Refusal::Unreachable, Some(failure(cause))),
        LoadRefusal::LoginRequired { cause } => (Refusal::NoLogin, Some(failure(cause))),
        LoadRefusal::Ending => (Refusal::Ending, None),
        LoadRefusal::Gone => (Refusal::Gone, None),
    }
}

/// The states in which each event has happened.
#[derive(Default)]
struct Coverage([[u64; 16]; 8]);

impl Coverage {
    fn note(&mut self, phase: Phase, event: LifeEvent) {
        let event = match event {
            LifeEvent::Wanted => 0,
            LifeEvent::CatalogWanted => 1,
            LifeEvent::Recalled => 2,
            LifeEvent::Connected => 3,
            LifeEvent::Mismatched => 4,
            LifeEvent::Died => 5,
            LifeEvent::Idled => 6,
            LifeEvent::RetryDue => 7,
            LifeEvent::LoggedIn => 8,
            LifeEvent::Unsuitable => 9,
            LifeEvent::Retired => 10,
            LifeEvent::Stopped => 11,
            LifeEvent::Failed(failure) => 12 + failure as usize,
        };
        self.0[phase as usize][event] += 1;
    }
}

#[test]
fn every_sequence_of_events_has_the_documented_effects() {
    let mut coverage = Coverage::default();
    let count = check_sequences(DEFAULT_COUNT, generate, |sequence| {
        let mut comparison = Comparison::new(sequence.setting);
        let mut now = Duration::ZERO;
        for TimedEvent { after, event, random } in &sequence.events {
            now += *after;
            if comparison.is_live() {
                coverage.note(comparison.status.phase, *event);
            }
            comparison.step(*event, now, *random)?;
        }
        Ok(())
    });
    println!("{count} sequences; events in each state: {:?}", coverage.0);
    // Only eager servers back off, and no eager server is studied or recalled.
    let missing = coverage.0.iter().flatten().filter(|visits| **visits == 0).count();
    assert!(count < DEFAULT_COUNT || missing == 2, "events never tried in some state");
}
