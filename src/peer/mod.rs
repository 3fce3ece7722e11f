//! A JSON-RPC peer over any wire: request ids, what is pending, deadlines, cancellation both ways,
//! and progress in order before its result.
//!
//! The same peer stands towards a host and towards a server. It must not know which of the two it
//! is, nor what a method does, but for the two notifications that belong to requests themselves:
//! `notifications/progress` and `notifications/cancelled` (MCP, basic utilities).

mod call;
mod pending;
mod reader;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

pub use call::{CallError, CallOptions, ProgressSink};
pub use reader::{Handler, Unreadable, read_messages};

use crate::wire::{Id, Message, Notification, Outbox, Outcome, Raw, Request, Response};
use pending::Pending;

/// A handle on one connection. Cheap to clone; requests on it run concurrently.
#[derive(Clone)]
pub struct Peer(Arc<Connection>);

struct Connection {
    outbox: Outbox,
    // A std mutex: held for one map operation, never across an await.
    pending: Mutex<Pending>,
    /// Cancelled once no message can arrive any more.
    closed: CancellationToken,
}

impl Peer {
    pub fn new(outbox: Outbox) -> Self {
        Self(Arc::new(Connection {
            outbox,
            pending: Mutex::default(),
            closed: CancellationToken::new(),
        }))
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
        call::request(self, method, params, options).await
    }

    /// Sends a notification; lost where the connection is closed, as notifications are.
    pub fn notify(&self, method: &str, params: Option<Raw>) {
        let method = method.to_owned();
        self.0.outbox.push(Message::Notification(Notification { method, params }));
    }

    /// Answers a request of the other side.
    pub fn respond(&self, id: Id, outcome: Outcome) {
        self.0.outbox.push(Message::Response(Response { id: Some(id), outcome }));
    }

    /// Answers something whose id could not be read.
    pub fn respond_to_unreadable(&self, id: Option<Id>, error: Raw) {
        self.0.outbox.push(Message::Response(Response { id, outcome: Err(error) }));
    }

    pub fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    /// Resolves when the other side has closed the connection, or its process is gone.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// A token that is cancelled with the connection, or before it by whoever holds it.
    pub fn token(&self) -> CancellationToken {
        self.0.closed.child_token()
    }

    /// Fails everything pending at once, and lets the writer finish what is queued.
    pub fn close(&self) {
        self.0.closed.cancel();
        self.0.outbox.close();
        self.pending().fail_all();
    }

    /// Whether more waits to be sent than those who cause it should add to.
    pub fn is_full(&self) -> bool {
        self.0.outbox.is_full()
    }

    /// Whether the other side has stopped reading.
    pub fn is_stalled(&self) -> bool {
        self.0.outbox.is_stalled()
    }

    /// Waits until the other side has read enough of what was sent to it, or `patience` is over.
    pub async fn ready(&self, patience: Duration) {
        // A reader that waited for ever would let one stuck peer stop all others.
        let _ = tokio::time::timeout(patience, self.0.outbox.ready()).await;
    }

    fn send_request(&self, id: u64, method: &str, params: Option<Raw>) -> bool {
        let request = Request { id: id.into(), method: method.to_owned(), params };
        self.0.outbox.push(Message::Request(request))
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.0.pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
