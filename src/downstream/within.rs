//! A host within this same process: a command that does what an agent would do.

use std::sync::Arc;

use tokio::io::DuplexStream;

use super::{Identity, Session, reply::Reply, session::Inbound};
use crate::{
    peer::{Peer, read_messages},
    proxy::Fleet,
    wire::{LineReader, Outbox, write_messages},
};

/// Serves the host at the other end of the stream until that is closed.
pub async fn serve(fleet: Arc<Fleet>, stream: DuplexStream) {
    let (input, output) = tokio::io::split(stream);
    let max_message_bytes = fleet.settings().max_message_bytes;
    let outbox = Outbox::default();
    let peer = Peer::new(outbox.clone());
    let identity = Identity::alone(fleet.endpoint());
    let session = Session::attach(fleet, peer.clone(), identity);
    let writing = tokio::spawn(write_messages(outbox, output));
    let reply = Reply { peer: peer.clone(), response: None };
    let inbound = Arc::new(Inbound { session: session.clone(), reply });
    let lines = LineReader::new(input, max_message_bytes);
    // However the stream ends, the host is gone.
    let _ = read_messages(lines, max_message_bytes, peer.clone(), inbound).await;
    session.detach().await;
    peer.close();
    writing.abort();
}
