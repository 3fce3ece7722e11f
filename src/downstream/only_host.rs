//! The only host of a fleet: the one that has started dormouse, on standard streams or by way of a
//! thin client.

use std::{io, sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Session, SideChannel, line_host::LineHost};
use crate::{
    proxy::Fleet,
    wire::{HostStreams, Raw},
};

/// Maximum time to answer requests in flight after the input has ended, while the output is still
/// read. Longer than lists wait for eager servers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);
/// Maximum time to wait for the host's capabilities before eager and hybrid servers are connected.
const OPENING_TIMEOUT: Duration = Duration::from_millis(500);

/// The connection of the host.
pub(crate) struct HostLink {
    pub streams: HostStreams,
    pub earlier: EarlierSession,
    /// `None` if the host is connected without a thin client.
    pub side_channel: Option<SideChannel>,
    /// Cancelled when the host's new messages go to another process.
    pub leaving: CancellationToken,
}

/// The facts about the session that another process has had with the host.
#[derive(Default)]
pub(crate) struct EarlierSession {
    /// The highest id of a request to the host.
    pub last_id: u64,
    /// The names of the offers that the host has loaded.
    pub loads: Vec<String>,
}

impl HostLink {
    /// Returns the link to a host that no other process has served.
    pub(crate) fn new(streams: HostStreams) -> Self {
        Self {
            streams,
            earlier: EarlierSession::default(),
            side_channel: None,
            leaving: CancellationToken::new(),
        }
    }
}

/// The reason for which serving ends.
enum ServingEnd {
    /// The host closed its end, and waits for the remaining answers.
    InputClosed(io::Result<()>),
    /// The host does not read any more.
    OutputClosed,
    /// Another process serves the host, and all requests have been answered.
    Left,
    /// dormouse was told to stop.
    Stopped,
}

/// Serves one host until it disconnects or `stop` is cancelled, and starts the servers once its
/// capabilities are known. Returns the source of notices that the thin client has not been sent.
///
/// # Errors
/// When the host's messages cannot be read.
pub(crate) async fn serve(
    fleet: Arc<Fleet>,
    link: HostLink,
    stop: CancellationToken,
) -> io::Result<Option<mpsc::Receiver<Raw>>> {
    let HostLink { streams, earlier: EarlierSession { last_id, loads }, side_channel, leaving } =
        link;
    let HostStreams { input, output, mut output_closed } = streams;
    let filter = side_channel.as_ref().map(SideChannel::filter);
    let mut host = LineHost::attach_again(fleet.clone(), output, last_id).with_notices(filter);
    let session = host.session().clone();
    let ended = CancellationToken::new();
    let notices = side_channel
        .map(|channel| tokio::spawn(channel.send(session.peer().clone(), ended.clone())));

    let opening = start_when_opened(fleet.clone(), session.clone(), loads);
    let opening = AbortOnDropHandle::new(tokio::spawn(opening));
    let reading = host.read(input);
    let end = tokio::select! {
        read = reading => ServingEnd::InputClosed(read),
        () = host.unwritable() => ServingEnd::OutputClosed,
        () = &mut output_closed => ServingEnd::OutputClosed,
        () = stop.cancelled() => ServingEnd::Stopped,
        () = async {
            leaving.cancelled().await;
            session.wait_until_idle().await;
        } => ServingEnd::Left,
    };
    let outcome = match end {
        ServingEnd::InputClosed(read) => {
            fleet.end_logins();
            // A script that pipes in its requests expects the answers to all of them.
            tokio::select! {
                _ = tokio::time::timeout(DRAIN_TIMEOUT, session.wait_until_idle()) => {}
                () = &mut output_closed => {}
                () = stop.cancelled() => {}
            }
            read
        }
        ServingEnd::OutputClosed | ServingEnd::Left => Ok(()),
        ServingEnd::Stopped => {
            session.complete_listens();
            Ok(())
        }
    };
    drop(opening);
    ended.cancel();
    let notices = match notices {
        Some(sending) => sending.await.ok(),
        None => None,
    };
    host.end().await;
    outcome.map(|()| notices)
}

async fn start_when_opened(fleet: Arc<Fleet>, session: Arc<Session>, loads: Vec<String>) {
    // The host's capabilities are declared to a server when it connects, so they must be known by
    // then.
    let _ = tokio::time::timeout(OPENING_TIMEOUT, session.wait_until_opened()).await;
    fleet.start(loads);
}
