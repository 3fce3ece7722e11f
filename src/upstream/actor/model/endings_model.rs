//! The reference model of connections that are ending.

use super::scenario::Millis;

/// Maximum time for which an attempt, or the end of the actor, waits for the previous connection.
const PREVIOUS_END_LIMIT: Millis = 800;

#[derive(Debug, Default)]
pub(super) struct Endings {
    /// The connections by number, and when their end is complete.
    running: Vec<(usize, Millis)>,
    /// The connection for whose end the next attempt waits.
    previous: Option<usize>,
}

impl Endings {
    pub(super) fn add(&mut self, number: usize, at: Millis) {
        self.running.push((number, at));
    }

    /// Adds a connection for whose end the next attempt waits. One before it ends at once, and is
    /// returned.
    pub(super) fn replace(&mut self, number: usize, at: Millis, now: Millis) -> Option<usize> {
        let before = self.previous.replace(number);
        let ends_now = before.filter(|before| self.end_of(*before).is_some_and(|end| end > now));
        self.running.retain(|(other, _)| Some(*other) != ends_now);
        self.running.push((number, at));
        ends_now
    }

    /// Returns the connection for whose end an attempt that begins now waits, and until when.
    pub(super) fn previous(&mut self, now: Millis) -> (Option<usize>, Millis) {
        let previous = self.previous.take();
        (previous, self.waiting_for(previous, now))
    }

    /// Returns until when the end of the actor waits, if its own connection ends at `now`.
    pub(super) fn wait_for_previous(&mut self, now: Millis) -> Millis {
        let previous = self.previous.take();
        let until = self.waiting_for(previous, now);
        for (number, at) in &mut self.running {
            if Some(*number) == previous {
                *at = until.min(*at);
            }
        }
        until
    }

    fn waiting_for(&self, number: Option<usize>, now: Millis) -> Millis {
        let end = number.and_then(|number| self.end_of(number));
        end.map_or(now, |end| end.clamp(now, now + PREVIOUS_END_LIMIT))
    }

    fn end_of(&self, number: usize) -> Option<Millis> {
        self.running.iter().find(|(other, _)| *other == number).map(|(_, at)| *at)
    }

    /// Ends a connection at once.
    pub(super) fn abort(&mut self, number: Option<usize>, now: Millis) {
        for (other, at) in &mut self.running {
            if Some(*other) == number {
                *at = now.min(*at);
            }
        }
    }

    pub(super) fn next(&self) -> Option<Millis> {
        self.running.iter().map(|(_, at)| *at).min()
    }

    /// Removes and returns the connections whose end is complete.
    pub(super) fn finish(&mut self, now: Millis) -> Vec<usize> {
        let (over, running) = self.running.iter().partition(|(_, at)| *at <= now);
        self.running = running;
        let over: Vec<(usize, Millis)> = over;
        over.into_iter().map(|(number, _)| number).collect()
    }
}
