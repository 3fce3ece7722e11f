//! One outgoing request, from its registration to its answer, its deadline or its cancellation.

use std::time::Duration;

use serde_json::json;

use super::{CallError, Peer, ProgressSink, Pulse, pending::RegisteredRequest};
use crate::{
    protocol::method,
    wire::{Outcome, Raw, edit},
};

/// The options of a request.
pub(crate) struct CallOptions {
    /// Maximum time without an answer or progress; zero means no limit.
    pub silence: Duration,
    /// The sink for progress. The request carries a token of dormouse in place of the caller's.
    pub progress: Option<ProgressSink>,
}

impl CallOptions {
    pub(crate) fn silent_for(silence: Duration) -> Self {
        Self { silence, progress: None }
    }
}

/// A request with an id, before it is sent or while it waits for its answer.
///
/// Dropping it cancels the request on the other side if it was sent.
pub(crate) struct PreparedCall {
    peer: Peer,
    registered: RegisteredRequest,
    silence: Duration,
    wants_progress: bool,
    send_state: SendState,
}

/// The message that the other side gets when the caller stops waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendState {
    NotSent,
    Cancellable,
    /// MCP forbids cancelling `initialize` (2025-11-25, basic/utilities/cancellation).
    Uncancellable,
}

impl Peer {
    /// Sends a request and waits for its answer.
    ///
    /// Dropping the future, and reaching the deadline, cancel the request on the other side.
    ///
    /// # Errors
    /// If no answer arrived: see [`CallError`]. An answer that is an error is the `Err` of
    /// [`Outcome`].
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<Raw>,
        options: CallOptions,
    ) -> Result<Outcome, CallError> {
        self.prepare(options).send(method, params).await
    }

    /// Registers a request, which has its id before it is sent.
    pub(crate) fn prepare(&self, options: CallOptions) -> PreparedCall {
        let CallOptions { silence, progress } = options;
        let wants_progress = progress.is_some();
        let registered = self.register(progress);
        let send_state = SendState::NotSent;
        PreparedCall { peer: self.clone(), registered, silence, wants_progress, send_state }
    }
}

impl PreparedCall {
    /// Returns the id that the other side sees.
    pub(crate) fn id(&self) -> u64 {
        self.registered.id
    }

    /// Returns a handle that keeps the request from timing out while something works on it.
    pub(crate) fn pulse(&self) -> Pulse {
        self.registered.pulse.clone()
    }

    /// Sends the request and waits for its answer.
    ///
    /// # Errors
    /// As [`Peer::request`].
    pub(crate) async fn send(
        mut self,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, CallError> {
        if self.peer.is_closed() {
            return Err(CallError::NotSent);
        }
        if self.peer.is_stalled() {
            return Err(CallError::Congested);
        }
        let id = self.registered.id;
        let params =
            if self.wants_progress { Some(with_progress_token(params, id)) } else { params };
        if !self.peer.send_request(id, method, params) {
            return Err(CallError::NotSent);
        }
        self.send_state = if method == method::INITIALIZE {
            SendState::Uncancellable
        } else {
            SendState::Cancellable
        };
        self.wait_for_answer().await
    }

    async fn wait_for_answer(&mut self) -> Result<Outcome, CallError> {
        let RegisteredRequest { answer, pulse, .. } = &mut self.registered;
        if self.silence.is_zero() {
            return answer.await.unwrap_or(Err(CallError::Closed));
        }
        loop {
            let deadline = pulse.last() + self.silence;
            match tokio::time::timeout_at(deadline, &mut *answer).await {
                Ok(answer) => return answer.unwrap_or(Err(CallError::Closed)),
                Err(_) if pulse.last() + self.silence > deadline => {}
                Err(_) => return Err(CallError::TimedOut(self.silence)),
            }
        }
    }
}

fn with_progress_token(params: Option<Raw>, id: u64) -> Raw {
    let params = params.unwrap_or_else(Raw::empty_object);
    edit::set_within(&params, "_meta", &[("progressToken", &Raw::encode(&id))])
}

impl Drop for PreparedCall {
    /// Cancels the request on the other side when the caller stops waiting.
    fn drop(&mut self) {
        let id = self.registered.id;
        let unanswered = self.peer.forget(id);
        if unanswered && self.send_state == SendState::Cancellable {
            let params = json!({"requestId": id, "reason": "no longer needed"});
            self.peer.notify(method::CANCELLED, Some(Raw::encode(&params)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Outbox;

    const SILENCE: Duration = Duration::from_secs(10);

    /// Starts a request that wants progress, to a side whose messages the test writes.
    fn requested(peer: &Peer) -> tokio::task::JoinHandle<Result<Outcome, CallError>> {
        let peer = peer.clone();
        tokio::spawn(async move {
            let options = CallOptions { silence: SILENCE, progress: Some(Box::new(|_| ())) };
            peer.request("tools/call", None, options).await
        })
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_deadline_by_one_timeout() {
        let peer = Peer::new(Outbox::default());
        let progress = Raw::encode(&json!({"progressToken": 1, "progress": 1}));
        let began = tokio::time::Instant::now();
        let answered = requested(&peer);
        for _ in 0..3 {
            tokio::time::sleep(SILENCE * 2 / 3).await;
            assert!(peer.progress(&progress));
        }
        tokio::time::sleep(SILENCE * 2 / 3).await;
        assert!(peer.settle(1, Ok(Raw::empty_object())));
        assert_eq!(answered.await.unwrap(), Ok(Ok(Raw::empty_object())));

        let silent = requested(&peer);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let progress = edit::set(&progress, "progressToken", &Raw::encode(&2));
        assert!(peer.progress(&progress));
        let spoke = tokio::time::Instant::now();
        assert_eq!(silent.await.unwrap(), Err(CallError::TimedOut(SILENCE)));
        assert_eq!(spoke.elapsed(), SILENCE);
        assert!(began.elapsed() > SILENCE * 3);
    }
}
