//! Signals that ask a command to end. It does so in good order: a token that is being renewed is kept first.

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Cancels `stop` when the process is asked to end, until this is dropped. `has_config`: a hangup is a word about that.
#[must_use = "nobody listens when it is dropped"]
pub(super) fn cancel_when_asked(
    stop: CancellationToken,
    has_config: bool,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if asked_to_end(has_config).await {
            stop.cancel();
        }
    }))
}

/// Whether it is asked, and not unable to listen.
#[cfg(unix)]
async fn asked_to_end(has_config: bool) -> bool {
    use tokio::signal::unix::{SignalKind, signal};

    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = signals.map(signal) else {
        tracing::error!("cannot listen for signals");
        return false;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv(), if !has_config => {}
    }
    true
}

#[cfg(not(unix))]
async fn asked_to_end(_: bool) -> bool {
    tokio::signal::ctrl_c().await.is_ok()
}
