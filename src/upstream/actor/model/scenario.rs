//! The settings, commands and visible events of the actor's model-based test.

use crate::{
    config::Startup,
    protocol::Era,
    upstream::{Phase, StaysAwake, server_state::model::Failure},
};

/// A time or a delay, in milliseconds since the start of a sequence.
pub(in crate::upstream::actor) type Millis = u64;

/// The deadlines, which no sum of the delays below is equal to.
pub(in crate::upstream::actor) const LOAD_TIMEOUT: Millis = 5003;
pub(in crate::upstream::actor) const REQUEST_TIMEOUT: Millis = 4001;

/// The server of a sequence.
#[derive(Clone, Debug)]
pub(in crate::upstream::actor) struct Setting {
    pub(in crate::upstream::actor) startup: Startup,
    /// True if the server speaks both eras, and has hosts of both.
    pub(in crate::upstream::actor) is_dual: bool,
    /// True if another instance has shown the catalog.
    pub(in crate::upstream::actor) is_known: bool,
    /// True if another run has left the catalog on disk.
    pub(in crate::upstream::actor) is_recalled: bool,
    pub(in crate::upstream::actor) idle_timeout: Option<Millis>,
    /// The lifetime of a hybrid server's catalog.
    pub(in crate::upstream::actor) ttl: Option<Millis>,
    /// The plans of the connections, in their order and again from the first.
    pub(in crate::upstream::actor) plans: Vec<Plan>,
}

impl Setting {
    /// Returns the plan of a connection; the first has number 1.
    pub(in crate::upstream::actor) fn plan(&self, number: usize) -> Plan {
        self.plans[number % self.plans.len()]
    }
}

/// The phases of one connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream::actor) struct Plan {
    pub(in crate::upstream::actor) opening: Phased,
    pub(in crate::upstream::actor) handshake: Phased,
    pub(in crate::upstream::actor) lists: Phased,
    pub(in crate::upstream::actor) ending: Millis,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::upstream::actor) enum Phased {
    Takes(Millis),
    Fails(Millis, Failure),
    Hangs,
}

/// A command, or an event from outside, after a delay.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream::actor) struct Step {
    pub(in crate::upstream::actor) after: Millis,
    pub(in crate::upstream::actor) action: Action,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::upstream::actor) enum Action {
    /// So many callers want the server at once.
    Want {
        era: Era,
        callers: u8,
    },
    /// The waiting caller at this position goes away.
    Cancel(u8),
    /// The caller at this position no longer needs the server.
    Release(u8),
    Begin(Era),
    Learn,
    Restore,
    Sleep,
    Subscribe,
    Unsubscribe,
    /// The server exits.
    Die,
    LogIn,
    /// The server announces other tools.
    ChangeLists,
    Retire,
    Stop,
}

/// An event that hosts, callers or the server see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::upstream::actor) enum Seen {
    /// The connection of this number is being opened, or has ended with everything behind it.
    Opening(usize),
    Ended(usize),
    Phase(Phase),
    /// The catalog with this version of the tools is published.
    Live(u32),
    /// Hosts are told why the server cannot be had, or that it can be again.
    Troubled(bool),
    LoadFailed,
    Evicted,
    FirstAttemptOver,
    Answered(u32, Answer),
    Slept(Result<(), StaysAwake>),
}

/// The answer to a caller that wants the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::upstream::actor) enum Answer {
    Leased(Era),
    Strike { left: u8 },
    GivenUp,
    Unreachable,
    NoLogin,
    Gone,
}

pub(in crate::upstream::actor) fn generate_setting(rng: &mut fastrand::Rng) -> Setting {
    let startup = pick(rng, &[Startup::Lazy, Startup::Lazy, Startup::Hybrid, Startup::Eager]);
    let plans = (0..6).map(|_| generate_plan(rng)).collect();
    Setting {
        startup,
        is_dual: rng.bool(),
        is_known: rng.u8(..8) == 0,
        is_recalled: rng.u8(..3) == 0,
        idle_timeout: pick(rng, &[None, Some(30), Some(700), Some(2500)]),
        ttl: pick(rng, &[None, Some(9000)]),
        plans,
    }
}

fn generate_plan(rng: &mut fastrand::Rng) -> Plan {
    let kinds = [Failure::Ordinary, Failure::NoLogin, Failure::BadLogin, Failure::Exhausted];
    let mut phase = |failures: &[Failure], min| {
        let delay = pick(rng, &[0, 10, 40, 300, 1500]).max(min);
        match rng.u8(..16) {
            0 => Phased::Hangs,
            1..4 => Phased::Fails(delay, pick(rng, failures)),
            _ => Phased::Takes(delay),
        }
    };
    // No attempt fails in the moment in which it begins: the model observes retries later.
    let opening = phase(&kinds, 10);
    let (handshake, lists) = (phase(&kinds[..1], 0), phase(&kinds[..1], 0));
    Plan { opening, handshake, lists, ending: pick(rng, &[0, 20, 500, 900, 2000]) }
}

pub(in crate::upstream::actor) fn generate_step(
    rng: &mut fastrand::Rng,
    setting: &Setting,
) -> Step {
    let era = if setting.is_dual && rng.bool() { Era::Modern } else { Era::Legacy };
    let action = match rng.u8(..40) {
        0..10 => Action::Want { era, callers: rng.u8(1..4) },
        10..13 => Action::Cancel(rng.u8(..4)),
        13..19 => Action::Release(rng.u8(..4)),
        21..24 if setting.startup == Startup::Hybrid => Action::Learn,
        21..24 if setting.startup == Startup::Lazy => Action::Restore,
        19..24 => Action::Begin(era),
        24..27 => Action::Sleep,
        27..29 => Action::Subscribe,
        29..31 => Action::Unsubscribe,
        31..34 => Action::Die,
        34..36 => Action::LogIn,
        36..39 => Action::ChangeLists,
        _ if rng.u8(..3) == 0 => Action::Stop,
        _ => Action::Retire,
    };
    Step { after: pick(rng, &[1, 20, 50, 90, 400, 1100, 2100, 6000, 61_000]), action }
}

fn pick<T: Copy>(rng: &mut fastrand::Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
