//! The host that started us, on our standard input and output.

use std::{io, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{Identity, Session, reply::Reply, session::Inbound};
use crate::{
    peer::{Peer, read_messages},
    proxy::Fleet,
    wire::{LineReader, Outbox, standard_streams, write_messages},
};

/// How long requests that are in flight when the input ends may take to be answered, as long as somebody
/// reads the output. Longer than lists wait for eager servers.
const LAST_ANSWERS: Duration = Duration::from_secs(6);
/// How long the last bytes may take to be read.
const LAST_BYTES: Duration = Duration::from_millis(500);
/// Eager and hybrid servers are connected once the host has said what it can do, or after this.
const OPENING: Duration = Duration::from_millis(500);

/// What ends the serving of a host.
enum End {
    /// It closed its end, and waits for what is still to come.
    Input(io::Result<()>),
    /// It does not read any more.
    Output,
    /// We were told to stop.
    Stopped,
}

/// Serves one host until it goes away or `stop` is cancelled.
///
/// # Errors
/// When standard input or output cannot be used.
pub async fn serve(fleet: Arc<Fleet>, stop: CancellationToken) -> io::Result<()> {
    let (input, output) = (standard_streams::open_input()?, standard_streams::open_output()?);
    let mut output_closed = standard_streams::output_closed()?;
    let max_message_bytes = fleet.settings().max_message_bytes;
    let outbox = Outbox::default();
    let peer = Peer::new(outbox.clone());
    let identity = Identity::alone(fleet.endpoint(), true);
    let session = Session::attach(fleet.clone(), peer.clone(), identity);

    let opening = tokio::spawn(start_when_opened(fleet.clone(), session.clone()));
    let mut writing = tokio::spawn(write_messages(outbox, output));
    let lines = LineReader::new(input, max_message_bytes);
    let reply = Reply { peer: peer.clone(), response: None };
    let inbound = Arc::new(Inbound { session: session.clone(), reply });
    let reading = read_messages(lines, max_message_bytes, peer.clone(), inbound);
    let end = tokio::select! {
        read = reading => End::Input(read),
        _ = &mut writing => End::Output,
        () = &mut output_closed => End::Output,
        () = stop.cancelled() => End::Stopped,
    };
    let outcome = match end {
        End::Input(read) => {
            fleet.end_logins();
            // A script that pipes its requests in expects the answers to all of them.
            tokio::select! {
                _ = tokio::time::timeout(LAST_ANSWERS, session.drained()) => {}
                () = &mut output_closed => {}
                () = stop.cancelled() => {}
            }
            read
        }
        End::Output => Ok(()),
        End::Stopped => {
            session.complete_listens();
            Ok(())
        }
    };
    opening.abort();
    session.detach().await;
    peer.close();
    if !writing.is_finished() {
        // A host that has stopped reading is not waited for.
        let _ = tokio::time::timeout(LAST_BYTES, &mut writing).await;
        writing.abort();
    }
    outcome
}

async fn start_when_opened(fleet: Arc<Fleet>, session: Arc<Session>) {
    // What a server is told of its host's capabilities is settled when it connects.
    let _ = tokio::time::timeout(OPENING, session.opened()).await;
    fleet.start();
}
