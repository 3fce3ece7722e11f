//! What a server sends of its own accord: questions, notifications, and noise.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    Observer,
    activity::{Activity, InUse},
    fetch::{Kinds, Stale},
};
use crate::{
    peer::{Handler, Peer, Unreadable},
    protocol::error,
    wire::{Id, Notification, Outcome, Raw, Request, edit},
};

/// A request of a server to a host: sampling, elicitation, roots, or something newer.
pub struct Question {
    pub server: usize,
    pub request: Request,
    /// Cancelled when the server takes the question back, or is gone.
    pub cancelled: CancellationToken,
    peer: Peer,
    asked: Arc<Asked>,
    /// A server that waits for an answer is not idle.
    _in_use: Option<InUse>,
}

impl Question {
    pub fn answer(self, outcome: Outcome) {
        self.peer.respond(self.request.id.clone(), outcome);
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.asked.forget(&self.request.id);
    }
}

/// Questions of one server that may be open at once.
const MAX_QUESTIONS: usize = 256;
/// How long a server that does not read our answers may go on sending.
const PATIENCE: Duration = Duration::from_secs(5);

/// The questions that a server waits for.
#[derive(Default)]
struct Asked(Mutex<HashMap<Id, CancellationToken>>);

impl Asked {
    /// `false` when the id is in use, or too many questions are open already.
    fn insert(&self, id: &Id, token: &CancellationToken) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_new = asked.len() < MAX_QUESTIONS && !asked.contains_key(id);
        if is_new {
            asked.insert(id.clone(), token.clone());
        }
        is_new
    }

    fn forget(&self, id: &Id) -> Option<CancellationToken> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(id)
    }
}

pub(super) struct Inbound {
    pub(super) server: usize,
    pub(super) name: String,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) stale: Arc<Stale>,
    pub(super) activity: Arc<Activity>,
    /// Set right after the peer is made, before anything is read.
    peer: OnceLock<Peer>,
    asked: Arc<Asked>,
    noise: AtomicUsize,
}

impl Inbound {
    pub(super) fn new(
        server: usize,
        name: String,
        observer: Arc<dyn Observer>,
        stale: Arc<Stale>,
        activity: Arc<Activity>,
    ) -> Self {
        let (peer, asked, noise) = Default::default();
        Self { server, name, observer, stale, activity, peer, asked, noise }
    }

    pub(super) fn attach(&self, peer: Peer) {
        // Called once; a second peer would be a mistake that the first one hides.
        let _ = self.peer.set(peer);
    }

    fn count_noise(&self, what: &str) {
        if self.noise.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(server = self.name, "skipped {what}; more of it is only counted");
        } else {
            tracing::debug!(server = self.name, "skipped {what}");
        }
    }
}

impl Handler for Inbound {
    fn request(&self, request: Request) {
        let Some(peer) = self.peer.get().cloned() else { return };
        if request.method == "ping" {
            return peer.respond(request.id, Ok(Raw::empty_object()));
        }
        let cancelled = peer.token();
        if !self.asked.insert(&request.id, &cancelled) {
            let refusal =
                error::invalid_request("the id is in use, or too many questions are open");
            return peer.respond(request.id, Err(refusal));
        }
        self.observer.question(Question {
            server: self.server,
            request,
            cancelled,
            peer,
            asked: self.asked.clone(),
            _in_use: self.activity.begin(),
        });
    }

    fn notification(&self, notification: Notification) {
        match notification.method.as_str() {
            "notifications/tools/list_changed" => self.stale.mark(Kinds::TOOLS),
            "notifications/resources/list_changed" => {
                self.stale.mark(Kinds::RESOURCES.and(Kinds::TEMPLATES));
            }
            "notifications/prompts/list_changed" => self.stale.mark(Kinds::PROMPTS),
            "notifications/cancelled" => {
                let id = notification.params.and_then(|params| edit::get(&params, "requestId"));
                if let Some(token) = id.and_then(Id::new).and_then(|id| self.asked.forget(&id)) {
                    token.cancel();
                }
            }
            // Progress that no request of ours asked for, and what only concerns our own listening.
            "notifications/progress" | "notifications/subscriptions/acknowledged" => {}
            _ => self.observer.notification(self.server, notification),
        }
    }

    fn unreadable(&self, what: Unreadable) {
        match what {
            Unreadable::Invalid(invalid) => self.count_noise(&format!("a line that is {invalid}")),
            Unreadable::Stray(response) => {
                let id = response.id.map_or_else(|| "null".to_owned(), |id| id.to_string());
                self.count_noise(&format!("a reply to nobody (id {id})"));
            }
            Unreadable::Oversized { skimmed, limit } => {
                let message = format!(
                    "a message of {} bytes is above maxMessageBytes ({limit})",
                    skimmed.size
                );
                self.count_noise(&message);
                if let (true, Some(id), Some(peer)) = (skimmed.is_call, skimmed.id, self.peer.get())
                {
                    peer.respond(id, Err(error::invalid_request(message)));
                }
            }
        }
    }

    async fn ready(&self) {
        if let Some(peer) = self.peer.get().filter(|peer| peer.is_full()) {
            peer.ready(PATIENCE).await;
            if peer.is_stalled() {
                tracing::warn!(
                    server = self.name,
                    "it asks and does not read the answers; giving it up"
                );
                peer.close();
            }
        }
        if self.observer.is_congested() {
            self.observer.ready().await;
        }
    }
}
