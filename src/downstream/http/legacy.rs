//! Streamable HTTP with sessions: 2025-03-26 to 2025-11-25 (basic/transports).

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use rmcp::model::ProtocolVersion;

use super::{
    Front,
    answer::{self, Expected},
    guard::Pass,
    request::{Posted, is_legacy, refusal, respond_with},
    sessions::HttpSession,
    stream::{MessageStream, parse_event_id},
};
use crate::{
    downstream::{
        Identity, Session,
        reply::{Open, Reply},
        session::Inbound,
    },
    peer::{Peer, receive_message},
    protocol::{Era, error, method, request_headers},
    proxy::Endpoint,
    wire::{Id, Message, Request, edit},
};

pub(super) const SESSION: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
/// The JSON-RPC code that clients know for a session that is gone.
const UNKNOWN_SESSION: i32 = -32001;

pub(super) async fn post(
    front: &Arc<Front>,
    endpoint: Endpoint,
    pass: Pass,
    posted: Posted,
) -> Response {
    let is_initialize = |message: &Message| matches!(message, Message::Request(Request { method, .. }) if method == method::INITIALIZE);
    match posted.messages.as_slice() {
        [message] if is_initialize(message) => open(front, endpoint, pass, posted).await,
        messages if messages.iter().any(is_initialize) => {
            refusal(StatusCode::BAD_REQUEST, None, "initialize cannot be part of a batch")
        }
        _ => match find(front, endpoint, pass, &posted.headers) {
            Ok(session) => take(&session, posted).await,
            Err(refused) => refused,
        },
    }
}

/// Opens a session with its first request.
async fn open(front: &Arc<Front>, endpoint: Endpoint, pass: Pass, posted: Posted) -> Response {
    let version = posted.messages.iter().find_map(|message| match message {
        Message::Request(request) => edit::get_str(request.params.as_ref()?, "protocolVersion"),
        Message::Notification(_) | Message::Response(_) => None,
    });
    // Revisions are dates, so that their order is that of their names; an unknown one is answered with the newest.
    let is_primed = version.is_none_or(|version| {
        !is_legacy(&version) || version == ProtocolVersion::V_2025_11_25.as_str()
    });
    let stop = front.stop.child_token();
    let identity = Identity::alone(endpoint, front.is_from_here(&posted.headers, posted.version))
        .of_user(pass.user());
    let attach = |outbox| Session::attach(front.fleet.clone(), Peer::new(outbox), identity);
    let session = HttpSession::new(pass, endpoint, is_primed, stop, attach);
    if let Some(surplus) = front.sessions.add(session.clone()) {
        tracing::warn!("too many sessions; the one that was unused for longest ends");
        front.tasks.spawn(async move { surplus.end().await });
    }
    let mut response = take(&session, posted).await;
    if let Ok(id) = HeaderValue::try_from(&session.id) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// The session that a request names.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
fn find(
    front: &Front,
    endpoint: Endpoint,
    pass: Pass,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, Response> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(id) = header(SESSION) else {
        let message =
            "send initialize first, and then the Mcp-Session-Id that it was answered with";
        return Err(refusal(StatusCode::BAD_REQUEST, None, message));
    };
    let session = front.sessions.find(id);
    let session = session.filter(|session| {
        // Who has another token, or knocks at another door, does not learn that it exists.
        session.pass == pass && session.endpoint.only == endpoint.only
    });
    let Some(session) = session else {
        let error = error::error(rmcp::model::ErrorCode(UNKNOWN_SESSION), "unknown session");
        return Err(respond_with(StatusCode::NOT_FOUND, None, error));
    };
    match header(request_headers::VERSION) {
        // Some hosts name an older revision than they have agreed upon; it makes no difference here.
        Some(version) if !is_legacy(version) => {
            let message = format!("unsupported MCP-Protocol-Version {version:?}");
            Err(refusal(StatusCode::BAD_REQUEST, None, &message))
        }
        _ => Ok(session),
    }
}

/// Takes what was posted to a session, and answers what has to be answered.
async fn take(session: &Arc<HttpSession>, posted: Posted) -> Response {
    let in_use = session.begin_use();
    let Posted { messages, is_batch, accepts, .. } = posted;
    let requests: Vec<Id> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Request(request) => Some(request.id.clone()),
            _ => None,
        })
        .collect();
    if requests.is_empty() {
        for message in messages {
            hand_over(session, message, None);
        }
        return StatusCode::ACCEPTED.into_response();
    }
    if session.is_behind() {
        let message = "read the answers to what was asked before";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, None, message);
    }
    let stream = session.new_stream();
    let open = Open::new(stream.outbox().clone());
    for message in messages {
        hand_over(session, message, Some((&stream, &open)));
    }
    drop(open);
    let host = session.session.peer().clone();
    let expected = Expected { era: Era::Legacy, requests, is_batch, accepts, host };
    answer::respond(stream, expected, in_use).await
}

/// Gives a message to the session, with the way back for its answer.
fn hand_over(
    session: &HttpSession,
    message: Message,
    response: Option<(&Arc<MessageStream>, &Arc<Open>)>,
) {
    let own = session.session.peer();
    let reply = match response {
        Some((stream, open)) => {
            Reply { peer: own.through(stream.outbox().clone()), response: Some(open.clone()) }
        }
        None => Reply { peer: own.clone(), response: None },
    };
    let inbound = Inbound { session: session.session.clone(), reply };
    receive_message(Ok(message), own, &inbound);
}

/// Opens the stream for what belongs to no request, or resumes one that broke off.
pub(super) fn get(
    front: &Arc<Front>,
    endpoint: Endpoint,
    pass: Pass,
    headers: &HeaderMap,
) -> Response {
    if !headers.contains_key(SESSION) {
        // Without sessions there is nothing to listen to here (2026-07-28, Backward Compatibility).
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let session = match find(front, endpoint, pass, headers) {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let (stream, after) = match last.map(parse_event_id) {
        None => (Some(session.news()), None),
        Some(Some((number, event))) => {
            let stream = session.stream(number);
            (stream.filter(|stream| stream.reaches_back_to(event)), Some(event))
        }
        Some(None) => (None, None),
    };
    if let Some(stream) = stream {
        answer::events(stream.events(Vec::new(), after, session.begin_use()))
    } else {
        let message = "nothing is left of the stream that Last-Event-ID names";
        refusal(StatusCode::BAD_REQUEST, None, message)
    }
}

/// Ends a session.
pub(super) async fn delete(
    front: &Arc<Front>,
    endpoint: Endpoint,
    pass: Pass,
    headers: &HeaderMap,
) -> Response {
    let session = match find(front, endpoint, pass, headers) {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    if let Some(session) = front.sessions.remove(&session.id) {
        session.end().await;
    }
    StatusCode::NO_CONTENT.into_response()
}
