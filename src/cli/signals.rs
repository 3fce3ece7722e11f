//! Handles signals that ask a command to end. The command shuts down in good order: for example, it
//! saves a token that is being renewed.

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Cancels `stop` when a signal asks the process to end, until the returned handle is dropped.
///
/// With `has_config`, SIGHUP does not end the process, since it asks for a reload of the config.
#[must_use = "signals are no longer handled when it is dropped"]
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

/// Waits for a signal. Returns `false` if signals cannot be received.
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
