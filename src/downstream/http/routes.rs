//! The router: the handler of each path over HTTP, and the endpoint that the path stands for.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, Method, StatusCode},
    middleware,
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use serde::Deserialize;

use super::{
    front::HttpFront,
    guard::{self, GuardState},
    in_flight_messages, legacy, legacy_sse, modern,
    paths::{LIVENESS_CHECKS, READINESS_CHECKS},
    permissions::{count_answer, permitted_profile, spend},
    person_login_pages,
    placement::{RequestHead, answer_elsewhere},
    protected_resource::{METADATA_PATH, ProtectedResource},
    request::{self, PostedMessages, refusal},
    root_paths::OriginalUri,
    sender::Sender,
};
use crate::{
    config::{ProfileName, Surface},
    proxy::{Endpoint, EndpointChoice},
};

/// The header that names a profile, as `?profile=` does.
const PROFILE_HEADER: &str = "dormouse-profile";

pub(super) fn router(front: &Arc<HttpFront>, guard_state: Arc<GuardState>, api: Router) -> Router {
    let resource = guard_state.guard.resource();
    let router = Router::new()
        .route("/mcp", any(mcp))
        .route("/servers/{name}/mcp", any(mcp))
        .route("/sse", get(sse))
        .route("/servers/{name}/sse", get(sse))
        .route("/messages", post(legacy_sse::message))
        .route("/servers/{name}/messages", post(legacy_sse::message))
        .merge(api.with_state(()))
        .layer(middleware::from_fn_with_state(guard_state, guard::authorize));
    let router = match resource {
        Some(resource) => with_metadata(router, &resource),
        None => router,
    };
    let router = person_login_pages::with_pages(router);
    // Health checks need neither a token nor a known host name.
    let router = LIVENESS_CHECKS
        .iter()
        .fold(router, |router, path| router.route(path, get(|| async { "ok\n" })));
    let router =
        READINESS_CHECKS.iter().fold(router, |router, path| router.route(path, get(readiness)));
    router.with_state(front.clone())
}

/// Adds the routes of what tells hosts where to get a token, which needs none itself.
fn with_metadata(
    router: Router<Arc<HttpFront>>,
    resource: &Arc<ProtectedResource>,
) -> Router<Arc<HttpFront>> {
    let (of_all, of_path) = (resource.clone(), resource.clone());
    let answer_of_path = move |Path(path): Path<String>| {
        let answer = of_path.metadata(&format!("/{path}"));
        async move { answer }
    };
    router
        .route(METADATA_PATH, get(move || async move { of_all.metadata("") }))
        .route(&format!("{METADATA_PATH}/{{*path}}"), get(answer_of_path))
}

/// The query of a readiness check.
#[derive(Deserialize)]
struct ReadinessQuery {
    /// Present if a process without its store is not ready.
    strict: Option<String>,
}

/// Tells whether hosts can be served: the config is loaded, while servers may come and go. Calls go
/// on without the store, so that a check fails for it only on request: a balancer would otherwise
/// take all replicas away at once.
async fn readiness(
    State(front): State<Arc<HttpFront>>,
    Query(query): Query<ReadinessQuery>,
) -> Response {
    match front.store_outage() {
        None => "ready\n".into_response(),
        Some(_) if query.strict.is_none() => {
            "ready, but the store cannot be used\n".into_response()
        }
        Some(_) => {
            let message = "not ready: the store cannot be used\n";
            (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
        }
    }
}

/// The query of an endpoint.
#[derive(Deserialize)]
struct EndpointQuery {
    surface: Option<String>,
    profile: Option<String>,
}

async fn mcp(
    State(front): State<Arc<HttpFront>>,
    name: Option<Path<String>>,
    Query(options): Query<EndpointQuery>,
    request: Request,
) -> Response {
    match resolve_endpoint(&front, name, &options, &request) {
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
    match resolve_endpoint(&front, name, &options, &request) {
        Ok(endpoint) => {
            front.fleet.use_profile(endpoint.profile.as_ref()).await;
            legacy_sse::open(&front, endpoint, &request)
        }
        Err(refused) => refused,
    }
}

/// Returns the endpoint that a URL stands for: all servers or the named one, with the surface and
/// the profile that the request chooses, if any.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
fn resolve_endpoint(
    front: &HttpFront,
    server: Option<Path<String>>,
    options: &EndpointQuery,
    request: &Request,
) -> Result<Endpoint, Response> {
    let surface = options.surface.as_deref().map(surface).transpose()?;
    let profile = chosen_profile(front, options, request.headers())?;
    let profile = match Sender::of(request).person {
        Some(person) => permitted_profile(front, &person, profile)?,
        None => profile,
    };
    let choice = EndpointChoice { surface, profile };
    match server {
        None => Ok(front.fleet.endpoint(choice)),
        Some(Path(name)) => front.fleet.endpoint_of(&name, choice).ok_or_else(|| {
            let message = format!("unknown server {name:?}");
            refusal(StatusCode::NOT_FOUND, None, &message)
        }),
    }
}

#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
fn surface(name: &str) -> Result<Surface, Response> {
    Surface::named(name).ok_or_else(|| {
        let message = format!("unknown surface {name:?}");
        refusal(StatusCode::BAD_REQUEST, None, &message)
    })
}

/// Returns the profile that a request chooses. The query precedes the header, since a user sees it
/// in the URL.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
fn chosen_profile(
    front: &HttpFront,
    options: &EndpointQuery,
    headers: &HeaderMap,
) -> Result<Option<ProfileName>, Response> {
    let refused = |message: &str| refusal(StatusCode::BAD_REQUEST, None, message);
    let in_header = || {
        let value = headers.get(PROFILE_HEADER)?;
        // Header values have no encoding; UTF-8 is what JSON has.
        Some(str::from_utf8(value.as_bytes()).map_err(|_| refused("Dormouse-Profile is not UTF-8")))
    };
    let name = match &options.profile {
        Some(name) => Some(name.as_str()),
        None => in_header().transpose()?,
    };
    let named = |name| front.fleet.settings().profiles.named(name);
    name.map(named).transpose().map_err(|error| refused(&error.to_string()))
}

/// Answers posted messages. The replica that gets it from the host counts it for its person.
async fn answer_posted(
    front: &Arc<HttpFront>,
    endpoint: Endpoint,
    head: &RequestHead,
    posted: PostedMessages,
) -> Response {
    let usage = head.sender.usage.clone().filter(|_| !front.is_forwarded(&posted.headers));
    if let Some(usage) = &usage
        && let Err(refused) = spend(usage, &posted)
    {
        return refused;
    }
    let answer = answer_messages(front, endpoint, head, posted).await;
    match usage {
        Some(usage) => answer.map(|body| count_answer(usage, body)),
        None => answer,
    }
}

async fn answer_messages(
    front: &Arc<HttpFront>,
    endpoint: Endpoint,
    head: &RequestHead,
    posted: PostedMessages,
) -> Response {
    let is_modern = posted.is_modern();
    if !is_modern && posted.are_about_calls_in_flight() {
        let accepted = in_flight_messages::accept(front, &endpoint, head, posted).await;
        return accepted.unwrap_or_else(|refused| refused);
    }
    match answer_elsewhere(front, head, &posted.headers, Some(&endpoint), Some(&posted)).await {
        Some(answer) => answer,
        None if is_modern => modern::post(front, endpoint, &head.sender, posted).await,
        None => legacy::post(front, endpoint, &head.sender, posted).await,
    }
}

async fn dispatch(front: &Arc<HttpFront>, endpoint: Endpoint, request: Request) -> Response {
    let sender = Sender::of(&request);
    let uri = request.extensions().get::<OriginalUri>().map_or(request.uri(), |written| &written.0);
    let target = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let session = request::session_id_in(request.headers()).map(str::to_owned);
    let method = request.method().clone();
    let head = RequestHead { method, session, target, sender };
    if head.method == Method::POST {
        let max_bytes = front.fleet.settings().limits.max_message_bytes;
        let posted = match request::read(request, max_bytes).await {
            Ok(posted) => posted,
            Err(refused) => return refused,
        };
        return answer_posted(front, endpoint, &head, posted).await;
    }
    if let Some(answer) =
        answer_elsewhere(front, &head, request.headers(), Some(&endpoint), None).await
    {
        return answer;
    }
    match head.method {
        Method::GET => legacy::get(front, &endpoint, &head.sender, request.headers()),
        Method::DELETE => legacy::delete(front, &endpoint, &head.sender, request.headers()).await,
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
