//! The server's end of a connection in memory.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use rmcp::model::ErrorCode;
use serde_json::json;
use tokio_util::task::TaskTracker;

use super::{MemoryServer, Step, wait};
use crate::{
    base::Lock,
    peer::{Peer, receive_message},
    protocol::{Era, MODERN_VERSION, error, method},
    upstream::inbound::ServerInbound,
    wire::{Message, Outbox, Outcome, Raw, Request, Response, edit},
};

/// The ends of URIs to which a subscription is refused, or never answered.
const REFUSED: &str = ":refused";
const HANGS: &str = ":hangs";

/// One connection, as the server sees it.
pub(super) struct MemoryConnection {
    pub(super) server: Arc<MemoryServer>,
    pub(super) handshake: Step,
    pub(super) lists: Step,
    pub(super) inbound: ServerInbound,
    pub(super) tasks: TaskTracker,
    pub(super) subscribed: Lock<BTreeSet<String>>,
}

impl MemoryConnection {
    pub(super) fn peer(&self) -> &Peer {
        self.inbound.peer()
    }

    pub(super) async fn serve(self: Arc<Self>, outbox: Outbox) {
        let mut messages = VecDeque::new();
        while outbox.take(&mut messages).await {
            for message in messages.drain(..) {
                outbox.note_written(message.weight());
                if let Message::Request(request) = message {
                    self.subscribe(&request);
                    self.tasks.spawn(self.clone().answer(request));
                }
            }
        }
    }

    /// Performs a subscription before it is answered, as a server may.
    fn subscribe(&self, request: &Request) {
        let Some(uri) = request.params.as_ref().and_then(|params| edit::get_str(params, "uri"))
        else {
            return;
        };
        match request.method.as_str() {
            method::RESOURCES_SUBSCRIBE if !uri.ends_with(REFUSED) => {
                self.subscribed.lock().insert(uri);
            }
            method::RESOURCES_UNSUBSCRIBE => {
                self.subscribed.lock().remove(&uri);
            }
            _ => {}
        }
    }

    async fn answer(self: Arc<Self>, request: Request) {
        let prescribed = prescribed_delay(&request);
        let step = match request.method.as_str() {
            method::INITIALIZE | method::SERVER_DISCOVER => &self.handshake,
            method::TOOLS_LIST | method::RESOURCES_LIST | method::RESOURCE_TEMPLATES_LIST => {
                &self.lists
            }
            // The stream stays open.
            method::SUBSCRIPTIONS_LISTEN => &Step::Hangs,
            _ => &prescribed,
        };
        let (delay, is_usable) = match step {
            Step::Takes(delay) => (*delay, true),
            Step::Fails(delay, _) => (*delay, false),
            Step::Hangs => return,
        };
        tokio::select! {
            biased;
            () = self.peer().closed() => return,
            () = wait(delay) => {}
        }
        let outcome = match request.method.as_str() {
            method::SERVER_DISCOVER if self.server.newest == Era::Legacy => {
                Err(error::method_not_found(&request.method))
            }
            method::INITIALIZE | method::SERVER_DISCOVER => greeting(&request.method, is_usable),
            _ if !is_usable => return self.peer().close(),
            _ => self.outcome(&request),
        };
        let response = Message::Response(Response { id: Some(request.id), outcome });
        receive_message(Ok(response), self.peer(), &self.inbound);
    }

    fn outcome(&self, request: &Request) -> Outcome {
        let params = request.params.clone().unwrap_or_else(Raw::empty_object);
        let uri = || edit::get_str(&params, "uri").unwrap_or_default();
        Ok(match request.method.as_str() {
            method::TOOLS_LIST => {
                let tools = self.server.tools();
                let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                Raw::encode(&json!({"tools": tools.iter().map(tool).collect::<Vec<_>>()}))
            }
            method::RESOURCES_LIST => {
                let uris = self.server.resources();
                let resource = |uri| json!({"uri": uri, "name": uri});
                Raw::encode(&json!({"resources": uris.iter().map(resource).collect::<Vec<_>>()}))
            }
            method::RESOURCE_TEMPLATES_LIST => Raw::encode(&json!({"resourceTemplates": []})),
            method::RESOURCES_SUBSCRIBE if uri().ends_with(REFUSED) => {
                return Err(error::invalid_params("refused"));
            }
            method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE
            | method::LOGGING_SET_LEVEL => Raw::empty_object(),
            method::TOOLS_CALL => {
                let arguments = edit::get(&params, "arguments").unwrap_or_else(Raw::empty_object);
                let text = edit::get_str(&arguments, "text").unwrap_or_default();
                Raw::encode(&json!({"content": [{"type": "text", "text": text}]}))
            }
            method => return Err(error::method_not_found(method)),
        })
    }
}

/// Returns the delay that a request prescribes, in milliseconds: the end of a URI, or the argument
/// `delay` of a tool.
fn prescribed_delay(request: &Request) -> Step {
    let params = request.params.clone().unwrap_or_else(Raw::empty_object);
    let uri =
        edit::get_str(&params, "uri").filter(|_| request.method == method::RESOURCES_SUBSCRIBE);
    if uri.as_ref().is_some_and(|uri| uri.ends_with(HANGS)) {
        return Step::Hangs;
    }
    let of_uri = uri.and_then(|uri| uri.rsplit(':').next()?.parse().ok());
    let arguments = edit::get(&params, "arguments");
    let of_tool = arguments.and_then(|arguments| edit::get(&arguments, "delay")?.read().ok());
    Step::Takes(Duration::from_millis(of_uri.or(of_tool).unwrap_or(0)))
}

/// Returns the answer to a handshake: with everything, or without a version that dormouse speaks.
fn greeting(method: &str, is_usable: bool) -> Outcome {
    let capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "logging": {},
    });
    let modern = MODERN_VERSION.as_str();
    match (method, is_usable) {
        (method::INITIALIZE, true) => Ok(Raw::encode(&json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": {"name": "memory", "version": "1"},
        }))),
        (method::INITIALIZE, false) => Ok(Raw::empty_object()),
        (_, true) => {
            Ok(Raw::encode(&json!({"supportedVersions": [modern], "capabilities": capabilities})))
        }
        (_, false) => Err(Raw::encode(&json!({
            "code": ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0,
            "message": "unsupported",
            "data": {"supported": ["1900-01-01"]},
        }))),
    }
}
