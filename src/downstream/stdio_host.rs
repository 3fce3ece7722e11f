//! The host that started us, on our standard input and output.

use std::{io, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{HostIdentity, Session, reply_channel::ReplyChannel, session::HostHandler};
use crate::{
    peer::{Peer, read_messages},
    proxy::Fleet,
    wire::{LineReader, Outbox, stdio, write_messages},
};

/// How long requests that are in flight when the input ends may take to be answered, as long as somebody
/// reads the output. Longer than lists wait for eager servers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);
/// How long the last bytes may take to be read.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Eager and hybrid servers are connected once the host has said what it can do, or after this.
const OPENING_TIMEOUT: Duration = Duration::from_millis(500);

/// What ends the serving of a host.
enum ServingEnd {
    /// It closed its end, and waits for what is still to come.
    InputClosed(io::Result<()>),
    /// It does not read any more.
    OutputClosed,
    /// We were told to stop.
    Stopped,
}

/// Serves one host until it goes away or `stop` is cancelled.
///
/// # Errors
/// When standard input or output cannot be used.
pub async fn serve(fleet: Arc<Fleet>, stop: CancellationToken) -> io::Result<()> {
    let (input, output) = (stdio::input()?, stdio::output()?);
    let mut output_closed = stdio::output_closed()?;
    let max_message_bytes = fleet.settings().max_message_bytes;
    let outbox = Outbox::default();
    let peer = Peer::new(outbox.clone());
    let identity = HostIdentity::of_single_session(fleet.endpoint(), true);
    let session = Session::attach(fleet.clone(), peer.clone(), identity);

    let opening = tokio::spawn(start_when_opened(fleet.clone(), session.clone()));
    let mut writing = tokio::spawn(write_messages(outbox, output));
    let lines = LineReader::new(input, max_message_bytes);
    let reply = ReplyChannel { peer: peer.clone(), response: None };
    let inbound = Arc::new(HostHandler { session: session.clone(), reply });
    let reading = read_messages(lines, max_message_bytes, peer.clone(), inbound);
    let end = tokio::select! {
        read = reading => ServingEnd::InputClosed(read),
        _ = &mut writing => ServingEnd::OutputClosed,
        () = &mut output_closed => ServingEnd::OutputClosed,
        () = stop.cancelled() => ServingEnd::Stopped,
    };
    let outcome = match end {
        ServingEnd::InputClosed(read) => {
            fleet.end_logins();
            // A script that pipes its requests in expects the answers to all of them.
            tokio::select! {
                _ = tokio::time::timeout(DRAIN_TIMEOUT, session.wait_until_idle()) => {}
                () = &mut output_closed => {}
                () = stop.cancelled() => {}
            }
            read
        }
        ServingEnd::OutputClosed => Ok(()),
        ServingEnd::Stopped => {
            session.complete_listens();
            Ok(())
        }
    };
    opening.abort();
    session.detach().await;
    peer.close();
    if !writing.is_finished() {
        // A host that has stopped reading is not waited for.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, &mut writing).await;
        writing.abort();
    }
    outcome
}

async fn start_when_opened(fleet: Arc<Fleet>, session: Arc<Session>) {
    // What a server is told of its host's capabilities is settled when it connects.
    let _ = tokio::time::timeout(OPENING_TIMEOUT, session.wait_until_opened()).await;
    fleet.start();
}
