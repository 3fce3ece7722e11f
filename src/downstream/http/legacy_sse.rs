//! HTTP+SSE of 2024-11-05: one stream to the host, and an address for its messages. The session
//! lasts as long as the stream.

use std::sync::Arc;

use axum::{
    extract::{Query, Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    front::HttpFront,
    permissions::{may_use, spend},
    placement::{RequestHead, answer_elsewhere},
    post_response,
    request::{self, refusal},
    sender::Sender,
    sessions::{HttpSession, SessionNumbers, SessionUseGuard},
    stream::MessageStream,
};
use crate::{
    downstream::{HostIdentity, Session, reply_channel::ReplyChannel, session::HostHandler},
    peer::{Peer, receive_message},
    proxy::Endpoint,
    wire::sse,
};

/// The address to which the host posts, relative to that of its stream, so that a reverse proxy may
/// put both below a prefix.
const MESSAGES: &str = "messages";

/// Opens the stream of a new session.
pub(super) fn open(front: &Arc<HttpFront>, endpoint: Endpoint, request: &Request) -> Response {
    let sender = Sender::of(request);
    let stop = CancellationToken::new();
    let stream = MessageStream::once(stop.clone());
    let outbox = stream.outbox().clone();
    let identity = HostIdentity::of_single_session(
        endpoint.clone(),
        front.is_from_this_machine(request.headers(), request.version()),
    )
    .with_sender(sender.user(), sender.person.clone(), sender.usage.clone());
    // The session ends with its stream, and cannot be opened again.
    let id = front.new_session_id(sender.token_hash, &endpoint, None, false);
    let session = HttpSession::new(
        SessionNumbers::of_new(id),
        sender.token_hash,
        endpoint,
        false,
        front.stop.child_token(),
        |_| Session::attach(front.fleet.clone(), Peer::new(outbox), identity),
    );
    // On shutdown the requests in flight are still answered before the stream ends.
    let (told, owner) = (front.stop.clone(), session.session.clone());
    let gone = CancellationToken::new();
    let ended = gone.clone();
    front.tasks.spawn(async move {
        tokio::select! {
            () = told.cancelled() => {
                owner.wait_until_idle().await;
                stop.cancel();
            }
            () = ended.cancelled() => {}
        }
    });
    let address = format!("{MESSAGES}?sessionId={}", session.id);
    let presence = StreamPresence {
        front: front.clone(),
        _in_use: session.begin_use(),
        _gone: gone.drop_guard(),
        id: session.id.clone(),
    };
    if let Some(surplus) = front.sessions.add(session) {
        front.tasks.spawn(async move { surplus.end().await });
    }
    let first = futures_util::stream::iter([Ok(sse::named_event("endpoint", &address))]);
    post_response::events(first.chain(stream.events(Vec::new(), None, presence)))
}

/// Lives as long as the host reads the stream; then removes and ends the session.
struct StreamPresence {
    front: Arc<HttpFront>,
    _in_use: SessionUseGuard,
    _gone: DropGuard,
    id: String,
}

impl Drop for StreamPresence {
    fn drop(&mut self) {
        if let Some(session) = self.front.sessions.remove(&self.id) {
            self.front.tasks.spawn(async move { session.end().await });
        }
    }
}

#[derive(Deserialize)]
pub(super) struct SessionQuery {
    #[serde(rename = "sessionId")]
    session_id: String,
}

/// Accepts a host's messages, and answers them on its stream.
pub(super) async fn message(
    State(front): State<Arc<HttpFront>>,
    Query(options): Query<SessionQuery>,
    request: Request,
) -> Response {
    let sender = Sender::of(&request);
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let posted = match request::read(request, front.fleet.settings().limits.max_message_bytes).await
    {
        Ok(posted) => posted,
        Err(refused) => return refused,
    };
    if !front.is_forwarded(&posted.headers)
        && let Some(usage) = &sender.usage
        && let Err(refused) = spend(usage, &posted)
    {
        return refused;
    }
    let session = Some(options.session_id.clone());
    let head = RequestHead { method: Method::POST, session, target, sender };
    if let Some(answer) =
        answer_elsewhere(&front, &head, &posted.headers, None, Some(&posted)).await
    {
        return answer;
    }
    let session = front.sessions.find(&options.session_id);
    let is_theirs = |session: &Arc<HttpSession>| {
        session.token_hash == head.sender.token_hash
            && may_use(&front, &head.sender, &session.endpoint)
    };
    let Some(session) = session.filter(is_theirs) else {
        return refusal(StatusCode::NOT_FOUND, None, "unknown session");
    };
    let peer = session.session.peer();
    if peer.is_full() {
        return refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            None,
            "too many unread messages: read them before sending more requests",
        );
    }
    let reply = ReplyChannel { peer: peer.clone(), response: None };
    let inbound = HostHandler::new(session.session.clone(), reply);
    for message in posted.messages {
        receive_message(Ok(message), peer, &inbound);
    }
    (StatusCode::ACCEPTED, "Accepted").into_response()
}
