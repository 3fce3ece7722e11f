//! `dormouse serve`: serves hosts on standard input and output or over HTTP.

use std::{process::ExitCode, sync::Arc, time::Duration};

use axum::Router;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    config_source::ConfigSource, http_socket::HttpSocket, lineage, runtime::runtime_of_service,
    served_fleet::KeptState, served_fleet::ServedFleet, served_replica::join, settings,
    shared_flags::Options, signals, state_stores::StateStores, ui,
};
use crate::{
    auth::{Auth, PublicAddress, PublicLogins},
    base::{SealingKeys, random_token},
    config::{AccessSettings, HttpSettings, ListenSettings, ParsedConfig, PeopleSettings},
    control,
    downstream::{
        http::{
            self, Certificate, CertificateFiles, HttpAccess, HttpRoutes, ListeningSocket,
            PersonLogins, ProtectedResource,
        },
        only_host::{self, HostLink},
    },
    identity::Issuers,
    proxy::Fleet,
    store::Replicas,
    upstream::ProcessServices,
    wire::HostStreams,
};

pub(super) fn run(options: &Options, wrapped: Vec<String>) -> anyhow::Result<ExitCode> {
    let (parsed, source) = if let Some(config) = settings::wrap(wrapped, options) {
        let parsed = ParsedConfig { config, ..ParsedConfig::default() };
        (parsed, None)
    } else {
        let source = ConfigSource::of_process(options)?;
        lineage::check(&source.file)?;
        (source.parse()?, Some(source))
    };
    let listening = &parsed.config.settings.http.listening;
    let http = HttpSocket::find(options.http.as_deref().or(listening.listen.as_deref()))?;
    let certificate = certificate_files(listening).filter(|_| http.is_some());
    let transports = Transports {
        stdio: options.stdio || http.is_none(),
        certificate: certificate.map(Certificate::read).transpose()?,
        http,
    };
    let threads = if transports.http.is_some() { listening.threads } else { 1 };
    let runtime = runtime_of_service(threads)?;
    let stores = StateStores::of(&parsed.config.settings)?;
    let file = source.as_ref().map(|source| &source.file);
    let kept = KeptState {
        storage: stores.storage(file),
        auth: stores.auth(file, options),
        shared: stores.shared().cloned(),
    };
    if let Some(dialect) = source.as_ref().and_then(|source| source.file.dialect()) {
        tracing::info!("reading the config as one of {}", dialect.name());
    }
    for warning in &parsed.warnings {
        tracing::warn!("{warning}");
    }
    // Runs as a separate task: each wake-up of the future that `block_on` polls costs a system
    // call.
    let served =
        runtime.block_on(async { tokio::spawn(serve(parsed, source, kept, transports)).await });
    // A thread may still be blocked on input from a terminal.
    runtime.shutdown_timeout(Duration::from_millis(50));
    served??;
    Ok(ExitCode::SUCCESS)
}

/// The transports on which hosts are served.
struct Transports {
    http: Option<HttpSocket>,
    /// The certificate that hosts see over HTTP; `None` if they connect without TLS.
    certificate: Option<Arc<Certificate>>,
    stdio: bool,
}

/// Returns the files of the certificate, if hosts connect over TLS.
fn certificate_files(settings: &ListenSettings) -> Option<CertificateFiles> {
    let (certificate, key) = (settings.certificate.clone(), settings.certificate_key.clone());
    certificate.zip(key).map(|(certificate, key)| CertificateFiles { certificate, key })
}

/// Serves hosts until a signal asks to stop or the host on standard input disconnects. `source` is
/// `None` if dormouse wraps a command.
async fn serve(
    parsed: ParsedConfig,
    source: Option<ConfigSource>,
    kept: KeptState,
    transports: Transports,
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let Transports { http, certificate, stdio } = transports;
    let listener = match http {
        Some(socket) => Some(socket.listen().await?),
        None => None,
    };
    let _signals = signals::cancel_when_asked(stop.clone(), source.is_some());
    let serves_at_root = parsed.compatibility.serves_at_root;
    let (shared, auth) = (kept.shared.clone(), kept.auth.clone());
    let services = ProcessServices::default();
    let watchdog = services.watchdog.clone();
    let _watching = AbortOnDropHandle::new(tokio::spawn(watchdog.clone().keep_running()));
    let tokens = parsed.config.settings.http.access.api_tokens.clone();
    let page = source.as_ref().filter(|_| !tokens.is_empty());
    let page = page.map(|it| ui::router_over_http(&it.options, &it.file, tokens));
    let served = ServedFleet::start(parsed, source, kept, &services, &stop);
    let fleet = served.fleet().clone();
    let (replicas, telling) = match (shared, &listener) {
        (Some(shared), Some(listener)) => {
            let address = listener.address()?;
            let (replicas, telling) = join(&shared, &fleet, address, stop.clone()).await;
            (Some(replicas), Some(telling))
        }
        _ => (None, None),
    };
    let mark = fleet.operator().mark().to_owned();
    let api_state = served.control().clone();
    let routes = |access: HttpAccess| {
        let api = page.into_iter().fold(control::router(api_state), Router::merge);
        let person_logins = open_person_logins(&access, auth, &mark, replicas.as_deref());
        HttpRoutes { access, api, serves_at_root, replicas, person_logins, certificate }
    };
    let ended = match (listener, stdio) {
        (None, _) => serve_stdio(fleet, stop).await,
        (Some(listener), false) => {
            fleet.start([]);
            serve_http(fleet, listener, routes, stop).await
        }
        (Some(listener), true) => {
            // The host on standard input has started this process, so its disconnection ends both
            // transports. If HTTP ends by itself, standard input is still served.
            let over_http = serve_http(fleet.clone(), listener, routes, stop.clone());
            let on_stdio = async {
                // A separate task, so that after a panic the hosts on HTTP are still disconnected
                // in good order.
                let ended = tokio::spawn(serve_stdio(fleet, stop.clone())).await;
                stop.cancel();
                ended.unwrap_or_else(|panic| Err(std::io::Error::other(panic)))
            };
            let (over_http, on_stdio) = tokio::join!(over_http, on_stdio);
            over_http.and(on_stdio)
        }
    };
    if let Some(telling) = telling {
        // The task ends with the transports.
        let _ = telling.await;
    }
    served.stop().await;
    watchdog.end();
    Ok(ended?)
}

async fn serve_stdio(fleet: Arc<Fleet>, stop: CancellationToken) -> std::io::Result<()> {
    only_host::serve(fleet, HostLink::new(HostStreams::standard()?), stop).await?;
    Ok(())
}

/// Returns the identity providers of the config with the public address; `None` without any.
fn protected_resource(
    settings: &PeopleSettings,
) -> std::io::Result<Option<Arc<ProtectedResource>>> {
    let public_url = settings.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
    let audiences = public_url.iter().flat_map(|url| [url.clone(), format!("{url}/mcp")]);
    let audiences: Vec<String> = audiences.collect();
    let issuers = Issuers::new(&settings.issuers, &audiences).map_err(std::io::Error::other)?;
    Ok(issuers.map(|issuers| Arc::new(ProtectedResource { issuers, public_url })))
}

/// Opens the pages at which people log in to servers; `None` if they cannot prove who they are.
fn open_person_logins(
    access: &HttpAccess,
    auth: Auth,
    mark: &str,
    replicas: Option<&Replicas>,
) -> Option<PersonLogins> {
    let resource = access.resource.clone()?;
    if resource.issuers.names_for_sign_in().is_empty() {
        return None;
    }
    let address = PublicAddress::new(resource.public_url.as_deref()?).ok()?;
    auth.serve_at(address.clone());
    let logins = PublicLogins::new(address, mark);
    let keys = match replicas {
        Some(replicas) => replicas.keys().clone(),
        None => SealingKeys::new([random_token::<32>().as_str()])?,
    };
    Some(PersonLogins { resource, logins, auth, keys })
}

async fn serve_http(
    fleet: Arc<Fleet>,
    listener: ListeningSocket,
    routes: impl FnOnce(HttpAccess) -> HttpRoutes,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let address = listener.address()?;
    let settings = fleet.settings().http.clone();
    let HttpSettings { access, listening, people } = settings;
    let resource = protected_resource(&people)?;
    let AccessSettings { auth_tokens, api_tokens, allowed_hosts, allowed_origins, .. } = access;
    // Also generated if the config has tokens, since a reload may remove these.
    let fallback = (!address.ip().is_loopback()).then(random_token::<32>);
    // If single servers have tokens of their own, no token may give access to all servers.
    if let Some(token) = &fallback
        && auth_tokens.is_empty()
        && resource.is_none()
        && fleet.tokens_of_servers().is_empty()
    {
        errln!("dormouse: no authTokens configured; hosts must send this bearer token: {token}");
    }
    let access = HttpAccess {
        fallback,
        api_tokens,
        hosts: allowed_hosts,
        origins: allowed_origins,
        resource,
    };
    errln!("dormouse: listening on {}://{address}/mcp", listening.scheme());
    http::serve(fleet, listener, routes(access), stop).await
}
