//! The bounded findings of a search.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// Maximum time for a search.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(2);

/// The findings of a search so far.
#[derive(Debug)]
pub(super) struct Findings {
    /// One finding a line.
    pub(super) text: String,
    /// Number of matches, of which a finding may show several.
    pub(super) count: usize,
    /// The reasons that there may be more matches.
    pub(super) gaps: Vec<Gap>,
    limit: usize,
    room: usize,
    deadline: Instant,
}

/// A reason that a search may not have found everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// There is no room for more matches.
    Full,
    OutOfTime,
    /// Values at more than this depth were not searched.
    Depth(usize),
    /// A very long line was searched in parts that have this number of bytes in common.
    Parts(usize),
}

/// The end of a search before the end of the text.
#[derive(Debug)]
pub(super) struct Stopped;

impl Findings {
    /// Creates room for at most `limit` matches, and for `room` bytes.
    pub(super) fn new(limit: usize, room: usize) -> Self {
        Self::within(MAX_SEARCH_TIME, limit, room)
    }

    /// The same for a search that may take this time.
    pub(super) fn within(time: Duration, limit: usize, room: usize) -> Self {
        let (text, count, gaps) = Default::default();
        Self { text, count, gaps, limit, room, deadline: Instant::now() + time }
    }

    /// Returns whether so many matches can be added.
    pub(super) fn can_take(&self, matches: usize) -> bool {
        self.count + matches <= self.limit
    }

    /// Adds a finding that shows so many matches, or ends the search if there is no room for it.
    pub(super) fn add(&mut self, finding: &str, matches: usize) -> Result<(), Stopped> {
        if !self.can_take(matches) || self.text.len() + finding.len() + 1 > self.room {
            return self.stop(Gap::Full);
        }
        if self.count > 0 {
            self.text.push('\n');
        }
        self.text.push_str(finding);
        self.count += matches;
        Ok(())
    }

    /// Ends the search if it has taken too long.
    pub(super) fn check_time(&mut self) -> Result<(), Stopped> {
        if Instant::now() < self.deadline { Ok(()) } else { self.stop(Gap::OutOfTime) }
    }

    /// Notes that a part was not searched.
    pub(super) fn leave_out(&mut self, gap: Gap) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    fn stop(&mut self, gap: Gap) -> Result<(), Stopped> {
        self.leave_out(gap);
        Err(Stopped)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("there are more"),
            Self::OutOfTime => {
                write!(f, "the search took longer than {} s", MAX_SEARCH_TIME.as_secs())
            }
            Self::Depth(depth) => {
                write!(f, "values at a depth of more than {depth} were not searched")
            }
            Self::Parts(bytes) => write!(
                f,
                "very long lines were searched in parts that overlap, so that a match of more \
                    than {bytes} bytes may be missing"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_ends_with_its_room_and_each_gap_is_noted_once() {
        let mut findings = Findings::within(Duration::from_hours(1), 3, 9);
        assert!(findings.add("four", 2).is_ok());
        for _ in 0..2 {
            findings.leave_out(Gap::Depth(7));
            assert!(findings.add("no", 2).is_err(), "too many matches");
            assert!(findings.add("fives", 1).is_err(), "too many bytes");
        }
        assert!(findings.add("four", 1).is_ok());
        assert_eq!((findings.text.as_str(), findings.count), ("four\nfour", 3));
        assert_eq!(findings.gaps, [Gap::Depth(7), Gap::Full]);
        assert!(findings.check_time().is_ok());
    }
}
