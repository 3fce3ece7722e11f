//! The time for which a script has run, without its waiting.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

pub(super) struct Stopwatch {
    limit: Duration,
    /// The time before the present run.
    before: Cell<Duration>,
    since: Cell<Option<Instant>>,
}

impl Stopwatch {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, before: Cell::new(Duration::ZERO), since: Cell::new(None) }
    }

    /// Counts the time of a run.
    pub(super) fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        self.since.set(Some(Instant::now()));
        let done = run();
        self.before.set(self.elapsed());
        self.since.set(None);
        done
    }

    pub(super) fn is_over(&self) -> bool {
        self.elapsed() >= self.limit
    }

    fn elapsed(&self) -> Duration {
        let running = self.since.get().map(|since| since.elapsed()).unwrap_or_default();
        self.before.get() + running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_does_not_count() {
        let stopwatch = Stopwatch::new(Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!stopwatch.is_over());
        stopwatch.during(|| std::thread::sleep(Duration::from_millis(30)));
        assert!(stopwatch.is_over());
    }
}
