//! Messages that a server sends unasked: questions, notifications, and noise.

use std::{sync::Arc, time::Duration};

use super::{
    Question, ServerObserver,
    activity::Activity,
    noise::Noise,
    question::OpenQuestions,
    stale_lists::{ListKinds, StaleLists},
};
use crate::{
    peer::{MessageHandler, Peer, UnexpectedMessage},
    protocol::{error, method},
    wire::{Id, InvalidMessage, Notification, Raw, Request, edit},
};

/// Maximum time for which a server that does not read the answers may go on sending.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Handles the messages of one server: all of them, or those on the stream of one request.
#[derive(Clone)]
pub(super) struct ServerInbound {
    context: Arc<InboundContext>,
    cause: Option<u64>,
}

struct InboundContext {
    name: String,
    observer: Arc<dyn ServerObserver>,
    stale: Arc<StaleLists>,
    activity: Arc<Activity>,
    peer: Peer,
    open_questions: Arc<OpenQuestions>,
    noise: Arc<Noise>,
}

impl ServerInbound {
    pub(super) fn new(
        name: String,
        observer: Arc<dyn ServerObserver>,
        stale: Arc<StaleLists>,
        activity: Arc<Activity>,
        peer: Peer,
        noise: Arc<Noise>,
    ) -> Self {
        let open_questions = Arc::default();
        let context = Arc::new(InboundContext {
            name,
            observer,
            stale,
            activity,
            peer,
            open_questions,
            noise,
        });
        Self { context, cause: None }
    }

    /// Returns a handler for the stream of dormouse's request `id`.
    pub(super) fn caused_by(&self, id: u64) -> Self {
        Self { context: self.context.clone(), cause: Some(id) }
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.context.peer
    }

    pub(super) fn server(&self) -> &str {
        &self.context.name
    }
}

impl InboundContext {
    fn count_noise(&self, what: &str) {
        match self.noise.record(what) {
            (what, true) => {
                tracing::warn!(server = self.name, "skipped {what}; further ones are only counted");
            }
            (what, false) => tracing::debug!(server = self.name, "skipped {what}"),
        }
    }
}

impl MessageHandler for ServerInbound {
    fn request(&self, request: Request) {
        let InboundContext { peer, open_questions, activity, observer, .. } = self.context.as_ref();
        if request.method == method::PING {
            return peer.respond(request.id, Ok(Raw::empty_object()));
        }
        match Question::open(request, self.cause, peer, open_questions, activity) {
            Ok(question) => observer.question(question),
            Err(request) => {
                let refusal =
                    error::invalid_request("the id is in use, or too many questions are open");
                peer.respond(request.id, Err(refusal));
            }
        }
    }

    fn notification(&self, notification: Notification) {
        let InboundContext { stale, open_questions, observer, .. } = self.context.as_ref();
        if let Some(kinds) = ListKinds::changed_by(&notification.method) {
            stale.announce(kinds);
            return observer.notification(notification, self.cause);
        }
        match notification.method.as_str() {
            method::CANCELLED => {
                let id = notification.params.and_then(|params| edit::get(&params, "requestId"));
                if let Some(id) = id.and_then(Id::new) {
                    open_questions.cancel(&id);
                }
            }
            // The server announces changes from now on, but not those since its lists were read.
            method::SUBSCRIPTIONS_ACKNOWLEDGED => {
                stale.mark(ListKinds::ALL);
                observer.notification(notification, self.cause);
            }
            // No pending request wants this progress.
            method::PROGRESS => {}
            _ => observer.notification(notification, self.cause),
        }
    }

    fn unexpected(&self, what: UnexpectedMessage) {
        let context = &self.context;
        match what {
            UnexpectedMessage::Invalid(InvalidMessage::Unparsable { start, .. }) => {
                context.count_noise(&format!("a line that is not JSON: {start:?}"));
            }
            UnexpectedMessage::Invalid(invalid) => {
                context.count_noise(&format!("a line that is {invalid}"));
            }
            UnexpectedMessage::Stray(response) => {
                let id = response.id.map_or_else(|| "null".to_owned(), |id| id.to_string());
                context.count_noise(&format!("a reply without a request (id {id})"));
            }
            UnexpectedMessage::Oversized { summary, limit } => {
                let message = format!(
                    "a message of {} bytes exceeds maxMessageBytes ({limit}); raise it in the \
                        config",
                    summary.size
                );
                context.count_noise(&message);
                if let (true, Some(id)) = (summary.is_call, summary.id) {
                    context.peer.respond(id, Err(error::invalid_request(message)));
                }
            }
        }
    }

    async fn ready(&self) {
        let InboundContext { name, peer, observer, .. } = self.context.as_ref();
        if peer.is_full() {
            peer.ready(READ_TIMEOUT).await;
            if peer.is_stalled() && !peer.is_closed() {
                tracing::warn!(
                    server = name,
                    "server asks questions and does not read the answers; disconnecting it"
                );
                peer.close();
            }
        }
        if observer.is_congested() {
            observer.ready().await;
        }
    }
}
