//! What a server sends of its own accord: questions, notifications, and noise.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    Observer,
    activity::{Activity, InUse},
    fetch::{Kinds, Stale},
    noise::Noise,
};
use crate::{
    base::Lock,
    peer::{Handler, Peer, Unreadable},
    protocol::{error, method},
    wire::{Id, Invalid, Notification, Outcome, Raw, Request, edit},
};

/// A request of a server to a host: sampling, elicitation, roots, or something newer.
pub struct Question {
    pub request: Request,
    /// The id of our request on whose stream it came, where the transport tells.
    pub cause: Option<u64>,
    /// Cancelled when the server takes the question back, or is gone.
    pub cancelled: CancellationToken,
    peer: Peer,
    asked: Arc<Asked>,
    is_answered: bool,
    /// A server that waits for an answer is not idle.
    _in_use: Option<InUse>,
}

impl Question {
    pub fn answer(mut self, outcome: Outcome) {
        self.is_answered = true;
        self.peer.respond(self.request.id.clone(), outcome);
    }
}

impl Drop for Question {
    /// A server must not wait for an answer that nobody will give.
    fn drop(&mut self) {
        self.asked.forget(&self.request.id);
        if !self.is_answered && !self.cancelled.is_cancelled() {
            let refusal = error::internal("the question was not answered");
            self.peer.respond(self.request.id.clone(), Err(refusal));
        }
    }
}

/// Questions of one server that may be open at once.
const MAX_QUESTIONS: usize = 256;
/// How long a server that does not read our answers may go on sending.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The questions that a server waits for.
#[derive(Default)]
struct Asked(Lock<HashMap<Id, CancellationToken>>);

impl Asked {
    /// `false` when the id is in use, or too many questions are open already.
    fn insert(&self, id: &Id, token: &CancellationToken) -> bool {
        let mut asked = self.0.lock();
        let is_new = asked.len() < MAX_QUESTIONS && !asked.contains_key(id);
        if is_new {
            asked.insert(id.clone(), token.clone());
        }
        is_new
    }

    fn forget(&self, id: &Id) -> Option<CancellationToken> {
        self.0.lock().remove(id)
    }
}

/// What arrives from one server: all of it, or what comes on the stream of one request.
#[derive(Clone)]
pub(super) struct Inbound {
    source: Arc<Source>,
    cause: Option<u64>,
}

struct Source {
    name: String,
    observer: Arc<dyn Observer>,
    stale: Arc<Stale>,
    activity: Arc<Activity>,
    peer: Peer,
    asked: Arc<Asked>,
    noise: Arc<Noise>,
}

impl Inbound {
    pub(super) fn new(
        name: String,
        observer: Arc<dyn Observer>,
        stale: Arc<Stale>,
        activity: Arc<Activity>,
        peer: Peer,
        noise: Arc<Noise>,
    ) -> Self {
        let asked = Arc::default();
        let source = Arc::new(Source { name, observer, stale, activity, peer, asked, noise });
        Self { source, cause: None }
    }

    /// What arrives on the stream of our request `id`.
    pub(super) fn caused_by(&self, id: u64) -> Self {
        Self { source: self.source.clone(), cause: Some(id) }
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.source.peer
    }

    pub(super) fn server(&self) -> &str {
        &self.source.name
    }
}

impl Source {
    fn count_noise(&self, what: &str) {
        match self.noise.hear(what) {
            (what, true) => {
                tracing::warn!(server = self.name, "skipped {what}; more of it is only counted");
            }
            (what, false) => tracing::debug!(server = self.name, "skipped {what}"),
        }
    }
}

impl Handler for Inbound {
    fn request(&self, request: Request) {
        let Source { peer, asked, activity, observer, .. } = self.source.as_ref();
        if request.method == method::PING {
            return peer.respond(request.id, Ok(Raw::empty_object()));
        }
        let cancelled = peer.token();
        if !asked.insert(&request.id, &cancelled) {
            let refusal =
                error::invalid_request("the id is in use, or too many questions are open");
            return peer.respond(request.id, Err(refusal));
        }
        observer.question(Question {
            request,
            cause: self.cause,
            cancelled,
            peer: peer.clone(),
            asked: asked.clone(),
            is_answered: false,
            _in_use: activity.begin(),
        });
    }

    fn notification(&self, notification: Notification) {
        let Source { stale, asked, observer, .. } = self.source.as_ref();
        if let Some(kinds) = Kinds::changed_by(&notification.method) {
            stale.tell(kinds);
            return observer.notification(notification, self.cause);
        }
        match notification.method.as_str() {
            method::CANCELLED => {
                let id = notification.params.and_then(|params| edit::get(&params, "requestId"));
                if let Some(token) = id.and_then(Id::new).and_then(|id| asked.forget(&id)) {
                    token.cancel();
                }
            }
            // The server tells us of changes from now on; of what it changed since it was listed it has not.
            method::SUBSCRIPTIONS_ACKNOWLEDGED => {
                stale.mark(Kinds::ALL);
                observer.notification(notification, self.cause);
            }
            // No request of ours asked for it.
            method::PROGRESS => {}
            _ => observer.notification(notification, self.cause),
        }
    }

    fn unreadable(&self, what: Unreadable) {
        let source = &self.source;
        match what {
            Unreadable::Invalid(Invalid::NotJson { start, .. }) => {
                source.count_noise(&format!("a line that is not JSON: {start:?}"));
            }
            Unreadable::Invalid(invalid) => {
                source.count_noise(&format!("a line that is {invalid}"));
            }
            Unreadable::Stray(response) => {
                let id = response.id.map_or_else(|| "null".to_owned(), |id| id.to_string());
                source.count_noise(&format!("a reply to nobody (id {id})"));
            }
            Unreadable::Oversized { skimmed, limit } => {
                let message = format!(
                    "a message of {} bytes is above maxMessageBytes ({limit})",
                    skimmed.size
                );
                source.count_noise(&message);
                if let (true, Some(id)) = (skimmed.is_call, skimmed.id) {
                    source.peer.respond(id, Err(error::invalid_request(message)));
                }
            }
        }
    }

    async fn ready(&self) {
        let Source { name, peer, observer, .. } = self.source.as_ref();
        if peer.is_full() {
            peer.ready(READ_TIMEOUT).await;
            if peer.is_stalled() && !peer.is_closed() {
                tracing::warn!(
                    server = name,
                    "it asks and does not read the answers; giving it up"
                );
                peer.close();
            }
        }
        if observer.is_congested() {
            observer.ready().await;
        }
    }
}
