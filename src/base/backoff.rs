//! Delays between attempts.

use std::time::Duration;

/// Delays that double with each consecutive attempt, up to a maximum.
pub(crate) struct Backoff {
    pub initial: Duration,
    pub max: Duration,
}

impl Backoff {
    /// Returns the delay after `attempts` earlier delays: a random part (`random` in 0..1) of the
    /// doubled time. Full jitter keeps many clients from retrying at the same moment.
    pub(crate) fn delay(&self, attempts: u32, random: f64) -> Duration {
        let ceiling = self.initial.saturating_mul(1 << attempts.min(16)).min(self.max);
        ceiling.mul_f64(random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_the_maximum() {
        let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(5) };
        let delays: Vec<u64> =
            (0..=10).map(|attempts| backoff.delay(attempts, 1.0).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.delay(u32::MAX, 1.0), backoff.max);
        assert_eq!(backoff.delay(2, 0.25), Duration::from_secs(1));
    }
}
