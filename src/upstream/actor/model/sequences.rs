//! Random commands and events against the actor in virtual time and its reference model: both must
//! see the same at the same time.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ActorModel,
    scenario::{Action, Answer, Millis, Seen, Setting, Step, generate_setting, generate_step},
    world::World,
};
use crate::{
    base::{Sequence, check_sequences},
    upstream::Phase,
};

const DEFAULT_COUNT: u64 = 500;
const MAX_STEPS: usize = 30;
/// The number of kinds of events that sequences must show, so that they test what they seem to.
const KINDS: usize = 24;
/// Time after the last step in which everything comes to its end.
const REST: Millis = 20_000;

fn generate(rng: &mut fastrand::Rng) -> Sequence<Setting, Step> {
    let setting = generate_setting(rng);
    let count = rng.usize(1..=MAX_STEPS);
    let events = (0..count).map(|_| generate_step(rng, &setting)).collect();
    Sequence { setting, events }
}

/// The actor and its model at one moment.
struct Run {
    world: World,
    model: ActorModel,
    now: Millis,
    answers: BTreeMap<u32, Answer>,
    seen_phase: Phase,
    expected_phase: Phase,
    /// The kinds of events that were seen.
    kinds: BTreeSet<String>,
}

impl Run {
    fn new(setting: &Setting) -> Self {
        let model = ActorModel::new(setting.clone());
        let phase = model.phase();
        let world = World::new(setting);
        let answers = BTreeMap::new();
        Self {
            world,
            model,
            now: 0,
            answers,
            seen_phase: phase,
            expected_phase: phase,
            kinds: BTreeSet::new(),
        }
    }

    async fn step(&mut self, step: Step) -> Result<(), String> {
        self.advance(self.now + step.after - 1).await;
        // No order is defined between an action and a timer of the same moment.
        self.skip_timers().await;
        self.world.advance(self.now + 1).await;
        self.now += 1;
        self.model.advance(self.now);
        self.world.act(step.action, &mut self.model).await;
        self.skip_timers().await;
        self.advance(self.now + 1).await;
        self.compare()
    }

    /// Moves on while a timer is due at the next moment.
    async fn skip_timers(&mut self) {
        self.model.advance(self.now);
        while self.model.next_timer().is_some_and(|at| at == self.now + 1) {
            self.advance(self.now + 1).await;
        }
    }

    async fn advance(&mut self, to: Millis) {
        self.world.advance(to).await;
        self.world.tell_retries(&mut self.model);
        self.model.advance(to);
        self.now = to;
    }

    fn compare(&mut self) -> Result<(), String> {
        let seen = self.world.take_seen();
        check_order(&seen)?;
        for (at, seen) in &seen {
            self.kinds.insert(kind(seen));
            if let Seen::Answered(caller, answer) = seen
                && let Some(before) = self.answers.insert(*caller, answer.clone())
            {
                return Err(format!("caller {caller} is answered again at {at}, after {before:?}"));
            }
        }
        let expected = canonical(self.model.take_seen()?, &mut self.expected_phase);
        let seen = canonical(seen, &mut self.seen_phase);
        if expected != seen {
            return Err(format!("until {}: expected {expected:?},\n    found {seen:?}", self.now));
        }
        let strikes = (self.model.strikes(), self.world.strikes());
        if strikes.0 != strikes.1 {
            return Err(format!("at {}: expected and found strikes {strikes:?}", self.now));
        }
        Ok(())
    }
}

/// Checks that hosts are told before the callers that wait for the same change. A further reading
/// of the lists may follow in the same moment.
fn check_order(seen: &[(Millis, Seen)]) -> Result<(), String> {
    let (mut answered_at, mut told_at) = (None, None);
    for (at, seen) in seen {
        match seen {
            Seen::Answered(..) if told_at != Some(*at) => answered_at = Some(*at),
            Seen::Live(_) | Seen::Troubled(_) | Seen::Evicted => {
                told_at = Some(*at);
                if answered_at != told_at {
                    continue;
                }
                return Err(format!("at {at} a caller is answered before hosts are told {seen:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the events in an order that does not depend on that of tasks in one moment, with the
/// last phase of each moment alone.
fn canonical(mut seen: Vec<(Millis, Seen)>, last: &mut Phase) -> Vec<(Millis, String)> {
    seen.sort_by_key(|(at, _)| *at);
    let mut phases: BTreeMap<Millis, Phase> = BTreeMap::new();
    let mut events = BTreeSet::new();
    let mut all = Vec::new();
    for (at, seen) in seen {
        match seen {
            Seen::Phase(phase) => {
                phases.insert(at, phase);
            }
            seen => all.push((at, format!("{seen:?}"))),
        }
    }
    for (at, phase) in phases {
        if std::mem::replace(last, phase) != phase {
            events.insert((at, format!("{phase:?}")));
        }
    }
    all.extend(events);
    all.sort();
    all
}

/// Returns an event without its numbers.
fn kind(seen: &Seen) -> String {
    let kind = match seen {
        Seen::Answered(_, answer) => format!("{answer:?}"),
        Seen::Slept(result) => return format!("{result:?}"),
        Seen::Phase(phase) => return format!("{phase:?}"),
        seen => format!("{seen:?}"),
    };
    kind.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

/// Plays a sequence to its end. Returns the kinds of events that were seen.
async fn play(sequence: &Sequence<Setting, Step>) -> Result<BTreeSet<String>, String> {
    let mut run = Run::new(&sequence.setting);
    for step in &sequence.events {
        run.step(*step).await?;
    }
    run.step(Step { after: 1, action: Action::Stop }).await?;
    run.advance(run.now + REST).await;
    run.compare()?;
    run.world.check_end().await?;
    Ok(run.kinds)
}

#[test]
fn actor_does_what_its_model_does_at_the_same_time() {
    let mut kinds = BTreeSet::new();
    let count = check_sequences(DEFAULT_COUNT, generate, |sequence| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build();
        kinds.extend(runtime.expect("a runtime").block_on(play(sequence))?);
        Ok(())
    });
    println!("{count} sequences, in which was seen: {kinds:?}");
    let is_complete = count < DEFAULT_COUNT || kinds.len() == KINDS;
    assert!(is_complete, "something never happens: {kinds:?}");
}
