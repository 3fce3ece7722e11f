//! Streamable HTTP without sessions: each request of 2026-07-28 is independent.

use std::sync::Arc;

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    front::HttpFront,
    placement::names_own_id,
    post_response::{self, ExpectedAnswer},
    principals::HostKey,
    request::{AcceptedForms, PostedMessages, refusal, respond_with},
    sender::Sender,
    stream::MessageStream,
};
use crate::{
    downstream::{
        Session,
        reply_channel::{OpenResponse, ReplyChannel},
    },
    peer::Peer,
    protocol::{Era, MODERN_VERSION, Meta, error, method, request_headers},
    proxy::Endpoint,
    store::HostNumber,
    wire::{Message, Raw, Request, edit},
};

pub(super) async fn post(
    front: &Arc<HttpFront>,
    endpoint: Endpoint,
    sender: &Sender,
    mut posted: PostedMessages,
) -> Response {
    let (Some(message), true) = (posted.messages.pop(), posted.messages.is_empty()) else {
        return refusal(StatusCode::BAD_REQUEST, None, "2026-07-28 has no batches");
    };
    let request = match message {
        Message::Request(request) => request,
        // This revision has no notification over HTTP that matters to dormouse.
        Message::Notification(_) => return StatusCode::ACCEPTED.into_response(),
        Message::Response(_) => {
            return refusal(StatusCode::BAD_REQUEST, None, "2026-07-28 has no responses of hosts");
        }
    };
    if let Err(problem) = validate(front, &endpoint, &posted, &request) {
        return respond_with(StatusCode::BAD_REQUEST, Some(&request.id), problem);
    }
    let key = HostKey::of(sender, &endpoint, &request);
    let kept = front.kept_host(&endpoint, || key.clone());
    let is_here = front.is_from_this_machine(&posted.headers, posted.version);
    let identity = front.principals.identity(key.clone(), sender, endpoint, is_here);
    keep_host(front, kept.map(|(_, number)| number), &request);
    front
        .fleet
        .operator()
        .replication()
        .recall_host(identity.principal, || key.name(&front.fleet))
        .await;
    let is_listen = request.method == method::SUBSCRIPTIONS_LISTEN;
    if is_listen && posted.accepts == AcceptedForms::Json {
        let message = "subscriptions/listen requires Accept: text/event-stream";
        return refusal(StatusCode::NOT_ACCEPTABLE, Some(&request.id), message);
    }
    front.fleet.use_profile(identity.endpoint.profile.as_ref()).await;
    // The stream ends with its answer, or when its host disconnects.
    let stream = MessageStream::once(CancellationToken::new());
    let peer = Peer::new(stream.outbox().clone());
    let session = Session::attach(front.fleet.clone(), peer.clone(), identity);
    let gone = CancellationToken::new();
    if is_listen {
        let ends = [front.stop.clone(), front.principals.moved(&key)];
        front.tasks.spawn(complete_at(ends, gone.clone(), session.clone()));
    }
    let presence = RequestPresence {
        front: front.clone(),
        session: session.clone(),
        _gone: gone.drop_guard(),
    };
    let open = OpenResponse::new(stream.outbox().clone());
    let host = peer.clone();
    let requests = vec![request.id.clone()];
    session.answer(request, &ReplyChannel { peer, response: Some(open) });
    let expected = ExpectedAnswer {
        era: Era::Modern,
        requests,
        is_batch: false,
        accepts: posted.accepts,
        host,
    };
    post_response::respond(stream, expected, presence).await
}

/// Notes that this replica keeps something for a host from now on, unless the request may be here
/// only for an id in it.
fn keep_host(front: &HttpFront, number: Option<HostNumber>, request: &Request) {
    let params = request.params.as_ref().map(Raw::as_bytes).unwrap_or_default();
    if let Some((replicas, number)) = front.replicas.as_ref().zip(number)
        && !names_own_id(params, replicas)
    {
        replicas.keep_host(number);
    }
}

/// Ends a stream of notifications in order at one of `ends`: dormouse shuts down, or the host goes
/// on at another replica. `gone`: the host has disconnected before.
async fn complete_at(
    [stop, moved]: [CancellationToken; 2],
    gone: CancellationToken,
    session: Arc<Session>,
) {
    tokio::select! {
        () = stop.cancelled() => session.complete_listens(),
        () = moved.cancelled() => session.complete_listens(),
        () = gone.cancelled() => {}
    }
}

/// Lives as long as the host holds the connection. A host that disconnects cancels its request
/// (2026-07-28, basic/transports/streamable-http, Cancellation).
struct RequestPresence {
    front: Arc<HttpFront>,
    session: Arc<Session>,
    _gone: DropGuard,
}

impl Drop for RequestPresence {
    fn drop(&mut self) {
        let session = self.session.clone();
        self.front.tasks.spawn(async move { session.detach().await });
    }
}

/// Checks that the headers match the message (Server Validation).
///
/// # Errors
/// The JSON-RPC error that names the mismatch.
fn validate(
    front: &HttpFront,
    endpoint: &Endpoint,
    posted: &PostedMessages,
    request: &Request,
) -> Result<(), Raw> {
    let mismatch =
        |what: String| error::error(error::HEADER_MISMATCH, format!("header mismatch: {what}"));
    let params = request.params.clone().unwrap_or_else(Raw::empty_object);
    let meta = edit::get(&params, "_meta").unwrap_or_else(Raw::empty_object);
    let Some(shown) = posted.header(request_headers::VERSION) else {
        return Err(mismatch("MCP-Protocol-Version is missing".to_owned()));
    };
    match edit::get_str(&meta, Meta::PROTOCOL_VERSION) {
        None if shown == MODERN_VERSION.as_str() => {
            let message = format!("_meta needs {:?}", Meta::PROTOCOL_VERSION);
            return Err(error::invalid_params(message));
        }
        None => return Err(error::unsupported_version(shown)),
        Some(version) if version != shown => {
            return Err(mismatch(format!(
                "MCP-Protocol-Version {shown:?} differs from {version:?} in the message"
            )));
        }
        Some(version) if version != MODERN_VERSION.as_str() => {
            return Err(error::unsupported_version(&version));
        }
        Some(_) => {}
    }
    match posted.header(request_headers::METHOD) {
        Some(method) if method == request.method => {}
        _ => {
            return Err(mismatch(format!(
                "Mcp-Method differs from {:?} in the message",
                request.method
            )));
        }
    }
    if !request_headers::has_subject(&request.method) {
        return Ok(());
    }
    let subject = request_headers::subject(&request.method, &params);
    let shown = posted.header(request_headers::NAME).map(request_headers::decode);
    let is_left_out = shown.is_none() && request_headers::may_omit_name(&request.method);
    if !is_left_out && (shown != Some(subject.clone()) || subject.is_none()) {
        let subject = subject.unwrap_or_default();
        return Err(mismatch(format!("Mcp-Name differs from {subject:?} in the message")));
    }
    let tool = subject.filter(|_| request.method == method::TOOLS_CALL);
    match tool.and_then(|name| front.fleet.listed_tool(endpoint, &name)) {
        Some(tool) => validate_parameters(posted, &tool, &params).map_err(mismatch),
        None => Ok(()),
    }
}

/// Checks that the headers repeat the parameters that the tool requires (Server Behavior for Custom
/// Headers).
fn validate_parameters(posted: &PostedMessages, tool: &Raw, params: &Raw) -> Result<(), String> {
    let arguments = edit::get(params, "arguments").unwrap_or_else(Raw::empty_object);
    for (name, value) in request_headers::parameter_values(tool, &arguments) {
        let shown =
            posted.header(&format!("{}{}", request_headers::PARAMETER, name.to_ascii_lowercase()));
        let is_same = match (shown.map(request_headers::decode), &value) {
            (None, None) => true,
            (Some(Some(shown)), Some(value)) => shown == *value || same_number(&shown, value),
            _ => false,
        };
        if !is_same {
            return Err(format!("Mcp-Param-{name} differs from the message"));
        }
    }
    Ok(())
}

/// Returns whether two arguments are the same number, such as `42` and `42.0`.
fn same_number(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() < f64::EPSILON,
        _ => false,
    }
}
