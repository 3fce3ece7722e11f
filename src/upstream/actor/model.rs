//! A reference model of the actor in virtual time, around the model of a server's life: attempts
//! with their durations, callers, uses, timers and list readings (docs/design/lifecycle.md).

mod attempt_model;
mod endings_model;
mod lists_model;
mod recorder;
pub(super) mod scenario;
mod sequences;
pub(super) mod world;

use std::{collections::VecDeque, time::Duration};

use crate::{
    config::Startup,
    protocol::Era,
    upstream::{
        Phase, StaysAwake,
        server_state::model::{LifeEvent, LifeModel, Notice, Reaction, Refusal, Start},
    },
};

use attempt_model::{AttemptModel, Progress, Timeline};
use endings_model::Endings;
use lists_model::{ListsModel, ReadingEnd};
use scenario::{Answer, Millis, Seen, Setting};

pub(super) struct ActorModel {
    setting: Setting,
    now: Millis,
    life: LifeModel,
    /// The era of the host that last needed the server.
    host_era: Era,
    openings: usize,
    attempt: Option<AttemptModel>,
    waiters: Vec<Waiter>,
    connection: Option<ConnectionModel>,
    is_subscribed: bool,
    endings: Endings,
    lists: ListsModel,
    end: End,
    output: Output,
}

/// A caller that waits for the server.
struct Waiter {
    caller: u32,
    era: Era,
    is_cancelled: bool,
}

struct ConnectionModel {
    number: usize,
    era: Era,
    /// The callers that use it.
    users: Vec<u32>,
    unused_since: Millis,
    /// True once a host has used it.
    is_used: bool,
}

/// The way to the end of the actor.
#[derive(Default)]
struct End {
    is_retiring: bool,
    is_first_attempt_over: bool,
    /// The time from which the actor is gone, once it has begun to stop.
    gone_from: Option<Millis>,
    /// The commands that came too late: they are answered when the actor is gone.
    late: Vec<Seen>,
}

#[derive(Default)]
struct Output {
    seen: Vec<(Millis, Seen)>,
    /// The observed retries: when each was decided, and when it is due.
    retries: VecDeque<(Millis, Millis)>,
    error: Option<String>,
}

impl ActorModel {
    fn new(setting: Setting) -> Self {
        let life = LifeModel::new(setting.startup, true, setting.is_known);
        let ttl = setting.ttl.filter(|_| setting.startup == Startup::Hybrid);
        let lists = ListsModel::new(setting.is_known, ttl);
        Self {
            setting,
            now: 0,
            life,
            host_era: Era::Legacy,
            openings: 0,
            attempt: None,
            waiters: Vec::new(),
            connection: None,
            is_subscribed: false,
            endings: Endings::default(),
            lists,
            end: End::default(),
            output: Output::default(),
        }
    }

    /// Notes an observed retry, since its delay is random.
    fn observe_retry(&mut self, at: Millis, due: Millis) {
        self.output.retries.push_back((at, due));
    }

    /// Returns the events since the last call, or why an observed retry is wrong.
    fn take_seen(&mut self) -> Result<Vec<(Millis, Seen)>, String> {
        self.output.error.take().map_or(Ok(std::mem::take(&mut self.output.seen)), Err)
    }

    fn phase(&self) -> Phase {
        self.life.phase()
    }

    fn strikes(&self) -> u8 {
        self.life.strikes()
    }

    fn is_awake(&self) -> bool {
        self.connection.is_some() && self.end.gone_from.is_none()
    }

    /// Returns the waiting callers that have not gone away.
    fn waiting(&self) -> Vec<u32> {
        let present = self.waiters.iter().filter(|waiter| !waiter.is_cancelled);
        present.map(|waiter| waiter.caller).collect()
    }

    // Commands and events from outside.

    fn want(&mut self, caller: u32, era: Era) {
        let gone = Seen::Answered(caller, Answer::Gone);
        if self.answer_if_ending(gone) {
            return;
        }
        let is_replaced = self.connection.as_ref().is_some_and(|connection| {
            !connection.is_used && connection.users.is_empty() && connection.era != era
        }) && !self.is_subscribed
            && !self.end.is_retiring;
        if is_replaced {
            self.host_era = era;
            self.lists.cancel_reading(self.now);
            self.live(LifeEvent::Unsuitable);
        }
        if let Some(connection) = &mut self.connection {
            connection.users.push(caller);
            connection.is_used = true;
            let answer = Answer::Leased(connection.era);
            return self.see(Seen::Answered(caller, answer));
        }
        self.host_era = era;
        self.waiters.push(Waiter { caller, era, is_cancelled: false });
        self.live(LifeEvent::Wanted);
    }

    fn cancel(&mut self, caller: u32) {
        for waiter in self.waiters.iter_mut().filter(|waiter| waiter.caller == caller) {
            waiter.is_cancelled = true;
        }
    }

    fn release(&mut self, caller: u32) {
        let now = self.now;
        let Some(connection) = &mut self.connection else { return };
        let before = connection.users.len();
        connection.users.retain(|user| *user != caller);
        if before > 0 && connection.users.is_empty() {
            connection.unused_since = now;
        }
    }

    fn begin(&mut self, era: Era) {
        if self.end.gone_from.is_none() {
            self.host_era = era;
            self.live(LifeEvent::Wanted);
        }
    }

    fn learn(&mut self) {
        if self.end.gone_from.is_some() {
            return;
        }
        if self.recall() {
            self.finish_first_attempt();
        } else {
            self.live(LifeEvent::CatalogWanted);
        }
    }

    fn restore(&mut self) {
        if self.end.gone_from.is_none() && !self.recall() && self.life.phase() == Phase::Unloaded {
            self.live(LifeEvent::Wanted);
        }
    }

    fn recall(&mut self) -> bool {
        let is_recalled = self.setting.is_recalled && self.life.phase() == Phase::Unloaded;
        if is_recalled {
            self.live(LifeEvent::Recalled);
            self.lists.recalled(self.now);
            self.see(Seen::Live(0));
        }
        is_recalled
    }

    fn sleep(&mut self) {
        if self.answer_if_ending(Seen::Slept(Ok(()))) {
            return;
        }
        let is_in_use = self.connection.as_ref().is_some_and(|one| !one.users.is_empty());
        let refused = match self.life.phase() {
            _ if self.setting.startup == Startup::Eager => Some(StaysAwake::Eager),
            Phase::Loading => Some(StaysAwake::Loading),
            Phase::Awake if self.is_subscribed => Some(StaysAwake::Subscribed),
            Phase::Awake if is_in_use => Some(StaysAwake::InUse),
            _ => None,
        };
        if refused.is_none() && self.connection.is_some() {
            self.fall_asleep();
        }
        self.see(Seen::Slept(refused.map_or(Ok(()), Err)));
    }

    /// Subscribes to a resource, if the server is awake; that uses it for a moment.
    fn subscribe(&mut self) {
        if self.is_awake() {
            self.is_subscribed = true;
            let now = self.now;
            let unused = self.connection.as_mut().filter(|one| one.users.is_empty());
            if let Some(one) = unused {
                one.unused_since = now;
            }
        }
    }

    fn unsubscribe(&mut self) {
        self.is_subscribed = false;
    }

    fn die(&mut self) {
        self.lists.cancel_reading(self.now);
        self.live(LifeEvent::Died);
    }

    fn log_in(&mut self) {
        if self.end.gone_from.is_none() {
            self.live(LifeEvent::LoggedIn);
        }
    }

    fn change_lists(&mut self) {
        let is_opening = self.attempt.as_ref().is_some_and(
            |attempt| matches!(&attempt.progress, Progress::Runs(line) if line.is_open(self.now)),
        );
        self.lists.change(is_opening || self.is_awake());
    }

    fn retire(&mut self) {
        if self.end.gone_from.is_none() {
            self.end.is_retiring = true;
            self.live(LifeEvent::Retired);
        }
    }

    fn stop(&mut self) {
        if self.end.gone_from.is_some() {
            return;
        }
        if !self.life.has_ended() {
            self.live(LifeEvent::Stopped);
        }
        self.finish_first_attempt();
        if let Some(attempt) = self.attempt.take() {
            match attempt.progress {
                Progress::WaitsForEnd { previous, .. } => self.endings.abort(previous, self.now),
                Progress::Runs(line) if line.opened.is_some_and(|at| at <= self.now) => {
                    self.see(Seen::Ended(line.number));
                }
                Progress::Runs(_) => {}
            }
        }
        let connection = self.connection.take();
        let ended = connection.map_or(self.now, |one| {
            let at = self.now + self.setting.plan(one.number).ending;
            self.endings.add(one.number, at);
            at
        });
        self.end.gone_from = Some(self.endings.wait_for_previous(ended));
    }

    /// Answers a command that comes when the actor has begun to stop.
    fn answer_if_ending(&mut self, answer: Seen) -> bool {
        match self.end.gone_from {
            None => return false,
            Some(at) if at <= self.now => self.see(answer),
            Some(_) => self.end.late.push(answer),
        }
        true
    }

    // The passage of time.

    /// Returns when something happens next without a command.
    fn next_timer(&self) -> Option<Millis> {
        let timers = [self.endings.next(), self.end.gone_from.filter(|at| *at > self.now)];
        let ending = timers.into_iter().flatten().min();
        if self.end.gone_from.is_some() {
            return ending;
        }
        let attempt = self.attempt.as_ref().map(|attempt| match &attempt.progress {
            Progress::WaitsForEnd { until, .. } => *until,
            Progress::Runs(line) => line.ends,
        });
        let timers = [
            attempt,
            self.life.retry_at().map(millis),
            self.lists.reading_ends(),
            self.expires(),
            self.idle_at(),
        ];
        timers.into_iter().flatten().chain(ending).min().map(|at| at.max(self.now))
    }

    fn expires(&self) -> Option<Millis> {
        let is_awake = self.connection.is_some() && !self.lists.is_reading();
        let is_asleep = self.life.phase() == Phase::Asleep;
        self.lists.expires().filter(|_| is_awake || is_asleep)
    }

    fn idle_at(&self) -> Option<Millis> {
        let connection = self.connection.as_ref().filter(|one| one.users.is_empty())?;
        if self.end.is_retiring {
            return Some(self.now);
        }
        let may_idle = self.setting.startup != Startup::Eager && !self.is_subscribed;
        let timeout = self.setting.idle_timeout.filter(|_| may_idle)?;
        Some(connection.unused_since + timeout)
    }

    /// Lets everything happen that is due until `to`.
    fn advance(&mut self, to: Millis) {
        self.settle();
        while let Some(at) = self.next_timer().filter(|at| *at <= to) {
            self.now = at;
            self.fire();
            self.settle();
        }
        self.now = to;
    }

    fn is_due(&self, at: Option<Millis>) -> bool {
        at.is_some_and(|at| at <= self.now)
    }

    fn fire(&mut self) {
        for number in self.endings.finish(self.now) {
            self.see(Seen::Ended(number));
        }
        if self.is_due(self.end.gone_from) {
            for answer in std::mem::take(&mut self.end.late) {
                self.see(answer);
            }
        }
        if self.end.gone_from.is_some() {
            return;
        }
        let attempt = self.attempt.clone();
        match attempt.map(|attempt| (attempt.progress.clone(), attempt)) {
            Some((Progress::WaitsForEnd { previous, until }, attempt)) if until <= self.now => {
                self.endings.abort(previous, self.now);
                for number in self.endings.finish(self.now) {
                    self.see(Seen::Ended(number));
                }
                self.run_attempt(attempt);
            }
            Some((Progress::Runs(line), attempt)) if line.ends <= self.now => {
                self.finish_attempt(&attempt, line);
            }
            _ => self.fire_when_idle(),
        }
    }

    /// As [`Self::fire`], while no attempt is due.
    fn fire_when_idle(&mut self) {
        if self.is_due(self.lists.reading_ends()) {
            match self.lists.finish_reading(self.now) {
                Some(ReadingEnd::Published) => self.see(Seen::Live(self.lists.version())),
                Some(ReadingEnd::Died) => self.die(),
                Some(ReadingEnd::TimedOut) | None => {}
            }
        } else if self.is_due(self.life.retry_at().map(millis)) {
            self.live(LifeEvent::RetryDue);
        } else if self.is_due(self.expires()) {
            self.lists.expire(self.connection.is_some());
            if self.connection.is_none() {
                self.live(LifeEvent::CatalogWanted);
            }
        } else if self.is_due(self.idle_at()) {
            self.fall_asleep();
        }
    }

    /// Does what is due at once.
    fn settle(&mut self) {
        if self.end.gone_from.is_some() {
            return;
        }
        if self.life.has_ended() {
            return self.stop();
        }
        if let Some(connection) = &self.connection {
            self.lists.read(self.now, self.setting.plan(connection.number).lists);
        }
    }

    fn fall_asleep(&mut self) {
        self.lists.cancel_reading(self.now);
        self.live(LifeEvent::Idled);
    }

    // Attempts.

    fn start_attempt(&mut self, start: Start) {
        let (previous, until) = self.endings.previous(self.now);
        let attempt = AttemptModel {
            era: self.host_era,
            reads_lists: start.reads_lists,
            is_study: start.is_study,
            progress: Progress::WaitsForEnd { previous, until },
        };
        if until <= self.now { self.run_attempt(attempt) } else { self.attempt = Some(attempt) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "the attempt goes on as another one")]
    fn run_attempt(&mut self, attempt: AttemptModel) {
        self.openings += 1;
        self.see(Seen::Opening(self.openings));
        let plan = self.setting.plan(self.openings);
        let line = Timeline::of(self.openings, plan, self.now, attempt.reads_lists);
        self.attempt = Some(AttemptModel { progress: Progress::Runs(line), ..attempt });
    }

    fn finish_attempt(&mut self, attempt: &AttemptModel, line: Timeline) {
        self.attempt = None;
        if let Err(failure) = line.outcome {
            if line.opened.is_some() {
                self.see(Seen::Ended(line.number));
            }
            self.live(LifeEvent::Failed(failure));
            self.finish_first_attempt();
            return self.lists.postpone(self.now);
        }
        self.connection = Some(ConnectionModel {
            number: line.number,
            era: attempt.era,
            users: Vec::new(),
            unused_since: self.now,
            is_used: false,
        });
        let suits_none = self.waiters.iter().all(|waiter| waiter.era != attempt.era);
        match self.waiters.first() {
            Some(first) if suits_none => {
                self.host_era = first.era;
                self.live(LifeEvent::Mismatched);
            }
            _ => {
                self.live(LifeEvent::Connected);
                self.admit(attempt);
            }
        }
    }

    fn admit(&mut self, attempt: &AttemptModel) {
        if attempt.reads_lists {
            self.lists.fetched(self.now);
            self.see(Seen::Live(self.lists.version()));
        } else {
            self.lists.woken(self.now);
        }
        self.finish_first_attempt();
        let is_needed = !attempt.is_study || !self.waiters.is_empty() || self.is_subscribed;
        for waiter in std::mem::take(&mut self.waiters) {
            let Some(connection) = &mut self.connection else { continue };
            connection.is_used = true;
            connection.unused_since = self.now;
            if !waiter.is_cancelled {
                connection.users.push(waiter.caller);
                self.see(Seen::Answered(waiter.caller, Answer::Leased(attempt.era)));
            }
        }
        if !is_needed {
            self.fall_asleep();
        }
    }

    fn refuse(&mut self, answer: &Answer) {
        for waiter in std::mem::take(&mut self.waiters) {
            if !waiter.is_cancelled {
                self.see(Seen::Answered(waiter.caller, answer.clone()));
            }
        }
    }

    // Effects.

    /// Has an event happen in the life of the server, and performs its effects.
    fn live(&mut self, event: LifeEvent) {
        let before = self.life.phase();
        let had_retry = self.life.retry_at();
        let id = self.connection.as_ref().map_or(0, |one| u32::try_from(one.number).unwrap_or(0));
        let reaction = self.life.happen(event, Duration::from_millis(self.now), id, 1.0);
        if had_retry.is_none() {
            self.check_retry();
        }
        if self.life.phase() != before {
            self.see(Seen::Phase(self.life.phase()));
        }
        self.perform(reaction);
    }

    /// Checks that an observed retry is within its bounds, and adopts it.
    fn check_retry(&mut self) {
        let Some(latest) = self.life.retry_at().map(millis) else { return };
        match self.output.retries.pop_front() {
            Some((at, due)) if at == self.now && (at..=latest).contains(&due) => {
                self.life.set_retry_at(Duration::from_millis(due));
            }
            other => {
                let now = self.now;
                let error = format!("at {now} a retry until {latest} is due, and found {other:?}");
                self.output.error.get_or_insert(error);
            }
        }
    }

    fn perform(&mut self, reaction: Reaction) {
        let Reaction { closed, buried, started, told, refused, .. } = reaction;
        if closed.or(buried).is_some()
            && let Some(connection) = self.connection.take()
        {
            let plan = self.setting.plan(connection.number);
            let replaced =
                self.endings.replace(connection.number, self.now + plan.ending, self.now);
            if let Some(number) = replaced {
                self.see(Seen::Ended(number));
            }
        }
        if let Some(start) = started {
            self.start_attempt(start);
        }
        match told {
            Some(Notice::Unreachable | Notice::AwaitingLogin) => self.see(Seen::Troubled(true)),
            Some(Notice::Offered) => self.see(Seen::Troubled(false)),
            Some(Notice::Evicted) => self.see(Seen::Evicted),
            None => {}
        }
        let Some((refusal, _)) = refused else { return };
        if matches!(refusal, Refusal::Strike { .. } | Refusal::GivenUp) {
            self.see(Seen::LoadFailed);
        }
        self.refuse(&match refusal {
            Refusal::Strike { left } => Answer::Strike { left },
            Refusal::GivenUp => Answer::GivenUp,
            Refusal::Unreachable | Refusal::Ending => Answer::Unreachable,
            Refusal::NoLogin => Answer::NoLogin,
            Refusal::Gone => Answer::Gone,
        });
    }

    fn finish_first_attempt(&mut self) {
        let is_over = std::mem::replace(&mut self.end.is_first_attempt_over, true);
        // Nothing waits for the first attempt of a lazy server.
        if !is_over && self.setting.startup != Startup::Lazy {
            self.see(Seen::FirstAttemptOver);
        }
    }

    fn see(&mut self, seen: Seen) {
        self.output.seen.push((self.now, seen));
    }
}

/// Rounds up, as timers do.
fn millis(time: Duration) -> Millis {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(Millis::MAX)
}
