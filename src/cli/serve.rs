//! `dormouse serve`: one host on standard input and output, and all servers behind it.

use std::{process::ExitCode, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{arguments::Options, logging, runtime, settings};
use crate::{config::Config, downstream::stdio, proxy::Fleet, upstream::Watchdog};

/// Ending the servers takes less; this is for what nobody has thought of.
const LONGEST_STOP: Duration = Duration::from_secs(10);

pub(super) fn run(options: &Options, wrapped: Vec<String>) -> anyhow::Result<ExitCode> {
    let _log = logging::start(options)?;
    let config = if let Some(config) = settings::wrap(wrapped, options) {
        config
    } else {
        let file = settings::find(options)?;
        file.check_trust(&settings::trust_store()?)?;
        settings::parse(&file, options)?
    };
    let runtime = runtime()?;
    // As a task of its own: waking the future that `block_on` polls costs a system call each time.
    let served = runtime.block_on(async { tokio::spawn(serve(config)).await });
    // A thread may be left that waits for a terminal's input and cannot be woken.
    runtime.shutdown_timeout(Duration::from_millis(50));
    served??;
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let signals = tokio::spawn(stop_on_signals(stop.clone()));
    let watchdog = Watchdog::default();
    let fleet = Fleet::new(config, &watchdog);
    let served = stdio::serve(fleet.clone(), stop).await;
    if tokio::time::timeout(LONGEST_STOP, fleet.stop()).await.is_err() {
        tracing::error!("some servers did not end in time");
    }
    watchdog.end();
    signals.abort();
    Ok(served?)
}

#[cfg(unix)]
async fn stop_on_signals(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};

    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = signals.map(signal) else {
        tracing::error!("cannot listen for signals");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
    stop.cancel();
}

#[cfg(not(unix))]
async fn stop_on_signals(stop: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.cancel();
    }
}
