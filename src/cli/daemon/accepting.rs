//! The process of the daemon: accepts clients until it ends.

use std::{io, os::unix::net::UnixStream, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    daemon_state::{Connections, DaemonIdentity, DaemonState},
    greeter, own_place,
};
use crate::{
    cli::{runtime, settings, shared_flags::Options, signals, state_stores::StateStores},
    daemon::{Build, EndReason, Listener, READY},
    downstream::DaemonPool,
    upstream::Watchdog,
};

/// Interval at which the daemon checks that clients can find it.
const CHECK_PERIOD: Duration = Duration::from_secs(2);
/// Delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum time for calls in flight when a user has stopped the daemon.
const CALLS_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum numbers of open files to ask for, in this order: a system may have a limit of its own.
/// Some programs count up to their limit, which servers inherit.
const MAX_OPEN_FILES: [u64; 2] = [65_536, 10_240];

/// Runs the daemon until it ends.
pub(super) fn run(options: &Options, is_always: bool) -> anyhow::Result<ExitCode> {
    raise_open_files();
    let file = settings::find(options)?;
    let config = std::path::absolute(&file.path)?;
    let place = own_place::place_of(&config).context("cannot run the daemon: HOME is not set")?;
    // The clients' configs count; this is about the daemon alone.
    let settings = settings::parse(&file, options).map(|config| config.settings);
    let settings = settings.unwrap_or_default();
    let idle_timeout = settings.daemon.daemon_idle_timeout;
    let idle_timeout = idle_timeout.filter(|_| !is_always);
    let build = Build::of_process().context("cannot find the file of this program")?;
    let auth = StateStores::of(&settings)?.auth(Some(&file), options);
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
        wait_for_clients(&state, &asked).await;
        pool.stop().await;
        anyhow::Ok(state)
    });
    watchdog.end();
    // The system closes the connections of commands that wait for the end of this process.
    std::mem::forget(ended?);
    tracing::info!("the daemon has ended");
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit of open files: it was meant for one host, and the daemon serves all.
fn raise_open_files() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let possible = MAX_OPEN_FILES.map(|wanted| wanted.min(hard));
    let mut higher = possible.into_iter().filter(|wanted| *wanted > soft);
    // Without a higher limit, hosts for which there are no files are served by their clients.
    let _ = higher.find(|wanted| setrlimit(Resource::RLIMIT_NOFILE, *wanted, hard).is_ok());
}

/// An event for which the daemon waits.
enum Event {
    Connected(UnixStream),
    CannotAccept(io::Error),
    /// A client or command has ended the daemon.
    Ending,
    /// The daemon ends by itself.
    Over(EndReason),
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
    let mut over = std::pin::pin!(async {
        tokio::select! {
            () = idle(state.connections(), idle_timeout) => EndReason::Idle,
            () = asked.cancelled() => EndReason::Stopped,
            () = files_lost(&listener) => EndReason::FilesLost,
        }
    });
    loop {
        let event = tokio::select! {
            accepted = listener.accept() => {
                accepted.map_or_else(Event::CannotAccept, Event::Connected)
            }
            _ = ending.wait_for(Option::is_some) => Event::Ending,
            reason = &mut over => Event::Over(reason),
        };
        match event {
            Event::Connected(stream) => greet_on_thread(stream, state),
            Event::CannotAccept(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
            Event::Ending => return,
            Event::Over(reason) => {
                state.end(reason);
                return;
            }
        }
    }
}

/// Waits until clients cannot find the daemon any more.
async fn files_lost(listener: &Listener) {
    let mut check = tokio::time::interval(CHECK_PERIOD);
    while listener.is_in_place() {
        check.tick().await;
    }
    tracing::warn!("the daemon's socket was removed; a new daemon takes over");
}

/// Serves a client on a thread of its own. If there can be none, the client is disconnected, and
/// tries again.
fn greet_on_thread(stream: UnixStream, state: &Arc<DaemonState>) {
    let state = state.clone();
    let thread = std::thread::Builder::new().name("host".to_owned());
    // The daemon counts the client until the thread has ended.
    if let Err(error) = thread.spawn(move || greeter::greet(stream, &state)) {
        tracing::warn!(%error, "cannot start a thread for a client");
    }
}

/// Waits until no client has been served for this time; forever if there is none.
async fn idle(mut connections: watch::Receiver<Connections>, timeout: Option<Duration>) {
    let Some(timeout) = timeout else { return std::future::pending().await };
    // The sender lives as long as the daemon.
    while connections.wait_for(Connections::are_none).await.is_ok() {
        let client = connections.wait_for(|connections| !connections.are_none());
        if tokio::time::timeout(timeout, client).await.is_err() {
            return;
        }
    }
}

/// Waits until all clients are served elsewhere and their calls have been answered. The wait is
/// short if a user has ended the daemon, and ends at a signal (`asked`).
async fn wait_for_clients(state: &DaemonState, asked: &CancellationToken) {
    let limit = match *state.ending().borrow() {
        Some(EndReason::Idle | EndReason::FilesLost | EndReason::Replaced) => None,
        Some(EndReason::Stopped) | None => Some(CALLS_TIMEOUT),
    };
    let mut connections = state.connections();
    let limit = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => asked.cancelled().await,
        }
    };
    tokio::select! {
        // The sender lives as long as the daemon.
        _ = connections.wait_for(Connections::are_none) => return,
        () = limit => {}
    }
    state.stop.cancel();
    let _ = state.connections().wait_for(Connections::are_none).await;
}
