//! How long to wait before a stream is asked for again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_mins(1);
/// A server may ask for patience, but not for so much that its stream is as good as gone, nor for so little
/// that it is asked without end.
const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// The waits between attempts in a row, and what the server asked for.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
    asked: Option<Duration>,
}

impl Backoff {
    /// The server has asked for this wait (the `retry` of an event).
    pub(super) fn ask(&mut self, wait: Duration) {
        self.asked = Some(wait.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER));
    }

    /// The stream has carried something.
    pub(super) fn worked(&mut self) {
        self.attempts = 0;
    }

    /// The wait before the next attempt: what the server asked for, and a random part (`random` in 0..1) of
    /// a time that doubles with each attempt that brought nothing. A stream that ends in order waits too: it may end at once again.
    pub(super) fn next(&mut self, random: f64) -> Duration {
        let ceiling = FIRST.saturating_mul(1 << self.attempts.min(16)).min(MAX_DELAY);
        self.attempts = self.attempts.saturating_add(1);
        let jitter = ceiling.mul_f64(random.clamp(0.0, 1.0));
        match self.asked {
            // The first time is the server's to choose; it is what polling looks like.
            Some(asked) if self.attempts == 1 => asked,
            Some(asked) => asked + jitter,
            None => jitter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_start_anew_when_something_came() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        backoff.worked();
        assert_eq!(backoff.next(0.5).as_millis(), 250);
    }

    #[test]
    fn what_the_server_asks_for_is_respected_within_reason() {
        let mut backoff = Backoff::default();
        backoff.ask(Duration::from_millis(300));
        assert_eq!(backoff.next(1.0).as_millis(), 300);
        assert_eq!(backoff.next(1.0).as_millis(), 1300);
        backoff.worked();
        backoff.ask(Duration::from_hours(9));
        assert_eq!(backoff.next(0.0), MAX_RETRY_AFTER);
        backoff.worked();
        backoff.ask(Duration::ZERO);
        assert_eq!(backoff.next(1.0), MIN_RETRY_AFTER);
    }
}
