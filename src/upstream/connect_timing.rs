//! The duration of the phases of an attempt to connect.

use std::time::{Duration, Instant};

/// The duration of each phase of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectTiming {
    /// The start of the process, or the first HTTP exchange.
    pub opening: Duration,
    pub handshake: Duration,
    /// `None` for a wake, which does not wait for the lists.
    pub lists: Option<Duration>,
}

impl ConnectTiming {
    pub(crate) fn total(&self) -> Duration {
        self.opening + self.handshake + self.lists.unwrap_or_default()
    }
}

/// Measures the phases of an attempt as it proceeds.
pub(super) struct PhaseClock {
    last: Instant,
    pub(super) timing: ConnectTiming,
}

impl PhaseClock {
    pub(super) fn start() -> Self {
        Self { last: Instant::now(), timing: ConnectTiming::default() }
    }

    pub(super) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.last, now)
    }
}
