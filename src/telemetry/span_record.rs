//! A span that has ended, as it is exported.

use std::sync::Arc;

use super::metric_names::Attributes;
use crate::proxy::{Span, TimeSpan};

/// A span that has ended.
#[derive(Debug)]
pub(super) struct SpanRecord {
    pub(super) span: Arc<Span>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) time: TimeSpan,
    pub(super) attributes: Attributes,
    pub(super) is_error: bool,
}

/// The side of a request on which a span is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum SpanKind {
    /// Towards a host.
    Server,
    /// Towards a server.
    Client,
}
