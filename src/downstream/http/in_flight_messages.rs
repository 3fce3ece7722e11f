//! The messages of legacy hosts about what is in flight: replies, progress and cancellations. They
//! may reach another replica than the one that waits for them.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use futures_util::future::join_all;
use tokio::time::timeout;

use super::{
    forwarding::{Unanswered, forward},
    front::HttpFront,
    legacy::{check_access, deliver, named_session, unknown_session},
    placement::RequestHead,
    reopening::ticket_of_other_replica,
    request::PostedMessages,
    session_ticket::SessionTicket,
    sessions::HttpSession,
};
use crate::{
    proxy::Endpoint,
    store::{Replica, Replicas},
    wire::Message,
};

/// Maximum time to forward a message.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(3);

/// Gives each message to the copy of its session that waits for it. Opens no session again, since
/// nothing would wait for the messages in it.
///
/// # Errors
/// The response that refuses them.
pub(super) async fn accept(
    front: &Arc<HttpFront>,
    endpoint: &Endpoint,
    head: &RequestHead,
    posted: PostedMessages,
) -> Result<Response, Response> {
    let PostedMessages { messages, headers, .. } = posted;
    let id = named_session(&headers)?;
    let copies = front.sessions.copies(id);
    let Some(current) = copies.first().cloned() else {
        ticket_of_other_replica(front, id, endpoint, &head.sender).ok_or_else(unknown_session)?;
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    let current = check_access(front, current, endpoint, &head.sender, &headers)?;
    let _in_use = current.begin_use();
    let mut unclaimed = Vec::new();
    for message in messages {
        match copies.iter().find(|copy| copy.session.awaits(&message)) {
            Some(copy) => deliver(copy, message, None),
            None => unclaimed.push(message),
        }
    }
    match &front.replicas {
        Some(replicas) if !current.is_reopened() => {
            forward_to_stand_ins(replicas, &current, head, &headers, &unclaimed).await;
        }
        _ => unclaimed.into_iter().for_each(|message| deliver(&current, message, None)),
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Forwards messages to the replicas that may have stood in for this one, and may complete what the
/// messages are about. They drop what nothing waits for.
async fn forward_to_stand_ins(
    replicas: &Replicas,
    session: &HttpSession,
    head: &RequestHead,
    headers: &HeaderMap,
    messages: &[Message],
) {
    let ticket = SessionTicket::open(replicas.keys(), session.token_hash, &session.id);
    let Some(ticket) = ticket else { return };
    for message in messages {
        let forward_to = async |replica: Arc<Replica>| {
            let request = head.received(headers, message.to_bytes());
            let forwarded = timeout(FORWARD_TIMEOUT, forward(replicas.keys(), &replica, request));
            if let Ok(Err(Unanswered::NotReached)) = forwarded.await {
                replicas.note_unreachable(&replica);
            }
        };
        join_all(replicas.stand_ins(ticket.key.as_bytes()).into_iter().map(forward_to)).await;
    }
}
