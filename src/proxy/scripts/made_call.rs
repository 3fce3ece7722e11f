//! The calls that a script has made.

use std::fmt;

use crate::base::{one_line, shortened};

/// Maximum length of a name in a report, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A call that a script has made, for the report.
pub(super) struct MadeCall {
    /// On one line, and shortened.
    name: String,
    outcome: CallOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Open,
    Done,
    Failed,
}

impl MadeCall {
    pub(super) fn new(name: &str, outcome: CallOutcome) -> Self {
        Self { name: shortened(&one_line(name), MAX_NAME_CHARS), outcome }
    }

    pub(super) fn is_done(&self) -> bool {
        self.outcome == CallOutcome::Done
    }
}

impl fmt::Display for MadeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            CallOutcome::Open => "not answered",
            CallOutcome::Done => "done",
            CallOutcome::Failed => "failed",
        };
        write!(f, "{} ({outcome})", self.name)
    }
}
