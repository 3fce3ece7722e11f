//! Hosts that connect over HTTP: streamable HTTP in both eras, and HTTP+SSE of 2024-11-05.
//!
//! Every host gets a [`Session`](super::Session) like that of the host on stdio. This module adds
//! what is specific to HTTP: access control, the choice of the response that carries a message, and
//! the lifetime of sessions whose hosts are gone.

mod connections;
mod guard;
mod legacy;
mod legacy_sse;
mod locality;
mod modern;
mod post_response;
mod request;
mod sessions;
mod stream;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, Version},
    middleware,
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use guard::HttpAccess;

use crate::{
    config::{ServerPaths, Surface},
    proxy::{Endpoint, Fleet},
};
use guard::{Guard, GuardState, RefusalLog, TokenHash};
use locality::is_from_this_machine;
use modern::Principals;
use request::refusal;
use sessions::Sessions;

/// Maximum time to answer requests in flight when dormouse shuts down.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);

/// The state that all request handlers share.
struct HttpFront {
    fleet: Arc<Fleet>,
    sessions: Sessions,
    principals: Principals,
    /// True if dormouse listens on a loopback address only.
    is_for_this_machine: bool,
    tasks: TaskTracker,
    /// Ends the streams that hosts keep open without a limit.
    stop: CancellationToken,
}

impl HttpFront {
    /// Returns whether the user of the host that sent a request is at this machine, as far as the
    /// headers show.
    fn is_from_this_machine(&self, headers: &HeaderMap, version: Version) -> bool {
        let trusted = &self.fleet.settings().http.trusted_proxies;
        self.is_for_this_machine && is_from_this_machine(headers, version, trusted)
    }
}

/// The routes over HTTP, and the access to them.
pub(crate) struct HttpRoutes {
    pub access: HttpAccess,
    /// The routes for operators.
    pub api: Router,
}

/// Listens on an address.
///
/// # Errors
/// When the address cannot be used.
pub(crate) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves hosts, and the API to operators, until `stop` is cancelled; then answers the requests in
/// flight.
///
/// # Errors
/// When the task that accepts connections panics. If connections cannot be accepted, that task
/// retries.
pub(crate) async fn serve(
    fleet: Arc<Fleet>,
    listener: TcpListener,
    routes: HttpRoutes,
    stop: CancellationToken,
) -> io::Result<()> {
    let HttpRoutes { access, api } = routes;
    let address = listener.local_addr()?;
    let guard = Guard::new(access, address);
    let guard_state =
        Arc::new(GuardState { guard, fleet: fleet.clone(), refusals: RefusalLog::default() });
    let front = Arc::new(HttpFront {
        sessions: Sessions::new(fleet.settings().http.session_timeout),
        principals: Principals::default(),
        is_for_this_machine: address.ip().is_loopback(),
        fleet,
        tasks: TaskTracker::new(),
        stop: CancellationToken::new(),
    });
    let plain = router(&front, guard_state, api);
    let app = match front.fleet.settings().server_paths {
        ServerPaths::Prefixed => plain,
        ServerPaths::AlsoAtRoot => with_servers_at_root(plain, &front),
    };
    let expiring = tokio::spawn(sessions::expire(front.clone()));
    let stopping = {
        let (front, stop) = (front.clone(), stop.clone());
        async move {
            stop.cancelled().await;
            // Long-lived streams end now; requests in flight are still answered.
            front.stop.cancel();
            front.fleet.end_logins();
        }
    };
    let mut serving = tokio::spawn({
        let stop = stop.clone();
        async move { tokio::join!(connections::serve(listener, app, stop), stopping) }
    });
    let served = tokio::select! {
        served = &mut serving => served.map(|_| ()),
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIMEOUT).await;
        } => {
            serving.abort();
            Ok(())
        }
    };
    expiring.abort();
    front.sessions.end_all().await;
    front.tasks.close();
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, front.tasks.wait()).await;
    served.map_err(io::Error::other)
}

fn router(front: &Arc<HttpFront>, guard_state: Arc<GuardState>, api: Router) -> Router {
    Router::new()
        .route("/mcp", any(mcp))
        .route("/servers/{name}/mcp", any(mcp))
        .route("/sse", get(sse))
        .route("/servers/{name}/sse", get(sse))
        .route("/messages", post(legacy_sse::message))
        .route("/servers/{name}/messages", post(legacy_sse::message))
        .merge(api.with_state(()))
        .layer(middleware::from_fn_with_state(guard_state, guard::authorize))
        // Health checks need neither a token nor a known host name.
        .route("/healthz", get(|| async { "ok\n" }))
        // Ready means that the config is loaded; servers may come and go.
        .route("/readyz", get(|| async { "ready\n" }))
        // The names of these paths in mcp-proxy.
        .route("/_healthz", get(|| async { "ok\n" }))
        .route("/_readyz", get(|| async { "ready\n" }))
        .with_state(front.clone())
}

/// Adds a layer that rewrites paths; it must run before the router.
fn with_servers_at_root(router: Router, front: &Arc<HttpFront>) -> Router {
    let rewriting = middleware::map_request_with_state(front.clone(), path_of_server);
    Router::new().fallback_service(router).layer(rewriting)
}

/// Rewrites `/<name>/…` to `/servers/<name>/…` if there is such a server.
async fn path_of_server(State(front): State<Arc<HttpFront>>, mut request: Request) -> Request {
    let uri = request.uri();
    let path = uri.path().trim_end_matches('/');
    let mut parts = path.trim_start_matches('/').split('/');
    let (name, rest, end) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    let place = match (rest, end) {
        (None | Some("mcp"), None) => "mcp",
        (Some("sse"), None) => "sse",
        (Some("messages"), None) => "messages",
        _ => return request,
    };
    let is_ours = rest.is_none() && OWN_PATHS.contains(&name);
    if is_ours || front.fleet.endpoint_of(&decoded, None).is_none() {
        return request;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(meant) = format!("/servers/{name}/{place}{query}").parse() {
        let written = std::mem::replace(request.uri_mut(), meant);
        request.extensions_mut().insert(OriginalUri(written));
    }
    request
}

/// Paths of the health checks.
const HEALTH_PATHS: [&str; 4] = ["/healthz", "/readyz", "/_healthz", "/_readyz"];

/// First segments of dormouse's own paths, which are never taken for a server's name.
const OWN_PATHS: [&str; 8] =
    ["api", "mcp", "sse", "messages", "healthz", "readyz", "_healthz", "_readyz"];

/// The URI that the host sent, if it was rewritten.
#[derive(Clone)]
struct OriginalUri(Uri);

/// The query of an endpoint.
#[derive(Deserialize)]
struct EndpointQuery {
    surface: Option<String>,
}

async fn mcp(
    State(front): State<Arc<HttpFront>>,
    name: Option<Path<String>>,
    Query(options): Query<EndpointQuery>,
    request: Request,
) -> Response {
    match resolve_endpoint(&front, name, &options) {
        Ok(endpoint) => dispatch(&front, endpoint, request).await,
        Err(refused) => refused,
    }
}

async fn sse(
    State(front): State<Arc<HttpFront>>,
    name: Option<Path<String>>,
    Query(options): Query<EndpointQuery>,
    request: Request,
) -> Response {
    // The host posts next to the path that it used itself, not next to the rewritten one.
    let written = request.extensions().get::<OriginalUri>();
    let path = written.map_or(request.uri(), |OriginalUri(uri)| uri).path();
    let messages = format!("{}/messages", path.strip_suffix("/sse").unwrap_or(path));
    match resolve_endpoint(&front, name, &options) {
        Ok(endpoint) => legacy_sse::open(&front, endpoint, &messages, &request),
        Err(refused) => refused,
    }
}

/// Returns the endpoint that a URL stands for: all servers or the named one, with the surface of
/// the query, if any.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
fn resolve_endpoint(
    front: &HttpFront,
    server: Option<Path<String>>,
    options: &EndpointQuery,
) -> Result<Endpoint, Response> {
    let asked = match options.surface.as_deref() {
        None => None,
        Some(name) => {
            if let Some(surface) = Surface::named(name) {
                Some(surface)
            } else {
                let message = format!("unknown surface {name:?}");
                return Err(refusal(StatusCode::BAD_REQUEST, None, &message));
            }
        }
    };
    let Some(Path(name)) = server else {
        let own = front.fleet.endpoint();
        return Ok(Endpoint { surface: asked.unwrap_or(own.surface), ..own });
    };
    front.fleet.endpoint_of(&name, asked).ok_or_else(|| {
        let message = format!("unknown server {name:?}");
        refusal(StatusCode::NOT_FOUND, None, &message)
    })
}

async fn dispatch(front: &Arc<HttpFront>, endpoint: Endpoint, request: Request) -> Response {
    // Set by the guard.
    let token_hash = request.extensions().get::<TokenHash>().copied().unwrap_or_default();
    match *request.method() {
        Method::POST => {
            let posted =
                request::read(request, front.fleet.settings().limits.max_message_bytes).await;
            match posted {
                Ok(posted) if posted.is_modern() => {
                    modern::post(front, endpoint, token_hash, posted).await
                }
                Ok(posted) => legacy::post(front, endpoint, token_hash, posted).await,
                Err(refused) => refused,
            }
        }
        Method::GET => legacy::get(front, &endpoint, token_hash, request.headers()),
        Method::DELETE => legacy::delete(front, &endpoint, token_hash, request.headers()).await,
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
