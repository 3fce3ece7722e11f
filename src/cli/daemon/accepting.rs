//! The process of the daemon: accepts clients until it ends.

use std::{os::unix::net::UnixStream, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    daemon_state::{DaemonIdentity, DaemonState},
    own_place, served_host,
};
use crate::{
    cli::{runtime, settings, shared_flags::Options, signals},
    config::Settings,
    daemon::{Build, Listener, READY, Redial},
    downstream::DaemonPool,
    upstream::Watchdog,
};

/// Interval at which the daemon checks that clients can find it.
const CHECK_PERIOD: Duration = Duration::from_secs(2);
/// Delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum time for calls in flight when a user has stopped the daemon.
const CALLS_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the daemon until it ends.
pub(super) fn run(options: &Options, is_always: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = std::path::absolute(&file.path)?;
    let place = own_place::place_of(&config).context("cannot run the daemon: HOME is not set")?;
    // The clients' configs count; this is about the daemon alone.
    let settings = settings::parse(&file, options).map(|config| config.settings);
    let idle_timeout = settings
        .map_or_else(|_| Settings::default().daemon, |settings| settings.daemon)
        .daemon_idle_timeout;
    let idle_timeout = idle_timeout.filter(|_| !is_always);
    let build = Build::of_process().context("cannot find the file of this program")?;
    let auth = settings::auth(Some(&file), options);
    let watchdog = Watchdog::default();
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let listener = Listener::bind(&place)?;
        let pool = DaemonPool::new(watchdog.clone(), auth);
        let daemon = DaemonIdentity { config, build, pool: pool.clone() };
        let state = DaemonState::new(daemon, watchdog.clone());
        outln!("{READY}");
        tracing::info!(config = %file.path.display(), "the daemon accepts hosts");
        let _watching = AbortOnDropHandle::new(tokio::spawn(watchdog.clone().keep_running()));
        let asked = CancellationToken::new();
        let _signals = signals::cancel_when_asked(asked.clone(), false);
        accept(listener, &state, idle_timeout, &asked).await;
        wait_for_hosts(&state, &asked).await;
        pool.stop().await;
        anyhow::Ok(())
    });
    watchdog.end();
    ended?;
    tracing::info!("the daemon has ended");
    Ok(ExitCode::SUCCESS)
}

/// Accepts clients until the daemon ends: because it is told to, because it has been idle, or
/// because clients cannot find it any more.
async fn accept(
    listener: Listener,
    state: &Arc<DaemonState>,
    idle_timeout: Option<Duration>,
    asked: &CancellationToken,
) {
    let mut ending = state.ending();
    let mut idle = std::pin::pin!(idle(state.hosts(), idle_timeout));
    let mut check = tokio::time::interval(CHECK_PERIOD);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(stream) => greet_on_thread(stream, state),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            () = &mut idle => {
                state.end(Redial::AtOnce);
                return;
            }
            _ = ending.wait_for(Option::is_some) => return,
            () = asked.cancelled() => {
                state.end(Redial::WhenNeeded);
                return;
            }
            _ = check.tick() => {
                if !listener.is_in_place() {
                    tracing::warn!("the daemon's socket was removed; a new daemon takes over");
                    state.end(Redial::AtOnce);
                    return;
                }
            }
        }
    }
}

/// Serves a client on a thread of its own. If there can be none, the client is disconnected, and
/// tries again.
fn greet_on_thread(stream: UnixStream, state: &Arc<DaemonState>) {
    let state = state.clone();
    let thread = std::thread::Builder::new().name("host".to_owned());
    if let Err(error) = thread.spawn(move || served_host::greet(&stream, &state)) {
        tracing::warn!(%error, "cannot start a thread for a client");
    }
}

/// Waits until no host has been served for this time; forever if there is none.
async fn idle(mut hosts: watch::Receiver<usize>, timeout: Option<Duration>) {
    let Some(timeout) = timeout else { return std::future::pending().await };
    // The sender lives as long as the daemon.
    while hosts.wait_for(|hosts| *hosts == 0).await.is_ok() {
        let timed_out = tokio::time::timeout(timeout, hosts.wait_for(|hosts| *hosts > 0)).await;
        if timed_out.is_err() {
            return;
        }
    }
}

/// Waits until all hosts are served elsewhere and their calls have been answered. The wait is short
/// if a user has ended the daemon, and ends at a signal (`asked`).
async fn wait_for_hosts(state: &DaemonState, asked: &CancellationToken) {
    let limit = match *state.ending().borrow() {
        Some(Redial::AtOnce | Redial::Replaced) => None,
        Some(Redial::WhenNeeded) | None => Some(CALLS_TIMEOUT),
    };
    let mut hosts = state.hosts();
    let limit = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => asked.cancelled().await,
        }
    };
    tokio::select! {
        // The sender lives as long as the daemon.
        _ = hosts.wait_for(|hosts| *hosts == 0) => return,
        () = limit => {}
    }
    state.stop.cancel();
    let _ = state.hosts().wait_for(|hosts| *hosts == 0).await;
}
