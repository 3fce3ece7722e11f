//! The signals with which a host ends its thin client, or has it reload the config.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use super::client_session::ClientSession;
use crate::daemon::ClientNotice;

/// Maximum time for the daemon to end the session after this process was asked to end. A daemon
/// that takes longer ends it all the same.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for daemons to read that this process was asked to end.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// Passes signals to the daemon. They are handled and not blocked, since processes inherit what is
/// blocked.
pub(super) fn handle(session: Arc<ClientSession>) {
    // If they cannot be handled, they end this process, and the daemon ends the session.
    let Ok(mut signals) = Signals::new([SIGTERM, SIGINT, SIGHUP]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                notify_in_time(&session, ClientNotice::Reload);
            } else {
                end_process(&session);
            }
        }
    });
}

/// Has the daemons end the session, and ends this process. The process ends earlier if the session
/// has ended, or if the host does not read its last answers.
fn end_process(session: &Arc<ClientSession>) -> ! {
    session.output.note_ending();
    if notify_in_time(session, ClientNotice::Stop) > 0 {
        session.links.end_input();
        session.output.wait_while_read(STOP_TIMEOUT);
    }
    std::process::exit(0)
}

/// Sends a notice to all daemons. Returns the number of daemons that got it in time.
fn notify_in_time(session: &Arc<ClientSession>, notice: ClientNotice) -> usize {
    let (sender, sent) = mpsc::channel();
    let session = session.clone();
    thread::spawn(move || sender.send(session.links.notify(notice)));
    sent.recv_timeout(NOTICE_TIMEOUT).unwrap_or(0)
}
