//! The messages of legacy hosts about what is in flight: replies, progress and cancellations. They
//! may reach another replica than the one that waits for them.

use std::{sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use tokio::time::timeout;

use super::{
    forwarding::{forward, seems_forwarded},
    front::HttpFront,
    legacy::{check_access, deliver, named_session, unknown_session},
    placement::{RequestHead, answer_elsewhere},
    reopening::ticket_of_other_replica,
    request::PostedMessages,
    session_ticket::SessionTicket,
    sessions::HttpSession,
};
use crate::{proxy::Endpoint, wire::Message};

/// Maximum time to forward a message to a replica that may have stood in for this one.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(3);
/// Minimum size that a forwarded POST counts for, in bytes. It has headers and a connection too.
const MIN_SIZE: usize = 1024 * 1024;

/// Gives each message to the copy of its session that waits for it, here or at another replica.
/// Opens no session again, since nothing would wait for the messages in it.
///
/// # Errors
/// The response that refuses them.
pub(super) async fn accept(
    front: &Arc<HttpFront>,
    endpoint: &Endpoint,
    head: &RequestHead,
    posted: PostedMessages,
) -> Result<Response, Response> {
    let headers = posted.headers.clone();
    let id = named_session(&headers)?;
    let copies = front.sessions.copies(id);
    if let Some(copy) = copies.first() {
        check_access(front, copy, endpoint, &head.sender, &headers)?;
    }
    // A session whose host sends something does not expire.
    let _in_use = copies.first().map(HttpSession::begin_use);
    let mut unclaimed = Vec::new();
    for message in posted.messages {
        match copies.iter().find(|copy| copy.session.awaits(&message)) {
            Some(copy) => deliver(copy, message, None),
            None => unclaimed.push(message),
        }
    }
    if unclaimed.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let body = body_of(&unclaimed);
    let unclaimed = PostedMessages { messages: unclaimed, body, ..posted };
    // A mark that has expired still ends the forwarding.
    if !seems_forwarded(&headers)
        && let Some(answer) =
            answer_elsewhere(front, head, &headers, Some(endpoint), Some(&unclaimed)).await
    {
        return Ok(answer);
    }
    match copies.first() {
        None => {
            ticket_of_other_replica(front, id, endpoint, &head.sender)
                .ok_or_else(unknown_session)?;
        }
        Some(session) if front.replicas.is_some() && !session.is_reopened() => {
            forward_to_stand_ins(front, session, head, &unclaimed);
        }
        Some(session) => {
            for message in unclaimed.messages {
                deliver(session, message, None);
            }
        }
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Forwards messages to the replicas that may have stood in for this one, and may complete what the
/// messages are about. They drop what nothing waits for. Returns at once, since they may hang.
fn forward_to_stand_ins(
    front: &Arc<HttpFront>,
    session: &HttpSession,
    head: &RequestHead,
    posted: &PostedMessages,
) {
    let Some(replicas) = &front.replicas else { return };
    let ticket = SessionTicket::open(replicas.keys(), session.token_hash, &session.id);
    let Some(ticket) = ticket else { return };
    let size = posted.body.len().max(MIN_SIZE).div_ceil(1024);
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    for replica in replicas.stand_ins(ticket.key.as_bytes()) {
        let room = front.room_for_forwarding.clone().try_acquire_many_owned(size);
        let Ok(room) = room else { return };
        let replicas = replicas.clone();
        let request = head.received(&posted.headers, posted.body.clone());
        front.tasks.spawn(async move {
            let _room = room;
            // What is lost is logged.
            let _ = timeout(FORWARD_TIMEOUT, forward(replicas.keys(), &replica, request)).await;
        });
    }
}

/// Returns the body of a POST with these messages.
fn body_of(messages: &[Message]) -> Bytes {
    match messages {
        [message] => message.to_bytes(),
        messages => Message::batch(messages),
    }
}
