//! A host within this process, for a command that calls a tool as an agent would.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::io::DuplexStream;
use tokio_util::task::AbortOnDropHandle;

use super::line_host::LineHost;
use crate::{
    peer::{CallError, CallOptions, MessageHandler, Peer, UnexpectedMessage, read_messages},
    protocol::{error, method},
    proxy::Fleet,
    wire::{LineReader, Notification, Outbox, Outcome, Raw, Request, write_messages},
};

/// Capacity of the pipe between the host and its session, in bytes.
const MAX_PIPE_BYTES: usize = 64 * 1024;

/// Calls a tool as a host without any capabilities, from its handshake to its end.
///
/// # Errors
/// When the call gets no answer; a refusal is the `Err` of [`Outcome`].
pub(crate) async fn call_tool(fleet: &Arc<Fleet>, params: Raw) -> Result<Outcome, CallError> {
    let limit = fleet.settings().limits.max_message_bytes;
    let (near, far) = tokio::io::duplex(MAX_PIPE_BYTES);
    let serving = AbortOnDropHandle::new(tokio::spawn(serve(fleet.clone(), far)));
    let (input, output) = tokio::io::split(near);
    let outbox = Outbox::default();
    let peer = Peer::new(outbox.clone());
    let writing = AbortOnDropHandle::new(tokio::spawn(write_messages(outbox, output)));
    let reader = peer.clone();
    let _reading = AbortOnDropHandle::new(tokio::spawn(async move {
        let lines = LineReader::new(input, limit);
        // After the last message no call can be answered any more, however the reading ended.
        let _ = read_messages(lines, limit, reader.clone(), Arc::new(CallOnlyHost(reader.clone())))
            .await;
        reader.close();
    }));
    let outcome = talk(&peer, params).await;
    peer.close();
    // Closing the peer ends the writing, which ends the session, which ends the reading.
    let _ = tokio::join!(writing, serving);
    outcome
}

async fn talk(peer: &Peer, params: Raw) -> Result<Outcome, CallError> {
    let hello = Raw::encode(&json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "dormouse call", "version": env!("CARGO_PKG_VERSION")},
    }));
    // The timeouts of the server apply instead.
    let patient = || CallOptions::silent_for(Duration::ZERO);
    if let Err(refusal) = peer.request(method::INITIALIZE, Some(hello), patient()).await? {
        return Ok(Err(refusal));
    }
    peer.notify(method::INITIALIZED, None);
    peer.request(method::TOOLS_CALL, Some(params), patient()).await
}

/// Serves the host at the other end of the stream until the host closes it.
async fn serve(fleet: Arc<Fleet>, stream: DuplexStream) {
    let (input, output) = tokio::io::split(stream);
    let host = LineHost::attach(fleet, output);
    // The host is gone, however the stream ended.
    let _ = host.read(input).await;
    host.end().await;
}

/// The host's side of the connection, which refuses all requests of dormouse.
struct CallOnlyHost(Peer);

impl MessageHandler for CallOnlyHost {
    fn request(&self, request: Request) {
        let refusal = error::method_not_found(&request.method);
        self.0.respond(request.id, Err(refusal));
    }

    fn notification(&self, _: Notification) {}

    fn unexpected(&self, _: UnexpectedMessage) {}

    async fn ready(&self) {}
}
