//! A host within this same process, for a command that does what an agent would do.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::io::DuplexStream;
use tokio_util::task::AbortOnDropHandle;

use super::{Identity, Session, reply::Reply, session::Inbound};
use crate::{
    peer::{CallError, CallOptions, MessageHandler, Peer, UnexpectedMessage, read_messages},
    protocol::{error, method},
    proxy::Fleet,
    wire::{LineReader, Notification, Outbox, Outcome, Raw, Request, write_messages},
};

/// What is on its way between the two ends, in bytes.
const PIPE: usize = 64 * 1024;

/// Calls a tool as a host that can do nothing else, from its handshake to its end.
///
/// # Errors
/// When the call has no answer; a refusal is the `Err` of [`Outcome`].
pub async fn call_tool(fleet: &Arc<Fleet>, params: Raw) -> Result<Outcome, CallError> {
    let limit = fleet.settings().max_message_bytes;
    let (near, far) = tokio::io::duplex(PIPE);
    let serving = AbortOnDropHandle::new(tokio::spawn(serve(fleet.clone(), far)));
    let (input, output) = tokio::io::split(near);
    let outbox = Outbox::default();
    let peer = Peer::new(outbox.clone());
    let writing = AbortOnDropHandle::new(tokio::spawn(write_messages(outbox, output)));
    let reader = peer.clone();
    let _reading = AbortOnDropHandle::new(tokio::spawn(async move {
        let lines = LineReader::new(input, limit);
        // However it ends, nothing more can be answered.
        let _ = read_messages(lines, limit, reader.clone(), Arc::new(Agent(reader.clone()))).await;
        reader.close();
    }));
    let outcome = talk(&peer, params).await;
    peer.close();
    // Nothing is written any more, which ends the session, which ends the reading.
    let _ = tokio::join!(writing, serving);
    outcome
}

async fn talk(peer: &Peer, params: Raw) -> Result<Outcome, CallError> {
    let hello = Raw::encode(&json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "dormouse call", "version": env!("CARGO_PKG_VERSION")},
    }));
    // The server's own deadlines are what counts.
    let patient = || CallOptions::silent_for(Duration::ZERO);
    if let Err(refusal) = peer.request(method::INITIALIZE, Some(hello), patient()).await? {
        return Ok(Err(refusal));
    }
    peer.notify(method::INITIALIZED, None);
    peer.request(method::TOOLS_CALL, Some(params), patient()).await
}

/// Serves the host at the other end of the stream until that is closed.
async fn serve(fleet: Arc<Fleet>, stream: DuplexStream) {
    let (input, output) = tokio::io::split(stream);
    let limit = fleet.settings().max_message_bytes;
    let outbox = Outbox::default();
    let peer = Peer::new(outbox.clone());
    let identity = Identity::alone(fleet.endpoint(), true);
    let session = Session::attach(fleet, peer.clone(), identity);
    let _writing = AbortOnDropHandle::new(tokio::spawn(write_messages(outbox, output)));
    let reply = Reply { peer: peer.clone(), response: None };
    let inbound = Arc::new(Inbound { session: session.clone(), reply });
    // However the stream ends, the host is gone.
    let _ = read_messages(LineReader::new(input, limit), limit, peer.clone(), inbound).await;
    session.detach().await;
    peer.close();
}

/// The host's side: it only waits for its answer.
struct Agent(Peer);

impl MessageHandler for Agent {
    fn request(&self, request: Request) {
        let refusal = error::method_not_found(&request.method);
        self.0.respond(request.id, Err(refusal));
    }

    fn notification(&self, _: Notification) {}

    fn unexpected(&self, _: UnexpectedMessage) {}

    async fn ready(&self) {}
}
