//! Builds the response to a POST from the messages that answer it: one JSON text, or an event
//! stream.

use std::{any::Any, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use rmcp::model::ErrorCode;

use super::{request::AcceptedForms, stream::MessageStream};
use crate::{
    peer::Peer,
    protocol::{Era, error},
    wire::{self, Id, Message, Raw},
};

/// Maximum time for an answer before the host gets an event stream instead of JSON. A legacy host
/// can resume a stream when its connection breaks; for a modern host, only JSON lets the status
/// tell how the request ended.
const LEGACY_JSON_TIMEOUT: Duration = Duration::from_millis(100);
const MODERN_JSON_TIMEOUT: Duration = Duration::from_secs(2);

/// The answer that a POST waits for.
pub(super) struct ExpectedAnswer {
    pub(super) era: Era,
    /// The ids of the requests.
    pub(super) requests: Vec<Id>,
    pub(super) is_batch: bool,
    pub(super) accepts: AcceptedForms,
    /// The host, whose peer refuses requests of servers if it does not read events.
    pub(super) host: Peer,
}

/// Waits for the first messages, and chooses the form of the response by them: JSON if there are
/// only answers, otherwise an event stream. `keep` is dropped with the response.
pub(super) async fn respond<K: Any + Send>(
    stream: Arc<MessageStream>,
    expected: ExpectedAnswer,
    keep: K,
) -> Response {
    let patience = match expected.era {
        Era::Legacy => LEGACY_JSON_TIMEOUT,
        Era::Modern => MODERN_JSON_TIMEOUT,
    };
    let mut messages = Vec::new();
    loop {
        if expected.accepts == AcceptedForms::Events
            && (expected.era == Era::Legacy || !messages.is_empty())
        {
            break;
        }
        let more = stream.take();
        let taken = match expected.accepts {
            AcceptedForms::Json => Ok(more.await),
            AcceptedForms::Either | AcceptedForms::Events => {
                tokio::time::timeout(patience, more).await
            }
        };
        match taken {
            Ok(Some(more)) => {
                if expected.accepts == AcceptedForms::Json {
                    refuse_server_requests(&more, &expected.host);
                }
                messages.extend(more);
            }
            // The requests were cancelled, so that no answer will come. Some hosts wait for one
            // anyway.
            Ok(None) if messages.is_empty() => {
                return json(&cancelled_answers(&expected), &expected);
            }
            Ok(None) | Err(_) => break,
        }
        let answers = messages.iter().filter(|message| is_answer(message)).count();
        let are_alone = answers == messages.len();
        if answers >= expected.requests.len()
            && (are_alone || expected.accepts == AcceptedForms::Json)
        {
            stream.confirm_sent();
            messages.retain(is_answer);
            return json(&messages, &expected);
        }
        if !are_alone && expected.accepts != AcceptedForms::Json {
            break;
        }
    }
    events(stream.events(messages, None, keep))
}

fn cancelled_answers(expected: &ExpectedAnswer) -> Vec<Message> {
    let error = || error::error(error::REQUEST_CANCELLED, "Request cancelled");
    let answer =
        |id: &Id| Message::Response(wire::Response { id: Some(id.clone()), outcome: Err(error()) });
    expected.requests.iter().map(answer).collect()
}

/// Refuses the requests of servers to a host that reads only answers and would never see them.
fn refuse_server_requests(messages: &[Message], host: &Peer) {
    for message in messages {
        if let Message::Request(question) = message
            && let Some(id) = question.id.as_u64()
        {
            host.settle(id, Err(error::method_not_found(&question.method)));
        }
    }
}

fn is_answer(message: &Message) -> bool {
    matches!(message, Message::Response(_))
}

fn json(answers: &[Message], expected: &ExpectedAnswer) -> Response {
    let status = match answers {
        [Message::Response(reply)] if expected.era == Era::Modern => match &reply.outcome {
            Ok(_) => StatusCode::OK,
            Err(error) => status(error),
        },
        _ => StatusCode::OK,
    };
    let body = match answers {
        [answer] if !expected.is_batch => answer.to_bytes(),
        answers => Message::batch(answers),
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Returns the status that 2026-07-28 requires for an error (basic/transports/streamable-http,
/// Request Metadata).
fn status(error: &Raw) -> StatusCode {
    match ErrorCode(i32::try_from(error::code(error)).unwrap_or_default()) {
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::INVALID_PARAMS
        | ErrorCode::INVALID_REQUEST
        | error::HEADER_MISMATCH
        | error::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Builds a response that carries an event stream.
pub(super) fn events(
    body: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        // Without this header nginx would buffer the events.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (StatusCode::OK, headers, Body::from_stream(body)).into_response()
}
