//! The time for which a script has run: processor time where the system measures that of a thread,
//! so that a busy machine does not end a script early.

use std::{cell::Cell, time::Duration};

pub(super) struct Stopwatch {
    limit: Duration,
    /// The time before the present run.
    before: Cell<Duration>,
    /// The time of the thread at the begin of the present run.
    since: Cell<Option<Duration>>,
}

impl Stopwatch {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, before: Cell::new(Duration::ZERO), since: Cell::new(None) }
    }

    /// Counts the time of a run.
    pub(super) fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        self.since.set(Some(time_of_thread()));
        let done = run();
        self.before.set(self.elapsed());
        self.since.set(None);
        done
    }

    pub(super) fn is_over(&self) -> bool {
        self.elapsed() >= self.limit
    }

    fn elapsed(&self) -> Duration {
        let running = self.since.get().map(|since| time_of_thread().saturating_sub(since));
        self.before.get() + running.unwrap_or_default()
    }
}

/// Returns the processor time of this thread.
#[cfg(unix)]
fn time_of_thread() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock.now().map(Duration::from).unwrap_or_default()
}

/// Returns the time since the first call.
#[cfg(not(unix))]
fn time_of_thread() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(time: Duration) {
        let begin = time_of_thread();
        while time_of_thread() < begin + time {}
    }

    #[test]
    fn only_runs_count() {
        let stopwatch = Stopwatch::new(Duration::from_millis(20));
        compute(Duration::from_millis(30));
        stopwatch.during(|| compute(Duration::from_millis(10)));
        assert!(!stopwatch.is_over());
        stopwatch.during(|| compute(Duration::from_millis(10)));
        assert!(stopwatch.is_over());
    }
}
