//! Streamable HTTP without sessions: each request of 2026-07-28 stands for itself.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use rmcp::model::ErrorCode;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Front,
    answer::{self, Expected, HEADER_MISMATCH},
    guard::Pass,
    request::{Accepts, Posted, refusal, respond_with},
    stream::MessageStream,
};
use crate::{
    base::Lock,
    catalog::ServerId,
    downstream::{
        Identity, Session,
        identity::Relisting,
        reply::{Open, Reply},
    },
    peer::Peer,
    protocol::{Era, MODERN_VERSION, Meta, error, method, request_headers},
    proxy::{Endpoint, Principal},
    wire::{Message, Raw, Request, edit},
};

/// Hosts that are remembered at once.
const MAX_PRINCIPALS: usize = 10_000;

/// The hosts without sessions, as far as they can be told apart: by what they came in with, where, and
/// what they say of themselves.
#[derive(Default)]
pub(super) struct Principals(Lock<HashMap<Likeness, Known>>);

/// What requests of the same host have in common.
type Likeness = (Pass, Option<ServerId>, [u8; 32]);

#[derive(Clone)]
struct Known {
    principal: Principal,
    relisting: Arc<Relisting>,
    last_used: Instant,
}

impl Principals {
    fn identity(
        &self,
        pass: Pass,
        endpoint: Endpoint,
        is_on_this_machine: bool,
        client: &Raw,
    ) -> Identity {
        let client = Sha256::digest(client.as_bytes()).into();
        let mut known = self.0.lock();
        let now = Instant::now();
        let new =
            || Known { principal: Principal::new(), relisting: Arc::default(), last_used: now };
        let known = known.entry((pass, endpoint.only, client)).or_insert_with(new);
        known.last_used = now;
        let known = known.clone();
        Identity {
            principal: known.principal,
            user: pass.user(),
            endpoint,
            is_on_this_machine,
            has_further_sessions: true,
            relisting: known.relisting,
        }
    }

    /// Takes out the hosts that have not been heard of for `timeout`, and beyond a number the oldest.
    pub(super) fn take_expired(&self, timeout: Duration) -> Vec<Principal> {
        let mut all = self.0.lock();
        let mut ages: Vec<Instant> = all.values().map(|known| known.last_used).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let oldest = ages.get(MAX_PRINCIPALS).copied();
        let mut expired = Vec::new();
        all.retain(|_, known| {
            let stays = known.last_used.elapsed() < timeout
                && oldest.is_none_or(|oldest| known.last_used > oldest);
            if !stays {
                expired.push(known.principal);
            }
            stays
        });
        expired
    }
}

pub(super) async fn post(
    front: &Arc<Front>,
    endpoint: Endpoint,
    pass: Pass,
    mut posted: Posted,
) -> Response {
    let (Some(message), true) = (posted.messages.pop(), posted.messages.is_empty()) else {
        return refusal(StatusCode::BAD_REQUEST, None, "2026-07-28 has no batches");
    };
    let request = match message {
        Message::Request(request) => request,
        // Over HTTP this revision has no notification that would say anything to us.
        Message::Notification(_) => return StatusCode::ACCEPTED.into_response(),
        Message::Response(_) => {
            return refusal(StatusCode::BAD_REQUEST, None, "2026-07-28 asks hosts nothing");
        }
    };
    if let Err(problem) = validate(front, endpoint, &posted, &request) {
        return respond_with(StatusCode::BAD_REQUEST, Some(&request.id), problem);
    }
    let meta = request.params.as_ref().and_then(|params| edit::get(params, "_meta"));
    let client = meta.and_then(|meta| edit::get(&meta, Meta::CLIENT_INFO));
    let client = client.unwrap_or_else(Raw::empty_object);
    let is_here = front.is_from_here(&posted.headers, posted.version);
    let identity = front.principals.identity(pass, endpoint, is_here, &client);
    let is_listen = request.method == method::SUBSCRIPTIONS_LISTEN;
    if is_listen && posted.accepts == Accepts::Json {
        let message = "subscriptions/listen is answered with text/event-stream";
        return refusal(StatusCode::NOT_ACCEPTABLE, Some(&request.id), message);
    }
    // It ends with its answer, or with its host.
    let stream = MessageStream::once(CancellationToken::new());
    let peer = Peer::new(stream.outbox().clone());
    let session = Session::attach(front.fleet.clone(), peer.clone(), identity);
    let gone = CancellationToken::new();
    if is_listen {
        front.tasks.spawn(complete_at_stop(front.stop.clone(), gone.clone(), session.clone()));
    }
    let present =
        Present { front: front.clone(), session: session.clone(), _gone: gone.drop_guard() };
    let open = Open::new(stream.outbox().clone());
    let host = peer.clone();
    let requests = vec![request.id.clone()];
    session.answer(request, &Reply { peer, response: Some(open) });
    let expected =
        Expected { era: Era::Modern, requests, is_batch: false, accepts: posted.accepts, host };
    answer::respond(stream, expected, present).await
}

/// Ends a stream of notifications in order when dormouse ends before its host does.
async fn complete_at_stop(stop: CancellationToken, gone: CancellationToken, session: Arc<Session>) {
    tokio::select! {
        () = stop.cancelled() => session.complete_listens(),
        () = gone.cancelled() => {}
    }
}

/// The host, for as long as it holds the connection: its leaving cancels the request (2026-07-28,
/// basic/transports/streamable-http, Cancellation).
struct Present {
    front: Arc<Front>,
    session: Arc<Session>,
    _gone: DropGuard,
}

impl Drop for Present {
    fn drop(&mut self) {
        let session = self.session.clone();
        self.front.tasks.spawn(async move { session.detach().await });
    }
}

/// Whether the headers say the same as the message (Server Validation).
///
/// # Errors
/// The JSON-RPC error that says where they do not.
fn validate(
    front: &Front,
    endpoint: Endpoint,
    posted: &Posted,
    request: &Request,
) -> Result<(), Raw> {
    let mismatch = |what: String| {
        let code = i32::try_from(HEADER_MISMATCH).unwrap_or_default();
        error::error(ErrorCode(code), format!("header mismatch: {what}"))
    };
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
            return Err(mismatch(format!("MCP-Protocol-Version {shown:?} is not {version:?}")));
        }
        Some(version) if version != MODERN_VERSION.as_str() => {
            return Err(error::unsupported_version(&version));
        }
        Some(_) => {}
    }
    match posted.header(request_headers::METHOD) {
        Some(method) if method == request.method => {}
        _ => return Err(mismatch(format!("Mcp-Method is not {:?}", request.method))),
    }
    if !request_headers::has_subject(&request.method) {
        return Ok(());
    }
    let subject = request_headers::subject(&request.method, &params);
    let shown = posted.header(request_headers::NAME).map(request_headers::decode);
    let is_left_out = shown.is_none() && request_headers::may_omit_name(&request.method);
    if !is_left_out && (shown != Some(subject.clone()) || subject.is_none()) {
        let subject = subject.unwrap_or_default();
        return Err(mismatch(format!("Mcp-Name is not {subject:?}")));
    }
    let tool = subject.filter(|_| request.method == method::TOOLS_CALL);
    match tool.and_then(|name| front.fleet.listed_tool(endpoint, &name)) {
        Some(tool) => validate_parameters(posted, &tool, &params).map_err(mismatch),
        None => Ok(()),
    }
}

/// Whether the parameters that a tool wants repeated are (Server Behavior for Custom Headers).
fn validate_parameters(posted: &Posted, tool: &Raw, params: &Raw) -> Result<(), String> {
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
            return Err(format!("Mcp-Param-{name} does not say what the message says"));
        }
    }
    Ok(())
}

/// `42` and `42.0` are the same argument.
fn same_number(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() < f64::EPSILON,
        _ => false,
    }
}
