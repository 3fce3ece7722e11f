//! Questions: requests of a server to a host.

use std::{collections::HashMap, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::activity::{Activity, ActivityGuard};
use crate::{
    base::Lock,
    peer::Peer,
    protocol::error,
    wire::{Id, Outcome, Request},
};

/// Maximum number of open questions of one server.
const MAX_QUESTIONS: usize = 256;

/// A request of a server to a host: sampling, elicitation, roots, or a newer one.
pub(crate) struct Question {
    pub request: Request,
    /// The id of dormouse's request on whose stream the question arrived, if the transport tells.
    pub cause: Option<u64>,
    /// Cancelled when the server withdraws the question, or is gone.
    pub cancelled: CancellationToken,
    peer: Peer,
    open_questions: Arc<OpenQuestions>,
    is_answered: bool,
    /// A server that waits for an answer is not idle.
    _in_use: Option<ActivityGuard>,
}

impl Question {
    /// Opens a question of the server behind `peer`. Returns the request if its id is in use, or
    /// too many questions are open.
    pub(super) fn open(
        request: Request,
        cause: Option<u64>,
        peer: &Peer,
        open_questions: &Arc<OpenQuestions>,
        activity: &Arc<Activity>,
    ) -> Result<Self, Request> {
        let cancelled = peer.token();
        if !open_questions.insert(&request.id, &cancelled) {
            return Err(request);
        }
        Ok(Self {
            request,
            cause,
            cancelled,
            peer: peer.clone(),
            open_questions: open_questions.clone(),
            is_answered: false,
            _in_use: activity.begin(),
        })
    }

    pub(crate) fn answer(mut self, outcome: Outcome) {
        self.is_answered = true;
        self.peer.respond(self.request.id.clone(), outcome);
    }
}

impl Drop for Question {
    /// Refuses the question, since the server must not wait for an answer that never comes.
    fn drop(&mut self) {
        self.open_questions.remove(&self.request.id);
        if !self.is_answered && !self.cancelled.is_cancelled() {
            let refusal = error::internal("no host answered the question");
            self.peer.respond(self.request.id.clone(), Err(refusal));
        }
    }
}

/// The questions that a server waits for.
#[derive(Default)]
pub(super) struct OpenQuestions(Lock<HashMap<Id, CancellationToken>>);

impl OpenQuestions {
    /// Returns `false` if the id is in use, or too many questions are open.
    fn insert(&self, id: &Id, token: &CancellationToken) -> bool {
        let mut open_questions = self.0.lock();
        let is_new = open_questions.len() < MAX_QUESTIONS && !open_questions.contains_key(id);
        if is_new {
            open_questions.insert(id.clone(), token.clone());
        }
        is_new
    }

    /// Withdraws a question that the server does not wait for any more.
    pub(super) fn cancel(&self, id: &Id) {
        if let Some(token) = self.remove(id) {
            token.cancel();
        }
    }

    fn remove(&self, id: &Id) -> Option<CancellationToken> {
        self.0.lock().remove(id)
    }
}
