//! The calls that a script has made.

use std::fmt;

use crate::base::{one_line, shortened};

/// Maximum length of a name in a report, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A call that a script has made, for the report.
pub(super) struct MadeCall {
    pub(super) name: String,
    pub(super) outcome: CallOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Open,
    Done,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Tool,
    /// Tools that are found; the answer is JSON text of dormouse.
    Search,
    /// The definition of a tool, in the same way.
    Describe,
}

impl fmt::Display for MadeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            CallOutcome::Open => "not answered",
            CallOutcome::Done => "done",
            CallOutcome::Failed => "failed",
        };
        write!(f, "{} ({outcome})", shortened(&one_line(&self.name), MAX_NAME_CHARS))
    }
}
