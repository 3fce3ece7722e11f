//! The host that started dormouse, on standard input and output.

use std::{io, sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Session, line_host::LineHost};
use crate::{proxy::Fleet, wire::standard_streams};

/// Maximum time to answer requests in flight after the input has ended, while the output is still
/// read. Longer than lists wait for eager servers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);
/// Maximum time to wait for the host's capabilities before eager and hybrid servers are connected.
const OPENING_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason for which serving ends.
enum ServingEnd {
    /// The host closed its end, and waits for the remaining answers.
    InputClosed(io::Result<()>),
    /// The host does not read any more.
    OutputClosed,
    /// dormouse was told to stop.
    Stopped,
}

/// Serves one host until it disconnects or `stop` is cancelled.
///
/// # Errors
/// When standard input or output cannot be used.
pub(crate) async fn serve(fleet: Arc<Fleet>, stop: CancellationToken) -> io::Result<()> {
    let (input, output) = (standard_streams::open_input()?, standard_streams::open_output()?);
    let mut output_closed = standard_streams::output_closed()?;
    let mut host = LineHost::attach(fleet.clone(), output);
    let session = host.session().clone();

    let opening =
        AbortOnDropHandle::new(tokio::spawn(start_when_opened(fleet.clone(), session.clone())));
    let reading = host.read(input);
    let end = tokio::select! {
        read = reading => ServingEnd::InputClosed(read),
        () = host.unwritable() => ServingEnd::OutputClosed,
        () = &mut output_closed => ServingEnd::OutputClosed,
        () = stop.cancelled() => ServingEnd::Stopped,
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
        ServingEnd::OutputClosed => Ok(()),
        ServingEnd::Stopped => {
            session.complete_listens();
            Ok(())
        }
    };
    drop(opening);
    host.end().await;
    outcome
}

async fn start_when_opened(fleet: Arc<Fleet>, session: Arc<Session>) {
    // The host's capabilities are declared to a server when it connects, so they must be known by
    // then.
    let _ = tokio::time::timeout(OPENING_TIMEOUT, session.wait_until_opened()).await;
    fleet.start();
}
