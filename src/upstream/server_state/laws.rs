//! Laws of the life of a server that hold for every sequence of events, whatever a model says.

use std::time::Duration;

use super::{
    Effect, MAX_STRIKES, MIN_RETRY_INTERVAL,
    model::{Failure, LifeEvent},
};
use crate::{config::Startup, upstream::Phase};

/// The history of one server, as far as the laws need it.
pub(super) struct Laws {
    startup: Startup,
    /// The connections that came, and have not been closed or buried.
    open: Vec<u32>,
    last_connection: u32,
    is_attempting: bool,
    /// True once the server was retired or stopped.
    is_leaving: bool,
    /// True if the catalog has ever been live.
    was_live: bool,
    /// Failed attempts that count as strikes, before the catalog was live.
    strikes: u8,
    /// The last failed attempt, unless an attempt has succeeded or a login has appeared since.
    failed_at: Option<Duration>,
}

impl Laws {
    pub(super) fn new(startup: Startup, is_known: bool) -> Self {
        Self {
            startup,
            open: Vec::new(),
            last_connection: 0,
            is_attempting: false,
            is_leaving: false,
            was_live: is_known,
            strikes: 0,
            failed_at: None,
        }
    }

    /// Returns the number of the connection that an event brings; 0 if it brings none.
    pub(super) fn arriving(&mut self, event: LifeEvent) -> u32 {
        if !matches!(event, LifeEvent::Connected | LifeEvent::Mismatched) {
            return 0;
        }
        self.last_connection += 1;
        self.open.push(self.last_connection);
        self.last_connection
    }

    /// Checks the effects of an event at the time `now`, in the state `before`.
    pub(super) fn check(
        &mut self,
        event: LifeEvent,
        before: Phase,
        effects: &[Effect<u32>],
        now: Duration,
    ) -> Result<(), String> {
        self.note(event, before, now);
        for effect in effects {
            match effect {
                Effect::StartAttempt(_) => {
                    if std::mem::replace(&mut self.is_attempting, true) {
                        return Err("a second attempt while one is in progress".to_owned());
                    }
                    if self.is_leaving {
                        return Err("an attempt of a server that was retired".to_owned());
                    }
                    self.check_pause(event, before, now)?;
                }
                Effect::Close(id) | Effect::Bury(id) => self.end(*id)?,
                Effect::PublishEvicted(_) => self.check_eviction()?,
                _ => {}
            }
        }
        let is_third = self.strikes >= MAX_STRIKES && !self.was_live;
        let is_evicted = effects.iter().any(|effect| matches!(effect, Effect::PublishEvicted(_)));
        if is_third && !is_evicted && before == Phase::Loading {
            return Err("the third strike does not evict".to_owned());
        }
        Ok(())
    }

    fn note(&mut self, event: LifeEvent, before: Phase, now: Duration) {
        let was_attempting = self.is_attempting;
        match event {
            LifeEvent::Connected | LifeEvent::Mismatched | LifeEvent::Failed(_) => {
                self.is_attempting = false;
            }
            LifeEvent::Retired | LifeEvent::Stopped => {
                (self.is_attempting, self.is_leaving) = (false, true);
            }
            _ => {}
        }
        match event {
            LifeEvent::Connected if was_attempting => {
                self.was_live = true;
                self.failed_at = None;
            }
            LifeEvent::Failed(failure) if was_attempting => {
                self.failed_at = Some(now);
                let is_strike = failure == Failure::Ordinary && self.startup != Startup::Eager;
                self.strikes += u8::from(is_strike && !self.was_live);
            }
            LifeEvent::LoggedIn => self.failed_at = None,
            LifeEvent::Recalled if before == Phase::Unloaded => {
                self.was_live = true;
                self.failed_at = None;
            }
            _ => {}
        }
    }

    /// A call on a server that is asleep or backing off gets a fresh failure.
    fn check_pause(&self, event: LifeEvent, before: Phase, now: Duration) -> Result<(), String> {
        let is_fresh = self.failed_at.is_some_and(|at| now.saturating_sub(at) < MIN_RETRY_INTERVAL);
        let must_pause = matches!(before, Phase::Asleep | Phase::BackingOff);
        if event == LifeEvent::Wanted && must_pause && is_fresh {
            return Err("a call starts an attempt within 2 s of a failed one".to_owned());
        }
        Ok(())
    }

    fn check_eviction(&self) -> Result<(), String> {
        match (self.startup, self.strikes) {
            (Startup::Eager, _) => Err("an eager server is evicted".to_owned()),
            (_, MAX_STRIKES) if !self.was_live => Ok(()),
            (_, strikes) => Err(format!("evicted after {strikes} strikes")),
        }
    }

    fn end(&mut self, id: u32) -> Result<(), String> {
        let place = self.open.iter().position(|open| *open == id);
        let place = place.ok_or_else(|| format!("connection {id} is ended twice"))?;
        self.open.swap_remove(place);
        Ok(())
    }

    /// Checks that no connection is open but that of the state.
    pub(super) fn check_open(&self, held: Option<u32>) -> Result<(), String> {
        if self.open.iter().copied().eq(held) {
            return Ok(());
        }
        Err(format!("connections {:?} are open, and the state has {held:?}", self.open))
    }
}
