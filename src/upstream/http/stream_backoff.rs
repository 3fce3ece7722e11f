//! The delay before a stream is requested again.

use std::time::Duration;

use crate::base::Backoff;

const BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(500), max: Duration::from_mins(1) };
/// Limits of the delay that a server may request: a longer one would amount to no stream, a shorter
/// one to endless requests.
const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// The delays between consecutive attempts, with the delay that the server requested.
#[derive(Debug, Default)]
pub(super) struct StreamBackoff {
    attempts: u32,
    requested: Option<Duration>,
}

impl StreamBackoff {
    /// Notes that the server has requested this delay (the `retry` of an event).
    pub(super) fn request_delay(&mut self, wait: Duration) {
        self.requested = Some(wait.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER));
    }

    /// Notes that the stream has carried an event.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Returns the delay before the next attempt: the one that the server requested, and a random
    /// part (`random` in 0..1) of a time that doubles with each attempt without an event. A stream
    /// that ends normally waits too, since it may end again at once.
    pub(super) fn next_delay(&mut self, random: f64) -> Duration {
        let jitter = BACKOFF.delay(self.attempts, random);
        self.attempts = self.attempts.saturating_add(1);
        match self.requested {
            // The first delay is the server's choice, which is how a server asks for polling.
            Some(requested) if self.attempts == 1 => requested,
            Some(requested) => requested + jitter,
            None => jitter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_minute_and_reset_on_data() {
        let mut backoff = StreamBackoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.next_delay(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        backoff.reset();
        assert_eq!(backoff.next_delay(0.5).as_millis(), 250);
    }

    #[test]
    fn requested_delay_is_clamped() {
        let mut backoff = StreamBackoff::default();
        backoff.request_delay(Duration::from_millis(300));
        assert_eq!(backoff.next_delay(1.0).as_millis(), 300);
        assert_eq!(backoff.next_delay(1.0).as_millis(), 1300);
        backoff.reset();
        backoff.request_delay(Duration::from_hours(9));
        assert_eq!(backoff.next_delay(0.0), MAX_RETRY_AFTER);
        backoff.reset();
        backoff.request_delay(Duration::ZERO);
        assert_eq!(backoff.next_delay(1.0), MIN_RETRY_AFTER);
    }
}
