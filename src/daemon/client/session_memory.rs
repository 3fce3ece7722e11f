//! The part of a session that a thin client remembers, so that another daemon can continue it.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use indexmap::IndexMap;

use crate::{
    protocol::{error, method},
    wire::{Id, Message, Notification, Raw, Request, Response, edit, parse_line},
};

/// The messages between one host and its daemon, as far as a later daemon needs them.
#[derive(Default)]
pub(super) struct SessionMemory {
    handshake: Handshake,
    /// The host's requests without an answer, in the order in which they were sent.
    requests: IndexMap<Id, SentRequest>,
    /// The daemons' requests without an answer of the host.
    questions: HashMap<Id, DaemonNumber>,
    /// The ids of repeated messages, whose answers the host must not see.
    repeated: HashSet<Id>,
    last_repeat: u64,
}

/// The messages with which a legacy host has opened and changed its session.
#[derive(Default)]
struct Handshake {
    initialize: Option<Request>,
    initialized: Option<Notification>,
    log_level: Option<Request>,
    /// By URI, as the host spells it.
    subscriptions: BTreeMap<String, Request>,
}

/// The number of daemons that have served the host before this one.
pub(super) type DaemonNumber = u32;

/// A request of the host that has no answer.
struct SentRequest {
    /// The daemon that it was sent to.
    daemon: DaemonNumber,
    /// The request, if it can be sent again: it has no effect on a server, or the same however
    /// often it is sent.
    repeatable: Option<Request>,
}

/// The requests that a line added, for [`SessionMemory::retract`].
#[must_use]
pub(super) struct Sent(Vec<Id>);

/// The treatment of a line of the daemon.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    ForHost,
    /// The answer to a repeated message.
    Repeated,
    /// A notification of the method that only the daemon and the client know.
    Notice(Raw),
}

/// Requests that another daemon can be sent again.
const REPEATABLE: [&str; 11] = [
    method::INITIALIZE,
    method::PING,
    method::SERVER_DISCOVER,
    method::SUBSCRIPTIONS_LISTEN,
    method::TOOLS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::PROMPTS_LIST,
    method::LOGGING_SET_LEVEL,
];

/// The text for a request that was lost with its daemon.
const LOST: &str = "the dormouse daemon ended before it answered; the request may have been \
    executed";

impl SessionMemory {
    /// Notes a line of the host that is about to be sent to a daemon.
    pub(super) fn note_sent(&mut self, line: &Bytes, daemon: DaemonNumber) -> Sent {
        let mut sent = Vec::new();
        let messages = parse_line(line);
        // A batch is answered as a whole, so none of its requests can be repeated alone.
        let is_alone = messages.len() == 1;
        for message in messages.into_iter().flatten() {
            match message {
                Message::Request(request) => {
                    sent.push(request.id.clone());
                    self.note_request(request, daemon, is_alone);
                }
                Message::Notification(notification) => self.note_notification(notification),
                Message::Response(Response { id, .. }) => {
                    id.as_ref().map(|id| self.questions.remove(id));
                }
            }
        }
        Sent(sent)
    }

    fn note_request(&mut self, request: Request, daemon: DaemonNumber, is_alone: bool) {
        let id = request.id.clone();
        let is_repeatable = is_alone && REPEATABLE.contains(&request.method.as_str());
        if is_repeatable {
            self.handshake.note(&request);
        }
        let repeatable = is_repeatable.then_some(request);
        self.requests.insert(id, SentRequest { daemon, repeatable });
    }

    fn note_notification(&mut self, notification: Notification) {
        match notification.method.as_str() {
            method::INITIALIZED => self.handshake.initialized = Some(notification),
            // A cancelled request gets no answer, and a cancelled stream must not be opened again.
            method::CANCELLED => {
                cancelled(&notification).map(|id| self.requests.shift_remove(&id));
            }
            _ => {}
        }
    }

    /// Forgets the requests of a line that could not be sent.
    pub(super) fn retract(&mut self, sent: Sent) {
        for id in sent.0 {
            self.requests.shift_remove(&id);
        }
    }

    /// Returns the daemon to which a line belongs, if it is not the present one: the answer to a
    /// question, or the cancellation of a request.
    pub(super) fn addressee(&self, line: &Bytes) -> Option<DaemonNumber> {
        let Ok(message) = parse_line(line).pop()? else { return None };
        match message {
            Message::Request(_) => None,
            Message::Response(Response { id, .. }) => self.questions.get(&id?).copied(),
            Message::Notification(notification) if notification.method == method::CANCELLED => {
                let request = self.requests.get(&cancelled(&notification)?)?;
                Some(request.daemon)
            }
            Message::Notification(_) => None,
        }
    }

    /// Notes a line of a daemon. `notices`: the method of notices to this client.
    pub(super) fn note_received(
        &mut self,
        line: &Bytes,
        daemon: DaemonNumber,
        notices: &str,
    ) -> Received {
        let mut received = Received::ForHost;
        for message in parse_line(line).into_iter().flatten() {
            match message {
                Message::Request(Request { id, .. }) => {
                    self.questions.insert(id, daemon);
                }
                Message::Notification(notification) if notification.method == notices => {
                    let params = notification.params.unwrap_or_else(Raw::empty_object);
                    received = Received::Notice(params);
                }
                Message::Notification(notification) => {
                    if notification.method == method::CANCELLED {
                        cancelled(&notification).map(|id| self.questions.remove(&id));
                    }
                }
                Message::Response(Response { id: Some(id), .. }) => {
                    if self.repeated.remove(&id) {
                        received = Received::Repeated;
                    }
                    self.requests.shift_remove(&id);
                }
                Message::Response(Response { id: None, .. }) => {}
            }
        }
        received
    }

    /// Forgets what was lost with a daemon, and returns the messages that tell the host.
    pub(super) fn lose_daemon(&mut self, daemon: DaemonNumber) -> Vec<Message> {
        let mut told = Vec::new();
        self.requests.retain(|id, request| {
            let is_lost = request.daemon == daemon && request.repeatable.is_none();
            if is_lost {
                let outcome = Err(error::internal(LOST));
                told.push(Message::Response(Response { id: Some(id.clone()), outcome }));
            }
            !is_lost
        });
        self.questions.retain(|id, asking| {
            if *asking == daemon {
                let params = edit::set(&Raw::empty_object(), "requestId", id.raw());
                let method = method::CANCELLED.to_owned();
                told.push(Message::Notification(Notification { method, params: Some(params) }));
            }
            *asking != daemon
        });
        told
    }

    /// Returns the messages that open the same session at another daemon.
    pub(super) fn reopen(&mut self) -> Vec<Message> {
        let Handshake { initialize, initialized, log_level, subscriptions } = &self.handshake;
        let requests = &self.requests;
        // A request without an answer is repeated under its own id.
        let is_answered = |request: &&Request| !requests.contains_key(&request.id);
        let opening: Vec<_> = initialize.iter().filter(is_answered).cloned().collect();
        let settings = log_level.iter().chain(subscriptions.values());
        let settings: Vec<_> = settings.filter(is_answered).cloned().collect();
        let initialized = initialized.clone().map(Message::Notification);
        let opening: Vec<_> = opening.into_iter().map(|request| self.repeat(request)).collect();
        let settings: Vec<_> = settings.into_iter().map(|request| self.repeat(request)).collect();
        opening.into_iter().chain(initialized).chain(settings).collect()
    }

    /// Returns the requests to send to a daemon again: those that another one has lost, and the
    /// streams of notifications, which end with the session at the other one.
    pub(super) fn take_over(
        &mut self,
        daemon: DaemonNumber,
        living: &[DaemonNumber],
    ) -> Vec<Message> {
        let moved = self.requests.values_mut().filter_map(|sent| {
            let request = sent.repeatable.as_ref()?;
            let is_stream = request.method == method::SUBSCRIPTIONS_LISTEN;
            let is_lost = !living.contains(&sent.daemon);
            if sent.daemon == daemon || !(is_stream || is_lost) {
                return None;
            }
            sent.daemon = daemon;
            Some(Message::Request(request.clone()))
        });
        moved.collect()
    }

    /// Returns a request with an id of this client.
    fn repeat(&mut self, request: Request) -> Message {
        self.last_repeat += 1;
        let id = Id::named(&format!("dormouse-again-{}", self.last_repeat));
        self.repeated.insert(id.clone());
        Message::Request(Request { id, ..request })
    }
}

impl Handshake {
    fn note(&mut self, request: &Request) {
        let uri = || edit::get_str(request.params.as_ref()?, "uri");
        match request.method.as_str() {
            method::INITIALIZE => {
                *self = Self { initialize: Some(request.clone()), ..Self::default() };
            }
            method::LOGGING_SET_LEVEL => self.log_level = Some(request.clone()),
            method::RESOURCES_SUBSCRIBE => {
                uri().map(|uri| self.subscriptions.insert(uri, request.clone()));
            }
            method::RESOURCES_UNSUBSCRIBE => {
                uri().map(|uri| self.subscriptions.remove(&uri));
            }
            _ => {}
        }
    }
}

/// Returns the request that a notification cancels.
fn cancelled(notification: &Notification) -> Option<Id> {
    Id::new(edit::get(notification.params.as_ref()?, "requestId")?)
}
