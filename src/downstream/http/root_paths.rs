//! The endpoints of single servers at `/<name>/`, as other proxies have them.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::Uri,
    middleware,
};

use super::{front::HttpFront, paths::is_own_segment};
use crate::proxy::EndpointChoice;

/// The URI that the host sent, if it was rewritten.
#[derive(Clone)]
pub(super) struct OriginalUri(pub(super) Uri);

/// Adds a layer that rewrites paths; it must run before the router.
pub(super) fn with_servers_at_root(router: Router, front: &Arc<HttpFront>) -> Router {
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
    let is_ours = rest.is_none() && is_own_segment(name);
    if is_ours || front.fleet.endpoint_of(&decoded, EndpointChoice::default()).is_none() {
        return request;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(meant) = format!("/servers/{name}/{place}{query}").parse() {
        let written = std::mem::replace(request.uri_mut(), meant);
        request.extensions_mut().insert(OriginalUri(written));
    }
    request
}
