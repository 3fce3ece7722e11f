//! The calls that a script has made.

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
    /// The answer is the JSON text of dormouse's own tool.
    Lookup,
}
