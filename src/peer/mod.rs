//! A JSON-RPC peer over any wire: request ids, what is pending, deadlines, cancellation both ways,
//! and progress in order before its result.
//!
//! The same peer stands towards a host and towards a server. It must not know which of the two it
//! is, nor what a method does, but for the two notifications that belong to requests themselves:
//! `notifications/progress` and `notifications/cancelled` (MCP, basic utilities).

mod call;
mod pending;
mod reader;

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use call::{Call, CallError, CallOptions, ProgressSink};
pub use pending::Pulse;
pub use reader::{MessageHandler, UnexpectedMessage, read_messages, receive, receive_message};

use crate::{
    base::Lock,
    wire::{Id, Message, Notification, Outbox, Outcome, Raw, Request, Response},
};
use pending::PendingRequests;

/// A handle on one inner. Cheap to clone; requests on it run concurrently.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerInner>,
    /// Where messages leave. A inner may have several ways out: over HTTP each response is one.
    outbox: Outbox,
}

struct PeerInner {
    pending: Lock<PendingRequests>,
    /// Cancelled once no further request can be made.
    closed: CancellationToken,
    /// Whenever nothing is pending any more.
    settled: Notify,
}

impl Peer {
    pub fn new(outbox: Outbox) -> Self {
        let inner = Arc::new(PeerInner {
            pending: Lock::default(),
            closed: CancellationToken::new(),
            settled: Notify::new(),
        });
        Self { inner, outbox }
    }

    /// The same peer, reached by another way out.
    #[must_use]
    pub fn through(&self, outbox: Outbox) -> Self {
        Self { inner: self.inner.clone(), outbox }
    }

    /// Sends a request and waits for its answer.
    ///
    /// Dropping the future cancels the request on the other side, so does the deadline.
    ///
    /// # Errors
    /// When no answer came: see [`CallError`]. An answer that is an error is the `Err` of [`Outcome`].
    pub async fn request(
        &self,
        method: &str,
        params: Option<Raw>,
        options: CallOptions,
    ) -> Result<Outcome, CallError> {
        self.prepare(options).send(method, params).await
    }

    /// A request that has its id already, before it is sent.
    pub fn prepare(&self, options: CallOptions) -> Call {
        Call::new(self.clone(), options)
    }

    /// Fails one request of ours, by its id; `false` when it was answered before.
    pub fn fail(&self, id: u64, cause: CallError) -> bool {
        self.answer(Some(&Id::from(id)), Err(cause))
    }

    /// Answers one request of ours, by its id; `false` when it was answered before.
    pub fn settle(&self, id: u64, outcome: Outcome) -> bool {
        self.answer(Some(&Id::from(id)), Ok(outcome))
    }

    /// Whether a request of ours still waits for its answer.
    pub fn is_waiting(&self, id: u64) -> bool {
        self.inner.pending.lock().is_waiting(id)
    }

    /// Sends a notification; lost where the inner is closed, as notifications are.
    pub fn notify(&self, method: &str, params: Option<Raw>) {
        let method = method.to_owned();
        self.outbox.push(Message::Notification(Notification { method, params }));
    }

    /// Answers a request of the other side.
    pub fn respond(&self, id: Id, outcome: Outcome) {
        self.outbox.push(Message::Response(Response { id: Some(id), outcome }));
    }

    /// Answers something whose id could not be read.
    pub fn respond_to_unreadable(&self, id: Option<Id>, error: Raw) {
        self.outbox.push(Message::Response(Response { id, outcome: Err(error) }));
    }

    pub fn is_closed(&self) -> bool {
        self.inner.closed.is_cancelled()
    }

    /// Resolves when the other side has closed the inner, or its process is gone.
    pub async fn closed(&self) {
        self.inner.closed.cancelled().await;
    }

    /// A token that is cancelled with the inner, or before it by whoever holds it.
    pub fn token(&self) -> CancellationToken {
        self.inner.closed.child_token()
    }

    /// Fails everything pending at once, and lets the writer finish what is queued.
    pub fn close(&self) {
        self.inner.closed.cancel();
        self.outbox.close();
        self.inner.pending.lock().fail_all();
        self.inner.settled.notify_waiters();
    }

    /// Takes no further requests; those in flight may still be answered.
    pub fn retire(&self) {
        self.inner.closed.cancel();
    }

    /// Waits until no request of ours is pending.
    pub async fn settled(&self) {
        loop {
            let mut settled = std::pin::pin!(self.inner.settled.notified());
            settled.as_mut().enable();
            if self.inner.pending.lock().is_empty() {
                return;
            }
            settled.await;
        }
    }

    /// Whether more waits to be sent than those who cause it should add to.
    pub fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Whether those who cause messages are to wait for the other side; else it loses some.
    pub fn holds_up(&self) -> bool {
        self.outbox.holds_up()
    }

    /// Whether the other side has stopped reading.
    pub fn is_stalled(&self) -> bool {
        self.outbox.is_stalled()
    }

    /// Waits until the other side has read enough of what was sent to it, or `patience` is over.
    pub async fn ready(&self, patience: Duration) {
        // A reader that waited for ever would let one stuck peer stop all others.
        let _ = tokio::time::timeout(patience, self.outbox.ready()).await;
    }

    fn send_request(&self, id: u64, method: &str, params: Option<Raw>) -> bool {
        let request = Request { id: id.into(), method: method.to_owned(), params };
        self.outbox.push(Message::Request(request))
    }

    /// Forgets a request; `false` when it was answered before.
    fn forget(&self, id: u64) -> bool {
        let mut pending = self.inner.pending.lock();
        let was_waiting = pending.forget(id);
        if was_waiting && pending.is_empty() {
            self.inner.settled.notify_waiters();
        }
        was_waiting
    }

    /// Hands an answer to the request that waits for it; `false` when none does.
    fn answer(&self, id: Option<&Id>, answer: Result<Outcome, CallError>) -> bool {
        let mut pending = self.inner.pending.lock();
        let is_awaited = pending.answer(id, answer);
        if is_awaited && pending.is_empty() {
            self.inner.settled.notify_waiters();
        }
        is_awaited
    }
}
