//! The content of a POST: its messages and headers.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody as _, to_bytes},
    extract::Request,
    http::{
        HeaderMap, StatusCode, Version,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};

use bytes::Bytes;

use crate::{
    protocol::{LEGACY_VERSIONS, Meta, error, method, request_headers},
    wire::{Id, InvalidMessage, Message, Notification, Raw, edit, on_one_line, parse_line},
};

/// Maximum time to receive a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct PostedMessages {
    pub(super) messages: Vec<Message>,
    /// True if the messages were sent as a batch (2025-03-26), which is answered as one.
    pub(super) is_batch: bool,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    pub(super) accepts: AcceptedForms,
    /// The content as it was received.
    pub(super) body: Bytes,
}

/// The forms of an answer that the host can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptedForms {
    Either,
    Json,
    Events,
}

impl PostedMessages {
    /// Returns the value of a header if it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// Returns whether all messages are about what is in flight: replies, progress and
    /// cancellations.
    pub(super) fn are_about_calls_in_flight(&self) -> bool {
        let mut messages = self.messages.iter();
        messages.all(|message| match message {
            Message::Response(_) => true,
            Message::Notification(Notification { method, .. }) => {
                matches!(method.as_str(), method::CANCELLED | method::PROGRESS)
            }
            Message::Request(_) => false,
        })
    }

    /// Returns whether the rules of 2026-07-28 apply: the message says so, or the headers name a
    /// version without sessions.
    pub(super) fn is_modern(&self) -> bool {
        let says_so = |message: &Message| match message {
            Message::Request(request) => {
                let meta = request.params.as_ref().and_then(|params| edit::get(params, "_meta"));
                meta.is_some_and(|meta| edit::get(&meta, Meta::PROTOCOL_VERSION).is_some())
            }
            Message::Notification(_) | Message::Response(_) => false,
        };
        self.messages.iter().any(says_so)
            || self.header(request_headers::VERSION).is_some_and(|version| !is_legacy(version))
                && self.header(request_headers::SESSION_ID).is_none()
    }
}

/// Returns the id of the session that a request names in its header.
pub(super) fn session_id_in(headers: &HeaderMap) -> Option<&str> {
    headers.get(request_headers::SESSION_ID)?.to_str().ok()
}

pub(super) fn is_legacy(version: &str) -> bool {
    LEGACY_VERSIONS.iter().any(|known| known.as_str() == version)
}

/// Reads the messages of a POST.
///
/// # Errors
/// The response that refuses the request.
pub(super) async fn read(request: Request<Body>, limit: usize) -> Result<PostedMessages, Response> {
    let (parts, body) = request.into_parts();
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case("application/json") {
        let message = "the Content-Type must be application/json";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, message));
    }
    let Some(accepts) = accepts(&parts.headers) else {
        let message = "the Accept header must include application/json and text/event-stream";
        return Err(refusal(StatusCode::NOT_ACCEPTABLE, None, message));
    };
    let too_large = || {
        let message = format!("the message exceeds maxMessageBytes ({limit}), or is incomplete");
        refusal(StatusCode::PAYLOAD_TOO_LARGE, None, &message)
    };
    // The size that `Content-Length` declares.
    if usize::try_from(body.size_hint().lower()).map_or(true, |size| size > limit) {
        return Err(too_large());
    }
    let Ok(body) = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, limit)).await else {
        return Err(refusal(StatusCode::REQUEST_TIMEOUT, None, "the body is incomplete"));
    };
    let body = body.map_err(|_| too_large())?;
    let received = body.clone();
    let body = on_one_line(body);
    let is_batch = body.trim_ascii_start().first() == Some(&b'[');
    let mut messages = Vec::new();
    for message in parse_line(&body) {
        messages.push(message.map_err(|invalid| refused_message(&invalid))?);
    }
    let (headers, version) = (parts.headers, parts.version);
    Ok(PostedMessages { messages, is_batch, headers, version, accepts, body: received })
}

fn refused_message(invalid: &InvalidMessage) -> Response {
    let (id, error) = match invalid {
        InvalidMessage::Unparsable { problem, .. } => {
            (None, error::parse_error(format!("not JSON: {problem}")))
        }
        InvalidMessage::MalformedCall { id, reason } => {
            (id.as_ref(), error::invalid_request(reason))
        }
        InvalidMessage::MalformedReply { reason, .. } => (None, error::invalid_request(reason)),
    };
    respond_with(StatusCode::BAD_REQUEST, id, error)
}

/// Returns the forms that the host accepts. A host without `Accept`, or with `*/*`, accepts both.
pub(super) fn accepts(headers: &HeaderMap) -> Option<AcceptedForms> {
    let mut values =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if values.peek().is_none() {
        return Some(AcceptedForms::Either);
    }
    let types: Vec<String> = values
        .flat_map(|value| value.split(','))
        .filter_map(|part| part.split(';').next())
        .map(|part| part.trim().to_ascii_lowercase())
        .collect();
    let has =
        |names: [&str; 2]| types.iter().any(|name| name == "*/*" || names.contains(&name.as_str()));
    match (has(["application/json", "application/*"]), has(["text/event-stream", "text/*"])) {
        (true, true) => Some(AcceptedForms::Either),
        (true, false) => Some(AcceptedForms::Json),
        (false, true) => Some(AcceptedForms::Events),
        (false, false) => None,
    }
}

/// Builds a response with a JSON-RPC error.
pub(super) fn refusal(status: StatusCode, id: Option<&Id>, message: &str) -> Response {
    respond_with(status, id, error::invalid_request(message))
}

pub(super) fn respond_with(status: StatusCode, id: Option<&Id>, error: Raw) -> Response {
    let reply = crate::wire::Response { id: id.cloned(), outcome: Err(error) };
    (status, [(CONTENT_TYPE, "application/json")], Message::Response(reply).to_bytes())
        .into_response()
}
