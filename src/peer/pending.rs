//! The requests that wait for an answer.

use std::{collections::HashMap, sync::Arc};

use tokio::{sync::oneshot, time::Instant};

use super::CallError;
use crate::{
    base::Lock,
    wire::{Id, Outcome, Raw, edit},
};

pub(super) struct PendingRequests {
    last_id: u64,
    waiting: HashMap<u64, PendingRequest>,
}

struct PendingRequest {
    answer: oneshot::Sender<Result<Outcome, CallError>>,
    progress: Option<ProgressSink>,
    pulse: Pulse,
}

/// The time at which the other side last showed that it works on a request. The request's deadline
/// counts from there.
#[derive(Clone)]
pub(crate) struct Pulse(Arc<Lock<Instant>>);

impl Pulse {
    fn now() -> Self {
        Self(Arc::new(Lock::new(Instant::now())))
    }

    /// Notes that the other side still works on the request.
    pub(crate) fn beat(&self) {
        *self.0.lock() = Instant::now();
    }

    pub(super) fn last(&self) -> Instant {
        *self.0.lock()
    }
}

/// The caller's part of a registered request.
pub(super) struct RegisteredRequest {
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<Result<Outcome, CallError>>,
    pub(super) pulse: Pulse,
}

impl PendingRequests {
    pub(super) fn counting_from(last_id: u64) -> Self {
        Self { last_id, waiting: HashMap::new() }
    }

    pub(super) fn register(&mut self, progress: Option<ProgressSink>) -> RegisteredRequest {
        self.last_id += 1;
        let (sender, answer) = oneshot::channel();
        let pulse = Pulse::now();
        let waiting = PendingRequest { answer: sender, progress, pulse: pulse.clone() };
        self.waiting.insert(self.last_id, waiting);
        RegisteredRequest { id: self.last_id, answer, pulse }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.waiting.contains_key(&id)
    }

    /// Forgets a request. Returns `false` if it was answered before.
    pub(super) fn forget(&mut self, id: u64) -> bool {
        self.waiting.remove(&id).is_some()
    }

    /// Passes on an answer. Returns `false` if no request waits for it, because the reply is late
    /// or repeated.
    pub(super) fn answer(&mut self, id: Option<&Id>, answer: Result<Outcome, CallError>) -> bool {
        let Some(waiting) = id.and_then(Id::as_u64).and_then(|id| self.waiting.remove(&id)) else {
            return false;
        };
        waiting.answer.send(answer).is_ok()
    }

    /// Passes progress on to the request that it names. Returns `false` if there is none.
    pub(super) fn progress(&mut self, params: &Raw) -> bool {
        let token = edit::get(params, "progressToken").and_then(Id::new);
        let waiting = token.as_ref().and_then(Id::as_u64).and_then(|id| self.waiting.get(&id));
        let Some(PendingRequest { progress: Some(sink), pulse, .. }) = waiting else {
            return false;
        };
        pulse.beat();
        sink(params.clone());
        true
    }

    pub(super) fn fail_all(&mut self) {
        for (_, waiting) in self.waiting.drain() {
            // The caller may have stopped waiting.
            let _ = waiting.answer.send(Err(CallError::Closed));
        }
    }
}

/// Receives the `params` of each progress notification of a request, in order, before the result.
pub(crate) type ProgressSink = Box<dyn Fn(Raw) + Send>;
