//! Where the answer to a request goes, and what belongs to it.

use std::sync::Arc;

use crate::{peer::Peer, wire::Outbox};

/// The way back to a host for one request: over HTTP the response to its POST, on stdio the only way there is.
#[derive(Clone)]
pub(super) struct ReplyChannel {
    pub(super) peer: Peer,
    pub(super) response: Option<Arc<OpenResponse>>,
}

/// Keeps a response open; when the last one is dropped, no more can come.
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
