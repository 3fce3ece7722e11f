//! The messages of legacy hosts about what is in flight: replies, progress and cancellations. They
//! may reach another replica than the one that waits for them.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use tokio::time::timeout;

use super::{
    forwarding::{Unanswered, forward, seems_forwarded},
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
    let id = named_session(&posted.headers)?;
    let copies = front.sessions.copies(id);
    if let Some(copy) = copies.first() {
        check_access(front, copy, endpoint, &head.sender, &posted.headers)?;
    }
    // A session whose host sends something does not expire.
    let _in_use = copies.first().map(HttpSession::begin_use);
    let mut unclaimed = Vec::new();
    for message in &posted.messages {
        match copies.iter().find(|copy| copy.session.awaits(message)) {
            Some(copy) => deliver(copy, message.clone(), None),
            None => unclaimed.push(message.clone()),
        }
    }
    if unclaimed.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    // A mark that has expired still ends the forwarding.
    if !seems_forwarded(&posted.headers)
        && let Some(answer) =
            answer_elsewhere(front, head, &posted.headers, Some(endpoint), Some(&posted)).await
    {
        return Ok(answer);
    }
    match copies.first() {
        None => {
            ticket_of_other_replica(front, id, endpoint, &head.sender)
                .ok_or_else(unknown_session)?;
        }
        Some(session) if front.replicas.is_some() && !session.is_reopened() => {
            forward_to_stand_ins(front, session, head, &posted.headers, unclaimed);
        }
        Some(session) => {
            for message in unclaimed {
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
    headers: &HeaderMap,
    messages: Vec<Message>,
) {
    let Some(replicas) = &front.replicas else { return };
    let ticket = SessionTicket::open(replicas.keys(), session.token_hash, &session.id);
    let Some(ticket) = ticket else { return };
    for message in messages {
        let body = message.to_bytes();
        let size = u32::try_from(body.len() / 1024 + 1).unwrap_or(u32::MAX);
        for replica in replicas.stand_ins(ticket.key.as_bytes()) {
            let Ok(room) = front.forwarding.clone().try_acquire_many_owned(size) else { break };
            let replicas = replicas.clone();
            let request = head.received(headers, body.clone());
            front.tasks.spawn(async move {
                let _room = room;
                let forwarding = forward(replicas.keys(), &replica, request);
                if let Ok(Err(Unanswered::NotReached)) = timeout(FORWARD_TIMEOUT, forwarding).await
                {
                    replicas.note_unreachable(&replica);
                }
            });
        }
    }
}
