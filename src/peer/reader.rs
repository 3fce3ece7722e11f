//! The receiving half of a connection: every line is answered, handed over, or counted.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::io::AsyncRead;

use super::{CallError, Peer};
use crate::{
    protocol::method,
    wire::{
        Invalid, Line, LineReader, Message, Notification, Request, Response, Skimmed, parse_line,
    },
};

/// What the owner of a connection does with what the other side sends of its own accord.
pub trait Handler: Send + Sync + 'static {
    /// Takes a request. Must not block: whoever works on it answers with [`Peer::respond`].
    fn request(&self, request: Request);

    /// Takes a notification, in the order of arrival.
    fn notification(&self, notification: Notification);

    /// Takes note of what cannot be read. A host is answered, a server's noise is counted.
    fn unreadable(&self, what: Unreadable);

    /// Waits while those that receive what this side sends cannot take more.
    fn ready(&self) -> impl Future<Output = ()> + Send;
}

/// What arrived and was no message that anybody waits for.
#[derive(Debug)]
pub enum Unreadable {
    Invalid(Invalid),
    /// A request or notification above the size limit.
    Oversized {
        skimmed: Skimmed,
        limit: usize,
    },
    /// A response that no request waits for: late, repeated, or invented.
    Stray(Response),
}

/// Reads until the stream ends. What is pending then can be answered by nobody any more; whether the
/// other direction stays open is the owner's to say, with [`Peer::close`].
///
/// # Errors
/// When reading fails.
pub async fn read_messages<R, H>(
    mut lines: LineReader<R>,
    limit: usize,
    peer: Peer,
    handler: Arc<H>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    H: Handler,
{
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line))) => receive(&line, &peer, handler.as_ref()),
            Ok(Some(Line::Oversized(skimmed))) => {
                take_oversized(skimmed, limit, &peer, handler.as_ref());
            }
            Ok(None) => return Ok(()),
            Err(error) => return Err(error),
        }
        handler.ready().await;
    }
}

/// Takes the messages of one line: answers what is pending, and hands the rest to `handler`.
pub fn receive<H: Handler>(line: &Bytes, peer: &Peer, handler: &H) {
    for message in parse_line(line) {
        receive_message(message, peer, handler);
    }
}

/// Takes one message, or what should have been one.
pub fn receive_message<H: Handler>(message: Result<Message, Invalid>, peer: &Peer, handler: &H) {
    match message {
        Ok(Message::Response(response)) => take_response(response, peer, handler),
        Ok(Message::Request(request)) => handler.request(request),
        Ok(Message::Notification(notification)) => {
            if !is_progress_of_ours(&notification, peer) {
                handler.notification(notification);
            }
        }
        Err(Invalid::NotReply { id, reason }) => {
            if !peer.answer(Some(&id), Err(CallError::Malformed(reason))) {
                handler.unreadable(Unreadable::Invalid(Invalid::NotReply { id, reason }));
            }
        }
        Err(invalid) => handler.unreadable(Unreadable::Invalid(invalid)),
    }
}

fn take_response<H: Handler>(response: Response, peer: &Peer, handler: &H) {
    let Response { id, outcome } = response;
    // Cloning is two reference counts; it buys that a stray reply can be shown.
    if !peer.answer(id.as_ref(), Ok(outcome.clone())) {
        handler.unreadable(Unreadable::Stray(Response { id, outcome }));
    }
}

fn is_progress_of_ours(notification: &Notification, peer: &Peer) -> bool {
    notification.method == method::PROGRESS
        && notification
            .params
            .as_ref()
            .is_some_and(|params| peer.connection.pending.lock().progress(params))
}

fn take_oversized<H: Handler>(skimmed: Skimmed, limit: usize, peer: &Peer, handler: &H) {
    let error = CallError::Oversized { size: skimmed.size, limit };
    if skimmed.is_call || !peer.answer(skimmed.id.as_ref(), Err(error)) {
        handler.unreadable(Unreadable::Oversized { skimmed, limit });
    }
}
