//! Streamable HTTP with sessions: 2025-03-26 to 2025-11-25 (basic/transports).

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use rmcp::model::ProtocolVersion;

use super::{
    front::HttpFront,
    permissions::may_use,
    post_response::{self, ExpectedAnswer},
    reopening::reopen,
    request::{PostedMessages, is_legacy, refusal, respond_with, session_id_in},
    sender::Sender,
    sessions::{HttpSession, SessionNumbers, SessionUseGuard},
    stream::{MessageStream, parse_event_id},
};
use crate::{
    downstream::{
        HostIdentity, Session,
        reply_channel::{OpenResponse, ReplyChannel},
        session::HostHandler,
    },
    peer::{Peer, receive_message},
    protocol::{Era, error, method, request_headers},
    proxy::{Endpoint, Host as _},
    wire::{Id, Message, edit},
};

pub(super) async fn post(
    front: &Arc<HttpFront>,
    endpoint: Endpoint,
    sender: &Sender,
    posted: PostedMessages,
) -> Response {
    let is_initialize = |message: &Message| match message {
        Message::Request(request) => request.method == method::INITIALIZE,
        Message::Notification(_) | Message::Response(_) => false,
    };
    match posted.messages.as_slice() {
        [message] if is_initialize(message) => open(front, endpoint, sender, posted).await,
        messages if messages.iter().any(is_initialize) => {
            refusal(StatusCode::BAD_REQUEST, None, "initialize cannot be part of a batch")
        }
        _ => match find_session(front, &endpoint, sender, &posted.headers) {
            Ok(session) => {
                // From now on, a session that goes on elsewhere waits for the answers.
                let in_use = session.begin_use();
                let (replication, host) =
                    (front.fleet.operator().replication(), session.session.principal());
                replication.recall_host(host, || session.host_name()).await;
                accept_posted(&session, in_use, posted).await
            }
            Err(refused) => refused,
        },
    }
}

/// Opens a session with its first request.
async fn open(
    front: &Arc<HttpFront>,
    endpoint: Endpoint,
    sender: &Sender,
    posted: PostedMessages,
) -> Response {
    let params = posted.messages.iter().find_map(|message| match message {
        Message::Request(request) => request.params.as_ref(),
        Message::Notification(_) | Message::Response(_) => None,
    });
    let version = params.and_then(|params| edit::get_str(params, "protocolVersion"));
    // Only hosts of 2025-11-25 can read an event without data. An unknown revision is answered with
    // that one.
    let is_primed = version.is_none_or(|version| {
        !is_legacy(&version) || version == ProtocolVersion::V_2025_11_25.as_str()
    });
    let id = front.new_session_id(sender.token_hash, &endpoint, params, is_primed);
    front.fleet.use_profile(endpoint.profile.as_ref()).await;
    let stop = front.stop.child_token();
    let identity = HostIdentity::of_single_session(
        endpoint.clone(),
        front.is_from_this_machine(&posted.headers, posted.version),
    )
    .with_sender(sender.user(), sender.person.clone(), sender.usage.clone());
    let attach = |outbox| Session::attach(front.fleet.clone(), Peer::new(outbox), identity);
    let session = HttpSession::new(
        SessionNumbers::of_new(id),
        sender.token_hash,
        endpoint,
        is_primed,
        stop,
        attach,
    );
    let host = session.session.principal();
    front.fleet.operator().replication().keep_host(host, || session.host_name());
    if let Some(surplus) = front.sessions.add(session.clone()) {
        tracing::warn!("too many sessions; ending the one that was unused for longest");
        front.tasks.spawn(async move { surplus.end().await });
    }
    let mut response = accept_posted(&session, session.begin_use(), posted).await;
    if let Ok(id) = HeaderValue::try_from(&session.id) {
        response.headers_mut().insert(request_headers::SESSION_ID, id);
    }
    response
}

/// Returns the session that a request names.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
fn find_session(
    front: &Arc<HttpFront>,
    endpoint: &Endpoint,
    sender: &Sender,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, Response> {
    let id = named_session(headers)?;
    let known = front.sessions.find(id).or_else(|| reopen(front, id, endpoint, sender));
    let session = known.ok_or_else(unknown_session)?;
    check_access(front, &session, endpoint, sender, headers)?;
    Ok(session)
}

/// Returns the id of the session that a request names.
///
/// # Errors
/// The response that refuses a request without one.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
pub(super) fn named_session(headers: &HeaderMap) -> Result<&str, Response> {
    session_id_in(headers).ok_or_else(|| {
        let message = "unknown or missing Mcp-Session-Id: send initialize first, and then the \
                Mcp-Session-Id of its response";
        refusal(StatusCode::BAD_REQUEST, None, message)
    })
}

pub(super) fn unknown_session() -> Response {
    let error = error::error(error::UNKNOWN_SESSION, "unknown session");
    respond_with(StatusCode::NOT_FOUND, None, error)
}

/// Checks that a request may use the session that it names.
///
/// # Errors
/// The response that refuses the request.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
pub(super) fn check_access(
    front: &HttpFront,
    session: &HttpSession,
    endpoint: &Endpoint,
    sender: &Sender,
    headers: &HeaderMap,
) -> Result<(), Response> {
    // A host with another token or endpoint must not learn that the session exists.
    let has_access = session.token_hash == sender.token_hash
        && session.endpoint.has_same_path(endpoint)
        && may_use(front, sender, &session.endpoint);
    if !has_access {
        return Err(unknown_session());
    }
    let version = headers.get(request_headers::VERSION).and_then(|value| value.to_str().ok());
    match version {
        // Some hosts name an older revision than the negotiated one; dormouse accepts any legacy
        // revision.
        Some(version) if !is_legacy(version) => {
            let message = format!("unsupported MCP-Protocol-Version {version:?}");
            Err(refusal(StatusCode::BAD_REQUEST, None, &message))
        }
        _ => Ok(()),
    }
}

/// Passes posted messages to a session, and builds the response, which holds `in_use`.
async fn accept_posted(
    session: &Arc<HttpSession>,
    in_use: SessionUseGuard,
    posted: PostedMessages,
) -> Response {
    let PostedMessages { messages, is_batch, accepts, .. } = posted;
    let requests: Vec<Id> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Request(request) => Some(request.id.clone()),
            _ => None,
        })
        .collect();
    if requests.is_empty() {
        for message in messages {
            deliver(session, message, None);
        }
        return StatusCode::ACCEPTED.into_response();
    }
    if session.is_behind() {
        let message = "too many unread answers: read them before sending more requests";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, None, message);
    }
    let stream = session.new_stream();
    let open = OpenResponse::new(stream.outbox().clone());
    for message in messages {
        deliver(session, message, Some((&stream, &open)));
    }
    drop(open);
    let host = session.session.peer().clone();
    let expected = ExpectedAnswer { era: Era::Legacy, requests, is_batch, accepts, host };
    post_response::respond(stream, expected, in_use).await
}

/// Passes a message to the session, with the channel for its answer.
pub(super) fn deliver(
    session: &HttpSession,
    message: Message,
    response: Option<(&Arc<MessageStream>, &Arc<OpenResponse>)>,
) {
    let own = session.session.peer();
    let reply = match response {
        Some((stream, open)) => ReplyChannel {
            peer: own.through(stream.outbox().clone()),
            response: Some(open.clone()),
        },
        None => ReplyChannel { peer: own.clone(), response: None },
    };
    let inbound = HostHandler::new(session.session.clone(), reply);
    receive_message(Ok(message), own, &inbound);
}

/// Opens the stream for messages that belong to no request, or resumes an interrupted stream.
pub(super) fn get(
    front: &Arc<HttpFront>,
    endpoint: &Endpoint,
    sender: &Sender,
    headers: &HeaderMap,
) -> Response {
    if !headers.contains_key(request_headers::SESSION_ID) {
        // Without sessions there is no such stream (2026-07-28, Backward Compatibility).
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let session = match find_session(front, endpoint, sender, headers) {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    let last = headers.get(request_headers::LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let (stream, after) = match last.map(parse_event_id) {
        None => (Some(session.general_stream()), None),
        // The messages of another replica are gone, and the host knows no other way to go on.
        Some(Some((number, _))) if session.is_general_elsewhere(number) => {
            (Some(session.general_stream()), None)
        }
        Some(Some((number, event))) => {
            let stream = session.stream(number);
            (stream.filter(|stream| stream.reaches_back_to(event)), Some(event))
        }
        Some(None) => (None, None),
    };
    if let Some(stream) = stream {
        post_response::events(stream.events(Vec::new(), after, session.begin_use()))
    } else {
        let message = "the stream of this Last-Event-ID cannot be resumed";
        refusal(StatusCode::BAD_REQUEST, None, message)
    }
}

/// Ends a session.
pub(super) async fn delete(
    front: &Arc<HttpFront>,
    endpoint: &Endpoint,
    sender: &Sender,
    headers: &HeaderMap,
) -> Response {
    let session = match find_session(front, endpoint, sender, headers) {
        Ok(session) => session,
        Err(refused) => return refused,
    };
    if let Some(session) = front.sessions.remove(&session.id) {
        front.sessions.note_ended(&session);
        front.fleet.operator().replication().remove_record_of(session.session.principal());
        session.end().await;
    }
    StatusCode::NO_CONTENT.into_response()
}
