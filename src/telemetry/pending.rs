//! The ends of requests that the folds have not taken yet. They are only noted on the way of a
//! request, and taken together, so that a call costs little more than without telemetry.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::{
    base::Lock,
    proxy::{Bodies, EndedCall, EndedRequest},
    wire::Raw,
};

/// Maximum number of pending ends. The caller that reaches it runs the folds.
const MAX_PENDING: usize = 4096;
/// Maximum size of the texts of pending calls, in bytes.
const MAX_PENDING_BYTES: usize = 16 * 1024 * 1024;

/// The end of a request.
pub(super) enum Ended {
    Request {
        request: EndedRequest,
        /// The size of the result, if it is not an error object.
        result_bytes: Option<usize>,
    },
    Call {
        call: Arc<EndedCall>,
        /// The texts, if they are logged.
        bodies: Option<Bodies>,
    },
}

#[derive(Default)]
pub(super) struct Pending {
    noted: Lock<Noted>,
    first: Notify,
}

#[derive(Default)]
struct Noted {
    ended: Vec<Ended>,
    bytes: usize,
}

impl Pending {
    /// Notes an end. Returns whether the caller has to take all.
    pub(super) fn note(&self, ended: Ended) -> bool {
        let mut noted = self.noted.lock();
        noted.bytes += ended.bytes();
        noted.ended.push(ended);
        let (count, bytes) = (noted.ended.len(), noted.bytes);
        drop(noted);
        if count == 1 {
            self.first.notify_one();
        }
        count >= MAX_PENDING || bytes >= MAX_PENDING_BYTES
    }

    /// Waits until there is an end to take.
    pub(super) async fn wait(&self) {
        self.first.notified().await;
    }

    pub(super) fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut *self.noted.lock()).ended
    }
}

impl Ended {
    /// Returns the size of the messages that are kept in memory with it, in bytes.
    fn bytes(&self) -> usize {
        let Self::Call { call, bodies } = self else { return 0 };
        let answer = bodies.as_ref().and_then(|bodies| bodies.answer.as_ref());
        // The identity of a modern host is a part of its request.
        call.size.params + answer.map_or(0, Raw::len)
    }
}
