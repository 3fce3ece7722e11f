//! The router: the handler of each path over HTTP, and the endpoint that the path stands for.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::{Method, StatusCode},
    middleware,
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use serde::Deserialize;

use super::{
    front::HttpFront,
    guard::{self, GuardState, TokenHash},
    legacy, legacy_sse, modern,
    paths::HEALTH_CHECKS,
    request::{self, refusal},
    root_paths::OriginalUri,
};
use crate::{config::Surface, proxy::Endpoint};

pub(super) fn router(front: &Arc<HttpFront>, guard_state: Arc<GuardState>, api: Router) -> Router {
    let router = Router::new()
        .route("/mcp", any(mcp))
        .route("/servers/{name}/mcp", any(mcp))
        .route("/sse", get(sse))
        .route("/servers/{name}/sse", get(sse))
        .route("/messages", post(legacy_sse::message))
        .route("/servers/{name}/messages", post(legacy_sse::message))
        .merge(api.with_state(()))
        .layer(middleware::from_fn_with_state(guard_state, guard::authorize));
    // Health checks need neither a token nor a known host name.
    let health_checks = HEALTH_CHECKS.into_iter();
    let router = health_checks.fold(router, |router, (path, answer)| {
        router.route(path, get(move || async move { answer }))
    });
    router.with_state(front.clone())
}

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
