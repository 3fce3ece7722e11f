//! The delay before an eager server is tried again.

use std::time::Duration;

const INITIAL_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_mins(5);

/// Returns the delay after `failures` consecutive failures: a random part (`random` in 0..1) of 1,
/// 2, 4, 8 s … 5 min. Full jitter keeps many servers from retrying at the same moment.
pub(super) fn retry_delay(failures: u32, random: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = INITIAL_DELAY.saturating_mul(1 << doublings).min(MAX_DELAY);
    ceiling.mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_five_minutes() {
        let ceilings: Vec<u64> =
            (1..=11).map(|failures| retry_delay(failures, 1.0).as_secs()).collect();
        assert_eq!(ceilings, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(retry_delay(u32::MAX, 1.0), MAX_DELAY);
        assert_eq!(retry_delay(3, 0.25), Duration::from_secs(1));
    }
}
