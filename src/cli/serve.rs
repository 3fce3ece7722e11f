//! `dormouse serve`: serves hosts on standard input and output or over HTTP.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use super::{
    UsageError, first_run, follow, lineage, runtime, settings, shared_flags::Options, signals,
};
use crate::{
    auth::Auth,
    base::random_token,
    config::{ConfigFile, HttpSettings, ParsedConfig},
    control::{self, ApiState, ChangeSender},
    downstream::{
        http::{self, HttpAccess, HttpRoutes},
        stdio_host,
    },
    proxy::Fleet,
    upstream::Watchdog,
};

/// Time in which all servers must end. Stopping them normally takes less; this is a safeguard.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(options: &Options, wrapped: Vec<String>) -> anyhow::Result<ExitCode> {
    let (parsed, file) = if let Some(config) = settings::wrap(wrapped, options) {
        (ParsedConfig { config, ..ParsedConfig::default() }, None)
    } else {
        let file = settings::find_trusted(options)?;
        lineage::check(&file)?;
        (settings::read(&file, options)?, Some(file))
    };
    let auth = settings::auth(file.as_ref(), options);
    if let Some(dialect) = file.as_ref().and_then(ConfigFile::dialect) {
        tracing::info!("reading the config as one of {}", dialect.name());
    }
    for warning in &parsed.warnings {
        tracing::warn!("{warning}");
    }
    let http = options.http.as_ref().or(parsed.config.settings.http.listen.as_ref());
    let transports = Transports {
        http: http.map(|address| addresses(address)).transpose()?,
        stdio: options.stdio || http.is_none(),
    };
    let runtime = runtime()?;
    // Runs as a separate task: each wake-up of the future that `block_on` polls costs a system
    // call.
    let origin = file.map(|file| (file, options.clone()));
    let served =
        runtime.block_on(async { tokio::spawn(serve(parsed, origin, auth, transports)).await });
    // A thread may still be blocked on input from a terminal.
    runtime.shutdown_timeout(Duration::from_millis(50));
    served??;
    Ok(ExitCode::SUCCESS)
}

/// The transports on which hosts are served.
struct Transports {
    /// Addresses to try; dormouse listens on the first that can be bound.
    http: Option<Vec<SocketAddr>>,
    stdio: bool,
}

/// Parses `HOST:PORT`, `:PORT` or `PORT`. The latter two mean loopback.
fn addresses(text: &str) -> anyhow::Result<Vec<SocketAddr>> {
    let loopback = |port: &str| port.parse().ok().map(|port| (Ipv4Addr::LOCALHOST, port).into());
    if let Some(address) = loopback(text.strip_prefix(':').unwrap_or(text)) {
        return Ok(vec![address]);
    }
    let found: Vec<SocketAddr> = std::net::ToSocketAddrs::to_socket_addrs(text)
        .map_err(|error| {
            UsageError(format!("cannot listen on {text:?}: {error}; write HOST:PORT"))
        })?
        .collect();
    Ok(found)
}

/// Serves hosts until `stop` is requested by a signal or the host on standard input disconnects.
/// `origin` is the config file and the options from the command line, unless dormouse wraps a
/// command.
async fn serve(
    parsed: ParsedConfig,
    origin: Option<(ConfigFile, Options)>,
    auth: Auth,
    transports: Transports,
) -> anyhow::Result<()> {
    let file = origin.as_ref().map(|(file, _)| file);
    let stop = CancellationToken::new();
    let listener = match &transports.http {
        Some(addresses) => Some(listen(addresses).await?),
        None => None,
    };
    let _signals = signals::cancel_when_asked(stop.clone(), origin.is_some());
    let watchdog = Watchdog::default();
    let _kept = AbortOnDropHandle::new(tokio::spawn(watchdog.clone().keep_running()));
    let is_first_run = file.is_some_and(|file| first_run::is_due(file, &parsed));
    let serves_at_root = parsed.compatibility.serves_at_root;
    let fleet = Fleet::new(parsed.config, &watchdog, settings::storage(file), auth);
    let background = BackgroundTasks::start(&fleet, origin, is_first_run, stop.child_token());
    let api = control::router(background.control.clone());
    let routes = |access| HttpRoutes { access, api, serves_at_root };
    let served = match (listener, transports.stdio) {
        (None, _) => stdio_host::serve(fleet.clone(), stop).await,
        (Some(listener), false) => {
            fleet.start();
            serve_http(fleet.clone(), listener, routes, stop).await
        }
        (Some(listener), true) => {
            // The host on standard input has started this process, so its disconnection ends both
            // transports. If HTTP ends by itself, standard input is still served.
            let over_http = serve_http(fleet.clone(), listener, routes, stop.clone());
            let on_stdio = async {
                // A separate task, so that after a panic the hosts on HTTP are still disconnected
                // in good order.
                let served = tokio::spawn(stdio_host::serve(fleet.clone(), stop.clone())).await;
                stop.cancel();
                served.unwrap_or_else(|panic| Err(std::io::Error::other(panic)))
            };
            let (over_http, on_stdio) = tokio::join!(over_http, on_stdio);
            over_http.and(on_stdio)
        }
    };
    if tokio::time::timeout(STOP_TIMEOUT, fleet.stop()).await.is_err() {
        tracing::error!("some servers did not stop in time");
    }
    background.end().await;
    watchdog.end();
    Ok(served?)
}

/// The tasks that run while hosts are served.
struct BackgroundTasks {
    tasks: TaskTracker,
    control: ApiState,
}

impl BackgroundTasks {
    fn start(
        fleet: &Arc<Fleet>,
        origin: Option<(ConfigFile, Options)>,
        is_first_run: bool,
        stop: CancellationToken,
    ) -> Self {
        let tasks = TaskTracker::new();
        let fleet = fleet.clone();
        let Some((file, options)) = origin else {
            let (config, changes) = Default::default();
            return Self { tasks, control: ApiState { fleet, config, changes, stop } };
        };
        let (changes, wanted) = ChangeSender::channel();
        let config = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
        let control = ApiState { fleet: fleet.clone(), config, changes, stop: stop.clone() };
        tasks.spawn(follow::follow(fleet.clone(), file.clone(), options, wanted, stop.clone()));
        #[cfg(unix)]
        if let Some(place) = settings::control_place(&file) {
            let answering = control::serve(control.clone(), place);
            tasks.spawn(async {
                if let Err(error) = answering.await {
                    tracing::info!(
                        %error,
                        "the control socket is closed; other commands cannot reach this dormouse",
                    );
                }
            });
        }
        if is_first_run {
            tasks.spawn(first_run::write_tools(fleet, file, stop));
        }
        Self { tasks, control }
    }

    async fn end(self) {
        self.control.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn listen(addresses: &[SocketAddr]) -> anyhow::Result<TcpListener> {
    let mut problem = None;
    for address in addresses {
        match http::bind(*address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = Some(error),
        }
    }
    let problem = problem.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(problem).with_context(|| format!("cannot listen on {addresses:?}"))
}

async fn serve_http(
    fleet: Arc<Fleet>,
    listener: TcpListener,
    routes: impl FnOnce(HttpAccess) -> HttpRoutes,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let HttpSettings { auth_tokens, api_tokens, allowed_hosts, allowed_origins, .. } =
        fleet.settings().http.clone();
    // Also generated if the config has tokens, since a reload may remove these.
    let fallback = (!address.ip().is_loopback()).then(random_token::<32>);
    // If single servers have tokens of their own, no token may give access to all servers.
    if let Some(token) = &fallback
        && auth_tokens.is_empty()
        && fleet.tokens_of_servers().is_empty()
    {
        errln!("dormouse: no authTokens configured; hosts must send this bearer token: {token}");
    }
    let access =
        HttpAccess { fallback, api_tokens, hosts: allowed_hosts, origins: allowed_origins };
    errln!("dormouse: listening on http://{address}/mcp");
    http::serve(fleet, listener, routes(access), stop).await
}
