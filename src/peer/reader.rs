//! The receiving half of a connection: every line is answered, passed on, or counted.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::io::AsyncRead;

use super::{CallError, Peer};
use crate::{
    protocol::method,
    wire::{
        InvalidMessage, Line, LineReader, LineSummary, Message, Notification, Request, Response,
        parse_line,
    },
};

/// The owner's handler of messages that answer no request.
pub(crate) trait MessageHandler: Send + Sync + 'static {
    /// Handles a request without blocking. Its answer is sent with [`Peer::respond`].
    fn request(&self, request: Request);

    /// Handles a notification, in the order of arrival.
    fn notification(&self, notification: Notification);

    /// Handles an unreadable message. A host gets an error; messages of a server are counted.
    fn unexpected(&self, what: UnexpectedMessage);

    /// Waits while the receivers of this side's messages cannot accept more.
    fn ready(&self) -> impl Future<Output = ()> + Send;
}

/// Input that is not a message, or that no request waits for.
#[derive(Debug)]
pub(crate) enum UnexpectedMessage {
    Invalid(InvalidMessage),
    /// A request or notification above the size limit.
    Oversized {
        summary: LineSummary,
        limit: usize,
    },
    /// A response that no request waits for: late, repeated, or invented.
    Stray(Response),
}

/// Reads until the stream ends. Requests that are pending then will not be answered; the owner
/// decides whether the other direction stays open, with [`Peer::close`].
///
/// # Errors
/// If reading fails.
pub(crate) async fn read_messages<R, H>(
    mut lines: LineReader<R>,
    limit: usize,
    peer: Peer,
    handler: Arc<H>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    H: MessageHandler,
{
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line))) => receive(&line, &peer, handler.as_ref()),
            Ok(Some(Line::Oversized(summary))) => {
                receive_oversized(summary, limit, &peer, handler.as_ref());
            }
            Ok(None) => return Ok(()),
            Err(error) => return Err(error),
        }
        handler.ready().await;
    }
}

/// Handles the messages of one line: answers pending requests, and passes the rest to `handler`.
pub(crate) fn receive<H: MessageHandler>(line: &Bytes, peer: &Peer, handler: &H) {
    for message in parse_line(line) {
        receive_message(message, peer, handler);
    }
}

/// Handles one message, or input that is not one.
pub(crate) fn receive_message<H: MessageHandler>(
    message: Result<Message, InvalidMessage>,
    peer: &Peer,
    handler: &H,
) {
    match message {
        Ok(Message::Response(response)) => receive_response(response, peer, handler),
        Ok(Message::Request(request)) => handler.request(request),
        Ok(Message::Notification(notification)) => {
            if !is_progress_of_ours(&notification, peer) {
                handler.notification(notification);
            }
        }
        Err(InvalidMessage::MalformedReply { id, reason }) => {
            if !peer.answer(Some(&id), Err(CallError::Malformed(reason))) {
                handler.unexpected(UnexpectedMessage::Invalid(InvalidMessage::MalformedReply {
                    id,
                    reason,
                }));
            }
        }
        Err(invalid) => handler.unexpected(UnexpectedMessage::Invalid(invalid)),
    }
}

fn receive_response<H: MessageHandler>(response: Response, peer: &Peer, handler: &H) {
    let Response { id, outcome } = response;
    // A clone costs two reference counts, and keeps a stray reply for its report.
    if !peer.answer(id.as_ref(), Ok(outcome.clone())) {
        handler.unexpected(UnexpectedMessage::Stray(Response { id, outcome }));
    }
}

fn is_progress_of_ours(notification: &Notification, peer: &Peer) -> bool {
    notification.method == method::PROGRESS
        && notification.params.as_ref().is_some_and(|params| peer.progress(params))
}

fn receive_oversized<H: MessageHandler>(
    summary: LineSummary,
    limit: usize,
    peer: &Peer,
    handler: &H,
) {
    let error = CallError::Oversized { size: summary.size, limit };
    if summary.is_call || !peer.answer(summary.id.as_ref(), Err(error)) {
        handler.unexpected(UnexpectedMessage::Oversized { summary, limit });
    }
}
