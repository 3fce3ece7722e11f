//! A handle on one connection, for messages in both directions.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    CallError, ProgressSink,
    pending::{PendingRequests, RegisteredRequest},
};
use crate::{
    base::Lock,
    wire::{Id, Message, Notification, Outbox, Outcome, Raw, Request, Response},
};

/// A handle on one connection. Clones are cheap; requests run concurrently.
#[derive(Clone)]
pub(crate) struct Peer {
    inner: Arc<PeerInner>,
    /// The queue of outgoing messages. A connection over HTTP has several, one for each response.
    outbox: Outbox,
}

struct PeerInner {
    pending: Lock<PendingRequests>,
    /// Cancelled when no further request can be made.
    closed: CancellationToken,
    /// Notified whenever no request is pending.
    settled: Notify,
}

impl Peer {
    pub(crate) fn new(outbox: Outbox) -> Self {
        Self::counting_from(0, outbox)
    }

    /// Creates a peer whose requests have ids above `last_id`.
    pub(crate) fn counting_from(last_id: u64, outbox: Outbox) -> Self {
        let inner = Arc::new(PeerInner {
            pending: Lock::new(PendingRequests::counting_from(last_id)),
            closed: CancellationToken::new(),
            settled: Notify::new(),
        });
        Self { inner, outbox }
    }

    /// Returns the same peer with another queue for outgoing messages.
    #[must_use]
    pub(crate) fn through(&self, outbox: Outbox) -> Self {
        Self { inner: self.inner.clone(), outbox }
    }

    /// Fails one pending request by its id. Returns `false` if it was answered before.
    pub(crate) fn fail(&self, id: u64, cause: CallError) -> bool {
        self.answer(Some(&Id::from(id)), Err(cause))
    }

    /// Answers one pending request by its id. Returns `false` if it was answered before.
    pub(crate) fn settle(&self, id: u64, outcome: Outcome) -> bool {
        self.answer(Some(&Id::from(id)), Ok(outcome))
    }

    /// Returns whether a request still waits for its answer.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.inner.pending.lock().is_waiting(id)
    }

    /// Returns whether a request waits for the answer with this id.
    pub(crate) fn awaits(&self, id: Option<&Id>) -> bool {
        id.and_then(Id::as_u64).is_some_and(|id| self.is_waiting(id))
    }

    /// Sends a notification, which is lost if the connection is closed.
    pub(crate) fn notify(&self, method: &str, params: Option<Raw>) {
        let method = method.to_owned();
        self.outbox.push(Message::Notification(Notification { method, params }));
    }

    /// Answers a request of the other side.
    pub(crate) fn respond(&self, id: Id, outcome: Outcome) {
        self.outbox.push(Message::Response(Response { id: Some(id), outcome }));
    }

    /// Answers a message whose id could not be read.
    pub(crate) fn respond_to_unreadable(&self, id: Option<Id>, error: Raw) {
        self.outbox.push(Message::Response(Response { id, outcome: Err(error) }));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.closed.is_cancelled()
    }

    /// Resolves when the other side has closed the connection, or its process has ended.
    pub(crate) async fn closed(&self) {
        self.inner.closed.cancelled().await;
    }

    /// Returns a token that is cancelled with the connection, or earlier by its holder.
    pub(crate) fn token(&self) -> CancellationToken {
        self.inner.closed.child_token()
    }

    /// Fails everything pending at once, and lets the writer finish the queue.
    pub(crate) fn close(&self) {
        self.inner.closed.cancel();
        self.outbox.close();
        self.inner.pending.lock().fail_all();
        self.inner.settled.notify_waiters();
    }

    /// Accepts no further requests; pending ones may still be answered.
    pub(crate) fn retire(&self) {
        self.inner.closed.cancel();
    }

    /// Waits until no request is pending.
    pub(crate) async fn settled(&self) {
        loop {
            let mut settled = std::pin::pin!(self.inner.settled.notified());
            settled.as_mut().enable();
            if self.inner.pending.lock().is_empty() {
                return;
            }
            settled.await;
        }
    }

    /// Returns whether the queue is so long that producers should add nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Returns whether producers have to wait for the other side; otherwise it loses messages.
    pub(crate) fn holds_up(&self) -> bool {
        self.outbox.holds_up()
    }

    /// Returns whether the other side has stopped reading.
    pub(crate) fn is_stalled(&self) -> bool {
        self.outbox.is_stalled()
    }

    /// Waits until the other side has read enough of the queue, or `patience` has passed.
    pub(crate) async fn ready(&self, patience: Duration) {
        // A reader that waits forever would let one stuck peer stop all others.
        let _ = tokio::time::timeout(patience, self.outbox.ready()).await;
    }

    /// Registers a request, which gets its id.
    pub(super) fn register(&self, progress: Option<ProgressSink>) -> RegisteredRequest {
        self.inner.pending.lock().register(progress)
    }

    /// Queues a registered request. Returns `false` if the connection is closed.
    pub(super) fn send_request(&self, id: u64, method: &str, params: Option<Raw>) -> bool {
        let request = Request { id: id.into(), method: method.to_owned(), params };
        self.outbox.push(Message::Request(request))
    }

    /// Forgets a request. Returns `false` if it was answered before.
    pub(super) fn forget(&self, id: u64) -> bool {
        let mut pending = self.inner.pending.lock();
        let was_waiting = pending.forget(id);
        if was_waiting && pending.is_empty() {
            self.inner.settled.notify_waiters();
        }
        was_waiting
    }

    /// Gives an answer to its waiting request. Returns `false` if no request waits for it.
    pub(super) fn answer(&self, id: Option<&Id>, answer: Result<Outcome, CallError>) -> bool {
        let mut pending = self.inner.pending.lock();
        let is_awaited = pending.answer(id, answer);
        if is_awaited && pending.is_empty() {
            self.inner.settled.notify_waiters();
        }
        is_awaited
    }

    /// Passes progress on to the request that it names. Returns `false` if there is none.
    pub(super) fn progress(&self, params: &Raw) -> bool {
        self.inner.pending.lock().progress(params)
    }
}
