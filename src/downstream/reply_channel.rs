//! The channel to a host for the answer to one request.

use std::sync::Arc;

use crate::{peer::Peer, wire::Outbox};

/// The channel to a host for one request: over HTTP the response to its POST, on stdio the only
/// channel there is.
#[derive(Clone)]
pub(super) struct ReplyChannel {
    pub(super) peer: Peer,
    pub(super) response: Option<Arc<OpenResponse>>,
}

/// Keeps a response open. When the last reference is dropped, the response ends.
#[derive(Debug)]
pub(super) struct OpenResponse(Outbox);

impl OpenResponse {
    pub(super) fn new(outbox: Outbox) -> Arc<Self> {
        Arc::new(Self(outbox))
    }
}

impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.0.close();
    }
}
