//! A reference model of the life of a server, written from docs/design/lifecycle.md.
//!
//! It keeps facts (whether the catalog is live, when the last attempt failed) where the code has
//! states with purposes, so that the two are unlikely to have the same mistake.

use std::time::Duration;

use crate::{config::Startup, upstream::Phase};

/// The strike that evicts a server.
const LAST_STRIKE: u8 = 3;
/// Time after a failure in which a call gets that failure.
const FRESH: Duration = Duration::from_secs(2);
/// Time connected that resets the count of failures.
const STABLE: Duration = Duration::from_mins(1);
/// The longest delay before the next attempt of an eager server.
const MAX_DELAY: Duration = Duration::from_mins(5);

/// The reason that an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Failure {
    Ordinary,
    /// A user has to log in.
    NoLogin,
    /// A login exists and does not help.
    BadLogin,
    /// This machine is out of descriptors, processes or memory.
    Exhausted,
}

/// An event in the life of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::upstream) enum LifeEvent {
    Wanted,
    CatalogWanted,
    Recalled,
    Connected,
    Mismatched,
    Failed(Failure),
    Died,
    Idled,
    RetryDue,
    LoggedIn,
    Unsuitable,
    Retired,
    Stopped,
}

/// The effects of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::upstream) struct Reaction {
    /// A connection that is closed, or that ended by itself.
    pub(in crate::upstream) closed: Option<u32>,
    pub(in crate::upstream) buried: Option<u32>,
    pub(in crate::upstream) started: Option<Start>,
    /// True if the waiting callers get the connection.
    pub(in crate::upstream) is_admitted: bool,
    pub(in crate::upstream) told: Option<Notice>,
    /// The error of the waiting callers, and the failure behind it.
    pub(in crate::upstream) refused: Option<(Refusal, Option<Failure>)>,
    pub(in crate::upstream) is_forgotten: bool,
}

/// An attempt that begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::upstream) struct Start {
    pub(in crate::upstream) reads_lists: bool,
    /// True if the connection is closed once the lists are read, unless a caller waits.
    pub(in crate::upstream) is_study: bool,
}

/// The content of what hosts are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::upstream) enum Notice {
    Unreachable,
    AwaitingLogin,
    Offered,
    Evicted,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::upstream) enum Refusal {
    Strike { left: u8 },
    GivenUp,
    Unreachable,
    NoLogin,
    Ending,
    Gone,
}

/// The relation to the server at one moment.
#[derive(Clone, Copy, Debug)]
enum Link {
    None,
    Attempting {
        is_study: bool,
    },
    Connected {
        id: u32,
        since: Duration,
    },
    AwaitingLogin {
        is_study: bool,
    },
    RetryAt(Duration),
    /// Connected until nothing is in flight, and never again.
    Retiring {
        id: u32,
    },
}

#[derive(Debug)]
pub(in crate::upstream) struct LifeModel {
    startup: Startup,
    is_enabled: bool,
    is_evicted: bool,
    /// The phase in which the server has ended.
    ended_in: Option<Phase>,
    /// True if the catalog is live.
    is_live: bool,
    strikes: u8,
    /// Consecutive failed attempts and short lives of an eager server.
    failures: u32,
    last_failure: Option<(Duration, Failure)>,
    link: Link,
}

impl LifeModel {
    pub(in crate::upstream) fn new(startup: Startup, is_enabled: bool, is_live: bool) -> Self {
        Self {
            startup,
            is_enabled,
            is_evicted: false,
            ended_in: None,
            is_live,
            strikes: 0,
            failures: 0,
            last_failure: None,
            link: Link::None,
        }
    }

    pub(in crate::upstream) fn phase(&self) -> Phase {
        match self.link {
            _ if self.has_ended() => self.ended_in.unwrap_or(Phase::Unloaded),
            _ if !self.is_enabled => Phase::Disabled,
            _ if self.is_evicted => Phase::Evicted,
            Link::Attempting { .. } => Phase::Loading,
            Link::Connected { .. } | Link::Retiring { .. } => Phase::Awake,
            Link::AwaitingLogin { .. } => Phase::AwaitingLogin,
            Link::RetryAt(_) => Phase::BackingOff,
            Link::None if self.is_live => Phase::Asleep,
            Link::None => Phase::Unloaded,
        }
    }

    pub(in crate::upstream) fn has_ended(&self) -> bool {
        self.ended_in.is_some()
    }

    pub(in crate::upstream) fn strikes(&self) -> u8 {
        self.strikes
    }

    /// Returns when the next attempt of an eager server is due.
    pub(in crate::upstream) fn retry_at(&self) -> Option<Duration> {
        match self.link {
            Link::RetryAt(at) => Some(at),
            _ => None,
        }
    }

    /// Replaces the time of the next attempt of an eager server by a random one before it.
    pub(in crate::upstream) fn set_retry_at(&mut self, at: Duration) {
        self.link = Link::RetryAt(at);
    }

    /// Applies an event at a time since the start. `id` is that of the connection, if the event
    /// brings one; `random` in 0..1 is the part of the longest delay that a retry waits.
    pub(in crate::upstream) fn happen(
        &mut self,
        event: LifeEvent,
        now: Duration,
        id: u32,
        random: f64,
    ) -> Reaction {
        match event {
            _ if self.has_ended() => after_end(event, id),
            LifeEvent::Wanted => self.want(now),
            LifeEvent::CatalogWanted => self.study(),
            LifeEvent::Recalled => self.recall(),
            LifeEvent::Connected => self.connect(now, id),
            LifeEvent::Mismatched => self.mismatch(id),
            LifeEvent::Failed(failure) => self.fail(failure, now, random),
            LifeEvent::Died => self.die(now, random),
            LifeEvent::Idled => self.idle(),
            LifeEvent::RetryDue => self.retry(),
            LifeEvent::LoggedIn => self.log_in(),
            LifeEvent::Unsuitable => self.replace(now),
            LifeEvent::Retired => self.retire(),
            LifeEvent::Stopped => self.end(matches!(self.link, Link::Retiring { .. })),
        }
    }

    fn is_offered(&self) -> bool {
        self.is_enabled && !self.is_evicted
    }

    fn want(&mut self, now: Duration) -> Reaction {
        if !self.is_offered() {
            return refusal(Refusal::Gone, None);
        }
        let is_wake = self.is_live || self.startup == Startup::Eager;
        let fresh = self.last_failure.filter(|(at, _)| is_wake && now.saturating_sub(*at) < FRESH);
        match (self.link, fresh) {
            (Link::Attempting { .. } | Link::Connected { .. } | Link::Retiring { .. }, _) => {
                Reaction::default()
            }
            (Link::AwaitingLogin { is_study }, _) => self.start(is_study),
            (Link::None | Link::RetryAt(_), Some((_, failure))) => {
                refusal(Refusal::Unreachable, Some(failure))
            }
            (Link::None | Link::RetryAt(_), None) => self.start(false),
        }
    }

    fn study(&mut self) -> Reaction {
        match self.link {
            Link::None if self.is_offered() => self.start(true),
            _ => Reaction::default(),
        }
    }

    fn recall(&mut self) -> Reaction {
        if self.is_offered() && !self.is_live && matches!(self.link, Link::None) {
            self.is_live = true;
            self.strikes = 0;
        }
        Reaction::default()
    }

    fn start(&mut self, is_study: bool) -> Reaction {
        self.link = Link::Attempting { is_study };
        let is_wake = self.is_live && !is_study && self.startup != Startup::Eager;
        let start = Start { reads_lists: !is_wake, is_study };
        Reaction { started: Some(start), ..Reaction::default() }
    }

    fn connect(&mut self, now: Duration, id: u32) -> Reaction {
        let Link::Attempting { .. } = self.link else { return closing(id) };
        self.link = Link::Connected { id, since: now };
        self.is_live = true;
        self.strikes = 0;
        self.last_failure = None;
        Reaction { is_admitted: true, ..Reaction::default() }
    }

    fn mismatch(&mut self, id: u32) -> Reaction {
        match self.link {
            Link::Attempting { is_study } => Reaction { closed: Some(id), ..self.start(is_study) },
            _ => closing(id),
        }
    }

    fn fail(&mut self, failure: Failure, now: Duration, random: f64) -> Reaction {
        let Link::Attempting { is_study } = self.link else { return Reaction::default() };
        let told = |notice, reaction| Reaction { told: Some(notice), ..reaction };
        if failure == Failure::NoLogin {
            self.link = Link::AwaitingLogin { is_study };
            return told(Notice::AwaitingLogin, refusal(Refusal::NoLogin, Some(failure)));
        }
        if self.startup == Startup::Eager {
            self.last_failure = Some((now, failure));
            self.back_off(now, random);
            return told(Notice::Unreachable, refusal(Refusal::Unreachable, Some(failure)));
        }
        self.link = Link::None;
        if self.is_live {
            self.last_failure = Some((now, failure));
            return refusal(Refusal::Unreachable, Some(failure));
        }
        let is_strike = failure == Failure::Ordinary;
        self.strikes += u8::from(is_strike);
        self.is_evicted = self.strikes == LAST_STRIKE;
        if self.is_evicted {
            return told(Notice::Evicted, refusal(Refusal::GivenUp, Some(failure)));
        }
        let left = LAST_STRIKE - self.strikes;
        let kind = if is_strike { Refusal::Strike { left } } else { Refusal::Unreachable };
        let refused = refusal(kind, Some(failure));
        // A caller of a load is told by its answer; a study has no caller.
        if is_study { told(Notice::Unreachable, refused) } else { refused }
    }

    fn back_off(&mut self, now: Duration, random: f64) {
        self.failures += 1;
        let seconds = 1_u64 << (self.failures - 1).min(16);
        let longest = Duration::from_secs(seconds).min(MAX_DELAY);
        self.link = Link::RetryAt(now + longest.mul_f64(random));
    }

    fn die(&mut self, now: Duration, random: f64) -> Reaction {
        if let Link::Retiring { id } = self.link {
            return Reaction { buried: Some(id), ..self.end(true) };
        }
        let Link::Connected { id, .. } = self.link else { return Reaction::default() };
        self.forget_failures_if_stable(now);
        if self.startup == Startup::Eager {
            self.back_off(now, random);
        } else {
            self.link = Link::None;
        }
        Reaction { buried: Some(id), ..Reaction::default() }
    }

    fn forget_failures_if_stable(&mut self, now: Duration) {
        if matches!(self.link, Link::Connected { since, .. } if now.saturating_sub(since) >= STABLE)
        {
            self.failures = 0;
        }
    }

    fn idle(&mut self) -> Reaction {
        match self.link {
            Link::Connected { id, .. } if self.startup != Startup::Eager => {
                self.link = Link::None;
                closing(id)
            }
            Link::Retiring { .. } => self.end(true),
            _ => Reaction::default(),
        }
    }

    fn retire(&mut self) -> Reaction {
        match self.link {
            Link::Connected { id, .. } => {
                self.link = Link::Retiring { id };
                Reaction::default()
            }
            Link::Retiring { .. } => Reaction::default(),
            _ => self.end(true),
        }
    }

    fn end(&mut self, is_forgotten: bool) -> Reaction {
        self.ended_in = Some(self.phase());
        self.link = Link::None;
        Reaction { is_forgotten, ..refusal(Refusal::Ending, None) }
    }

    fn retry(&mut self) -> Reaction {
        match self.link {
            Link::RetryAt(_) => self.start(false),
            _ => Reaction::default(),
        }
    }

    fn log_in(&mut self) -> Reaction {
        let Link::AwaitingLogin { is_study } = self.link else { return Reaction::default() };
        let is_unknown_hybrid = self.startup == Startup::Hybrid && !self.is_live;
        if self.startup == Startup::Eager || is_study || is_unknown_hybrid {
            return self.start(is_study || is_unknown_hybrid);
        }
        self.link = Link::None;
        self.last_failure = None;
        let told = if self.is_live { None } else { Some(Notice::Offered) };
        Reaction { told, ..Reaction::default() }
    }

    fn replace(&mut self, now: Duration) -> Reaction {
        let Link::Connected { id, .. } = self.link else { return Reaction::default() };
        self.forget_failures_if_stable(now);
        Reaction { closed: Some(id), ..self.start(false) }
    }
}

/// A server that has ended refuses its callers, and closes what still connects.
fn after_end(event: LifeEvent, id: u32) -> Reaction {
    match event {
        LifeEvent::Wanted => refusal(Refusal::Ending, None),
        LifeEvent::Connected | LifeEvent::Mismatched => closing(id),
        _ => Reaction::default(),
    }
}

fn closing(id: u32) -> Reaction {
    Reaction { closed: Some(id), ..Reaction::default() }
}

fn refusal(refusal: Refusal, failure: Option<Failure>) -> Reaction {
    Reaction { refused: Some((refusal, failure)), ..Reaction::default() }
}
