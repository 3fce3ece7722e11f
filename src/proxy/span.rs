//! One step of a trace.

use crate::protocol::TraceContext;

/// A part of a trace, with the span of which it is a part.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub context: TraceContext,
    pub parent: Option<u64>,
}

impl Span {
    /// Makes a span that is a part of this one.
    pub(super) fn child(&self) -> Self {
        Self { context: self.context.child(), parent: Some(self.context.span) }
    }
}
