//! The replica that answers a request: the one that has its session, or that has made an id in it.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, Method},
    response::Response,
};
use bytes::Bytes;

use super::{
    forwarding::{ReceivedRequest, Unanswered, forward, is_forwarded, lost},
    front::HttpFront,
    principals::HostKey,
    request::PostedMessages,
    sender::Sender,
    session_ticket::SessionTicket,
};
use crate::{
    base::marks_in,
    proxy::Endpoint,
    store::{Home, HostNumber, Replica, Replicas},
    wire::Message,
};

/// Maximum number of bytes of a message that are searched for the mark of another replica.
const MAX_SEARCHED_BYTES: usize = 1024 * 1024;

/// Maximum number of marks of a message that are looked up.
const MAX_MARKS: usize = 4;
/// Interval of the checks whether a replica that is answering is still there.
const GONE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The line of a request, and the token of its sender.
pub(super) struct RequestHead {
    pub(super) method: Method,
    /// The id of the session, in the header or in the query.
    pub(super) session: Option<String>,
    /// The path and the query, as the host has written them.
    pub(super) target: String,
    pub(super) sender: Sender,
}

impl RequestHead {
    /// Returns the request with these headers and this body.
    pub(super) fn received(&self, headers: &HeaderMap, body: Bytes) -> ReceivedRequest {
        let (method, target) = (self.method.clone(), self.target.clone());
        ReceivedRequest { method, target, headers: headers.clone(), body }
    }
}

/// Has another replica answer a request that it has to answer. Returns `None` if this one has to.
/// `endpoint`: that of a request that may be modern.
pub(super) async fn answer_elsewhere(
    front: &HttpFront,
    head: &RequestHead,
    headers: &HeaderMap,
    endpoint: Option<&Endpoint>,
    posted: Option<&PostedMessages>,
) -> Option<Response> {
    let replicas = front.replicas.as_ref()?;
    if is_forwarded(replicas.keys(), headers) {
        return None;
    }
    let needed = Needed::by(front, replicas, head, endpoint, posted);
    for mark in needed.marks() {
        replicas.look_up(mark).await;
    }
    if needed.home(replicas) == Home::Here {
        return None;
    }
    let copy = needed.copy_here(replicas, head);
    let body = posted.map(|posted| posted.body.clone()).unwrap_or_default();
    let request = head.received(headers, body);
    while let Home::At(replica) = needed.home(replicas) {
        match forward_while_there(replicas, &replica, request.clone()).await {
            Ok(response) => {
                if let Some(copy) = copy {
                    copy.hand_over(front);
                }
                return Some(response);
            }
            Err(Unanswered::Lost) => return Some(lost()),
            Err(Unanswered::NotReached) => replicas.note_unreachable(&replica),
        }
    }
    None
}

/// Has another replica answer a request, as long as that is there.
async fn forward_while_there(
    replicas: &Replicas,
    replica: &Replica,
    request: ReceivedRequest,
) -> Result<Response, Unanswered> {
    let gone = async {
        while replicas.is_there(&replica.mark) {
            tokio::time::sleep(GONE_CHECK_INTERVAL).await;
        }
    };
    tokio::select! {
        answered = forward(replicas.keys(), replica, request) => answered,
        () = gone => Err(Unanswered::Lost),
    }
}

/// Has another replica answer a request of a browser, if that replica has made `id`. Returns `None`
/// if this one has to answer.
pub(super) async fn answer_at_replica_of(
    front: &HttpFront,
    id: &str,
    target: String,
    headers: &HeaderMap,
) -> Option<Response> {
    let replicas = front.replicas.as_ref()?;
    if is_forwarded(replicas.keys(), headers) || id.starts_with(replicas.mark()) {
        return None;
    }
    for mark in marks_in(id.as_bytes()).take(1) {
        replicas.look_up(mark).await;
    }
    let replica = replicas.find(|other| id.starts_with(other))?;
    let (method, headers) = (Method::GET, headers.clone());
    let request = ReceivedRequest { method, target, headers, body: Bytes::new() };
    match forward_while_there(replicas, &replica, request).await {
        Ok(response) => Some(response),
        Err(Unanswered::Lost) => Some(lost()),
        Err(Unanswered::NotReached) => {
            replicas.note_unreachable(&replica);
            None
        }
    }
}

/// The state that this replica keeps for a host whose requests another replica answers.
enum HostCopy {
    Session(String),
    /// A host without a session.
    Host {
        key: HostKey,
        number: HostNumber,
    },
}

impl HostCopy {
    /// Has the other replica serve the host, and completes the requests in flight here.
    fn hand_over(self, front: &HttpFront) {
        match self {
            Self::Session(id) => {
                if let Some(session) = front.sessions.hand_over(&id) {
                    tracing::info!("a session goes on at the replica that has opened it");
                    front.tasks.spawn(async move { session.complete().await });
                }
            }
            Self::Host { key, number } => {
                if let Some(replicas) = &front.replicas {
                    replicas.forget_host(number);
                }
                if let Some(principal) = front.principals.hand_over(&key) {
                    tracing::info!("a host goes on at another replica that has served it");
                    front.fleet.operator().replication().hand_over(principal);
                }
            }
        }
    }
}

/// What a request needs, and only one replica may have.
enum Needed<'a> {
    Nothing,
    /// What the ids in these parameters stand for, and what is kept for a host.
    Made {
        params: &'a [u8],
        host: Option<(HostKey, HostNumber)>,
    },
    Session {
        ticket: SessionTicket,
        /// True if it was opened again here.
        is_reopened: bool,
    },
}

impl<'a> Needed<'a> {
    fn by(
        front: &HttpFront,
        replicas: &Replicas,
        head: &RequestHead,
        endpoint: Option<&Endpoint>,
        posted: Option<&'a PostedMessages>,
    ) -> Self {
        if let Some(posted) = posted.filter(|posted| posted.is_modern()) {
            let Some(Message::Request(request)) = posted.messages.first() else {
                return Self::Nothing;
            };
            let Some(params) = &request.params else { return Self::Nothing };
            let length = params.as_bytes().len().min(MAX_SEARCHED_BYTES);
            let host = endpoint.and_then(|endpoint| {
                front.kept_host(endpoint, || HostKey::of(&head.sender, endpoint, request))
            });
            return Self::Made { params: &params.as_bytes()[..length], host };
        }
        let Some(id) = &head.session else { return Self::Nothing };
        let known = front.sessions.find(id);
        let is_settled_here = match &known {
            // The usual case: the id need not be opened.
            Some(known) => !known.is_reopened(),
            None => front.sessions.has_ended(id),
        };
        if is_settled_here {
            return Self::Nothing;
        }
        let ticket = SessionTicket::open(replicas.keys(), head.sender.token_hash, id);
        let is_reopened = known.is_some();
        ticket.map_or(Self::Nothing, |ticket| Self::Session { ticket, is_reopened })
    }

    /// Returns the marks of replicas that may have just started.
    fn marks(&self) -> Vec<&str> {
        match self {
            Self::Made { params, .. } => marks_in(params).take(MAX_MARKS).collect(),
            Self::Session { ticket, is_reopened: false } => vec![&ticket.mark],
            Self::Nothing | Self::Session { .. } => Vec::new(),
        }
    }

    fn home(&self, replicas: &Replicas) -> Home {
        let named = match self {
            Self::Nothing => None,
            Self::Made { params, .. } if names_own_id(params, replicas) => None,
            Self::Made { params, host } => match (maker_in(params, replicas), host) {
                (None, Some((_, number))) => return replicas.home_of_host(*number),
                (maker, _) => maker,
            },
            Self::Session { ticket, is_reopened: false } => {
                return replicas.home_of(&ticket.mark, ticket.key.as_bytes());
            }
            // A session that was opened again goes back to its replica if that was never gone.
            Self::Session { ticket, is_reopened: true } => {
                replicas.find(|other| other == ticket.mark)
            }
        };
        named.map_or(Home::Here, Home::At)
    }

    /// Returns the state that the host has here, if another replica answers for all of it.
    fn copy_here(&self, replicas: &Replicas, head: &RequestHead) -> Option<HostCopy> {
        match self {
            Self::Session { is_reopened: true, .. } => head.session.clone().map(HostCopy::Session),
            Self::Made { params, host: Some((key, number)) } => {
                let is_here = replicas.keeps_host(*number) && maker_in(params, replicas).is_none();
                is_here.then(|| HostCopy::Host { key: key.clone(), number: *number })
            }
            Self::Nothing | Self::Session { .. } | Self::Made { .. } => None,
        }
    }
}

/// Returns whether these parameters contain an id that this replica has made.
pub(super) fn names_own_id(params: &[u8], replicas: &Replicas) -> bool {
    let searched = &params[..params.len().min(MAX_SEARCHED_BYTES)];
    memchr::memmem::find(searched, replicas.mark().as_bytes()).is_some()
}

/// Returns the replica that has made an id in these parameters.
fn maker_in(params: &[u8], replicas: &Replicas) -> Option<Arc<Replica>> {
    replicas.find(|other| memchr::memmem::find(params, other.as_bytes()).is_some())
}
