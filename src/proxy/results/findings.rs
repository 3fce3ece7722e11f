//! The bounded findings of a search.

use std::time::{Duration, Instant};

/// Maximum time for a search.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(2);

/// The findings of a search so far, one a line.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) text: String,
    pub(super) count: usize,
    /// The reason why not everything was searched.
    pub(super) stopped: Option<String>,
    limit: usize,
    room: usize,
    begun: Instant,
}

/// The end of a search before the end of the text.
#[derive(Debug)]
pub(super) struct Stopped;

impl Findings {
    /// Creates room for at most `limit` findings, and for `room` bytes.
    pub(super) fn new(limit: usize, room: usize) -> Self {
        let (text, count, stopped) = Default::default();
        Self { text, count, stopped, limit, room, begun: Instant::now() }
    }

    #[cfg(test)]
    pub(super) fn out_of_time() -> Self {
        let begun = Instant::now().checked_sub(2 * MAX_SEARCH_TIME).unwrap();
        Self { begun, ..Self::new(50, 8000) }
    }

    /// Adds a finding, or ends the search if there is no room for it.
    pub(super) fn add(&mut self, finding: &str) -> Result<(), Stopped> {
        if self.count >= self.limit || self.text.len() + finding.len() + 1 > self.room {
            return self.stop("there are more".to_owned());
        }
        if self.count > 0 {
            self.text.push('\n');
        }
        self.text.push_str(finding);
        self.count += 1;
        Ok(())
    }

    /// Ends the search if it has taken too long.
    pub(super) fn check_time(&mut self) -> Result<(), Stopped> {
        if !self.is_out_of_time() {
            return Ok(());
        }
        self.stop(format!("the search took longer than {} s", MAX_SEARCH_TIME.as_secs()))
    }

    pub(super) fn is_out_of_time(&self) -> bool {
        self.begun.elapsed() > MAX_SEARCH_TIME
    }

    /// Notes that a part was not searched.
    pub(super) fn leave_out(&mut self, what: &str) {
        self.stopped.get_or_insert_with(|| what.to_owned());
    }

    fn stop(&mut self, reason: String) -> Result<(), Stopped> {
        self.stopped = Some(reason);
        Err(Stopped)
    }
}
