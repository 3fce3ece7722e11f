//! Connects servers without a host, to read their lists.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{arguments::TimeLimit, signals};
use crate::{
    auth::Auth,
    base::visible,
    catalog::{LoadOrigin, ServerCatalog},
    config::{Config, ServerConfig, Settings, Startup},
    protocol::Era,
    upstream::{
        ChangeAudience, Context, LoadError, Opener, ProcessServices, Question, Recalled,
        ServerObserver, ServerPool, Status, Upstream, Watchdog,
    },
    wire::{Notification, Raw},
};

/// Maximum number of servers at once; more would only be slower.
const MAX_CONCURRENT: usize = 8;

/// The outcome of connecting one server.
pub(super) struct ProbedServer {
    pub(super) config: Arc<ServerConfig>,
    pub(super) outcome: Result<Arc<ServerCatalog>, LoadError>,
    pub(super) status: Status,
    pub(super) took: Duration,
}

impl ProbedServer {
    /// Returns the reason that the server could not be connected.
    pub(super) fn error(&self) -> Option<String> {
        let error = self.outcome.as_ref().err()?;
        Some(error.cause().map_or_else(|| error.to_string(), ToString::to_string))
    }
}

/// The outcomes in the order of the config, and the servers that were not connected because the
/// user stopped the command.
pub(super) struct Probed {
    pub(super) seen: Vec<ProbedServer>,
    pub(super) not_done: Vec<String>,
}

impl Probed {
    pub(super) fn is_complete(&self) -> bool {
        self.not_done.is_empty()
    }

    /// Tells the user which servers were not connected.
    pub(super) fn report_not_done(&self) {
        if !self.is_complete() {
            errln!("stopped; not tested: {}", visible(&self.not_done.join(", ")));
        }
    }
}

/// Connects the servers concurrently, each for `limit` at most, and ends those that it has started.
/// Servers of `pool` are not started. `tell` gets each outcome as it arrives, with the number of
/// outcomes so far.
pub(super) async fn probe(
    config: Config,
    auth: Auth,
    pool: Option<Arc<dyn ServerPool>>,
    limit: TimeLimit,
    mut tell: impl FnMut(&ProbedServer, usize),
) -> Probed {
    let watchdog = Watchdog::default();
    let services = ProcessServices { watchdog: watchdog.clone(), pool };
    let context = context(&config.settings, services, auth);
    let _signals = signals::cancel_when_asked(context.stop.clone(), false);
    let free = Arc::new(Semaphore::new(MAX_CONCURRENT));
    let display = MultiProgress::new();
    let mut probing = JoinSet::new();
    let mut not_done: Vec<String> =
        config.servers.iter().map(|server| server.name.clone()).collect();
    for (at, mut server) in config.servers.into_iter().enumerate() {
        server.settings.timeouts.load = within(server.settings.timeouts.load, limit);
        let (context, free) = (context.clone(), free.clone());
        let bar = display.add(ProgressBar::new_spinner());
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a constant"));
        bar.set_message(format!("{}: waiting", server.name));
        probing.spawn(async move {
            let _turn = free.acquire().await;
            (at, connect_once(server, &context, &bar).await)
        });
    }
    let mut seen: Vec<(usize, ProbedServer)> = Vec::new();
    while let Some(Some(joined)) = context.stop.run_until_cancelled(probing.join_next()).await {
        // A panic has been logged; its server counts as not connected.
        let Ok((at, one)) = joined else { continue };
        // A failure after the user's stop says nothing about the server.
        if one.outcome.is_err() && context.stop.is_cancelled() {
            continue;
        }
        not_done.retain(|name| *name != one.config.name);
        display.suspend(|| tell(&one, seen.len() + 1));
        seen.push((at, one));
    }
    probing.shutdown().await;
    seen.sort_by_key(|(at, _)| *at);
    context.stop.cancel();
    context.tasks.close();
    context.tasks.wait().await;
    context.auth.end().await;
    watchdog.end();
    Probed { seen: seen.into_iter().map(|(_, seen)| seen).collect(), not_done }
}

/// Returns the smaller of a server's own timeout, where zero means none, and that of the command.
pub(super) fn within(own: Duration, limit: TimeLimit) -> Duration {
    if own.is_zero() { limit.timeout } else { own.min(limit.timeout) }
}

/// Returns the duration with three digits.
pub(super) fn short(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds => format!("{seconds:.1} s"),
    }
}

async fn connect_once(
    mut config: ServerConfig,
    context: &Context,
    bar: &ProgressBar,
) -> ProbedServer {
    // The server is connected once, and a failure is final, whatever the config says.
    config.startup = Startup::Lazy;
    config.enabled = true;
    bar.set_style(ProgressStyle::with_template("{spinner} {msg}, {elapsed}").expect("a constant"));
    bar.reset_elapsed();
    bar.set_message(format!("{}: connecting", config.name));
    bar.enable_steady_tick(Duration::from_millis(100));
    let config = Arc::new(config);
    let start = Instant::now();
    let upstream = Upstream::start(config.clone(), Arc::new(NoHosts), context, None, None);
    let leased = upstream.lease(Era::Legacy).await;
    let status = upstream.status();
    let outcome = leased.and_then(|_| {
        let gone = || LoadError::Gone { server: config.name.clone() };
        upstream.catalog().ok_or_else(gone)
    });
    let took = start.elapsed();
    upstream.stop();
    bar.finish_and_clear();
    ProbedServer { config, outcome, status, took }
}

fn context(settings: &Settings, services: ProcessServices, auth: Auth) -> Context {
    Context {
        opener: Opener::new(
            settings.limits.max_message_bytes,
            settings.launch.lineage.clone(),
            services,
        ),
        auth,
        catalog_ttl: None,
        reads_lists: true,
        tasks: TaskTracker::new(),
        stop: CancellationToken::new(),
    }
}

/// An observer without hosts: notifications are dropped, and questions are refused.
struct NoHosts;

impl ServerObserver for NoHosts {
    fn connected(&self, _: Duration) {}

    fn live(&self, _: Arc<ServerCatalog>, _: LoadOrigin, _: ChangeAudience) {}

    fn learned(&self, _: &Arc<ServerCatalog>) {}

    fn recall(&self) -> Pin<Box<dyn Future<Output = Option<Recalled>> + Send + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn troubled(&self, _: Option<String>) {}

    fn failed(&self, _: String) {}

    fn evicted(&self) {}

    fn moved(&self) {}

    fn first_attempt_over(&self) {}

    fn notification(&self, _: Notification, _: Option<u64>) {}

    fn question(&self, _: Question) {}

    /// Some servers have tools only for hosts with these capabilities.
    fn capabilities(&self, _: Era) -> Raw {
        Raw::encode(&json!({"elicitation": {}, "roots": {}, "sampling": {}}))
    }

    fn declares_more(&self, _: &[String], _: Era) -> bool {
        false
    }

    fn client_info(&self) -> Option<Raw> {
        None
    }

    fn is_congested(&self) -> bool {
        false
    }

    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}
