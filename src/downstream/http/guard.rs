//! Access control for HTTP: checks the `Host` and `Origin` of a request, and its bearer token.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::json;
use subtle::ConstantTimeEq as _;
use url::Url;

use super::{
    paths::PathScope, protected_resource::ProtectedResource, quotas::Quotas, request::refusal,
    sender::Sender, token_hash::TokenHash,
};
use crate::{
    base::Lock,
    config::is_loopback,
    identity::{Person, TokenProblem},
    proxy::Fleet,
};

/// The tokens, host names and origins that grant access over HTTP.
#[derive(Clone, Default)]
pub(crate) struct HttpAccess {
    /// Token that opens everything while the config has no tokens. Without it, everything is then
    /// open except servers with tokens of their own and endpoints that include them.
    pub fallback: Option<String>,
    /// Tokens that open the paths below `/api/`, which no other token does.
    pub api_tokens: Vec<String>,
    /// Allowed names in `Host`, in addition to loopback ones and the address that dormouse listens
    /// on.
    pub hosts: Vec<String>,
    /// Allowed origins, in addition to loopback ones.
    pub origins: Vec<String>,
    /// The identity providers whose tokens open the endpoints of hosts; `None` if there are none.
    pub resource: Option<Arc<ProtectedResource>>,
}

pub(super) struct Guard {
    access: HttpAccess,
    address: SocketAddr,
    /// The two values of `Host` that nearly all hosts send, for a quick comparison.
    usual_hosts: [String; 2],
}

/// The tokens of single servers, by the servers' names.
pub(super) type ServerTokens = [(String, Vec<String>)];

/// The guard, with the fleet whose settings may change while hosts are served.
pub(super) struct GuardState {
    pub(super) guard: Guard,
    pub(super) fleet: Arc<Fleet>,
    pub(super) quotas: Quotas,
    pub(super) refusals: RefusalLog,
}

/// Logs requests without a valid token, at a limited rate.
#[derive(Default)]
pub(crate) struct RefusalLog(Lock<RefusalCount>);

#[derive(Default)]
struct RefusalCount {
    last_logged: Option<Instant>,
    /// Number of refused requests since then.
    count: u64,
}

impl RefusalLog {
    const LOG_INTERVAL: Duration = Duration::from_secs(1);

    /// Counts a refused request. The token that it carried stays out of the log, because it may be
    /// a valid one with a typo.
    pub(crate) fn note(&self, path: &str) {
        let mut refused = self.0.lock();
        refused.count += 1;
        if refused.last_logged.is_some_and(|last| last.elapsed() < Self::LOG_INTERVAL) {
            return;
        }
        let count = std::mem::take(&mut refused.count);
        refused.last_logged = Some(Instant::now());
        drop(refused);
        tracing::warn!(path, count, "refused requests without a valid token");
    }
}

impl Guard {
    pub(super) fn new(access: HttpAccess, address: SocketAddr) -> Self {
        Self { access, address, usual_hosts: usual_hosts(address) }
    }

    /// Returns the identity providers, and the public address of the endpoints.
    pub(super) fn resource(&self) -> Option<Arc<ProtectedResource>> {
        self.access.resource.clone()
    }

    /// Returns whether `Host` is a loopback name, the own address or an allowed name. This prevents
    /// DNS rebinding, in which a page resolves its own name to dormouse's address.
    pub(super) fn is_known_host(&self, headers: &HeaderMap) -> bool {
        let Some(Ok(host)) = only_value(headers, &HOST).map(HeaderValue::to_str) else {
            return false;
        };
        if self.usual_hosts.iter().any(|usual| usual == host) {
            return true;
        }
        let Ok(url) = Url::parse(&format!("http://{host}")) else { return false };
        let Some(name) = url.host_str() else { return false };
        let is_allowed = |allowed: &String| {
            allowed == "*"
                || allowed.eq_ignore_ascii_case(host)
                || allowed.eq_ignore_ascii_case(name)
        };
        is_loopback(&url)
            || name.trim_matches(['[', ']']).parse() == Ok(self.address.ip())
            || self.access.hosts.iter().any(is_allowed)
            // On a wildcard address, any IP address in `Host` is one of this machine; a name may
            // belong to a stranger.
            || self.address.ip().is_unspecified()
                && name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }

    /// Returns whether `Origin` is missing or allowed. Browsers send the origin of the page that
    /// makes a request; other programs send none.
    pub(super) fn is_known_origin(&self, headers: &HeaderMap) -> bool {
        if !headers.contains_key(ORIGIN) {
            return true;
        }
        let Some(Ok(origin)) = only_value(headers, &ORIGIN).map(HeaderValue::to_str) else {
            return false;
        };
        let is_allowed = |allowed: &String| {
            allowed == "*" || allowed.trim_end_matches('/').eq_ignore_ascii_case(origin)
        };
        // Browser extensions have origins too, with schemes of their own.
        Url::parse(origin)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && is_loopback(&url))
            || self.access.origins.iter().any(is_allowed)
    }

    /// Returns the hash of the request's token if it opens this part of dormouse, and an empty one
    /// if no token is needed; `None` refuses the request. `tokens`: those of the config, any of
    /// which opens everything except the control API.
    pub(super) fn admit(
        &self,
        scope: &PathScope<'_>,
        headers: &HeaderMap,
        tokens: &[String],
        server_tokens: &ServerTokens,
    ) -> Option<TokenHash> {
        let (own_tokens, is_closed) = match scope {
            PathScope::Api => return matching_token(headers, self.access.api_tokens.iter()),
            // The page has a sign-in of its own.
            PathScope::Page => return None,
            PathScope::Server(name) => {
                let own_tokens = server_tokens.iter().find(|(of, _)| of == name);
                let own_tokens = own_tokens.map(|(_, tokens)| tokens.as_slice());
                (own_tokens.unwrap_or_default(), false)
            }
            // An endpoint with all servers includes those with tokens of their own, so their tokens
            // close it too.
            PathScope::AllServers => (<&[String]>::default(), !server_tokens.is_empty()),
        };
        let is_closed = is_closed || self.access.resource.is_some();
        let tokens = if tokens.is_empty() { self.access.fallback.as_slice() } else { tokens };
        if tokens.is_empty() && own_tokens.is_empty() && !is_closed {
            return Some(TokenHash::default());
        }
        matching_token(headers, tokens.iter().chain(own_tokens))
    }
}

/// Returns the value of a header that occurs once: a proxy and dormouse could read a repeated one
/// differently (RFC 9112, section 3.2).
pub(crate) fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Returns the hash of the token that the request carries, if it is one of `tokens`.
fn matching_token<'a>(
    headers: &HeaderMap,
    tokens: impl Iterator<Item = &'a String>,
) -> Option<TokenHash> {
    let shown = bearer_token(headers)?;
    let mut found = None;
    // All tokens are compared, so that the time taken does not reveal which one matches.
    for token in tokens {
        if bool::from(token.as_bytes().ct_eq(shown.as_bytes())) {
            found = Some(TokenHash::of(token));
        }
    }
    found
}

fn usual_hosts(address: SocketAddr) -> [String; 2] {
    [address.to_string(), format!("localhost:{}", address.port())]
}

/// Builds a refusal in the form of the API or of MCP.
fn refused(scope: &PathScope<'_>, status: StatusCode, message: &str) -> Response {
    if matches!(scope, PathScope::Api | PathScope::Page) {
        return (status, Json(json!({"error": message}))).into_response();
    }
    refusal(status, None, message)
}

/// Passes an authorized request on, and refuses any other.
pub(super) async fn authorize(
    State(state): State<Arc<GuardState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let guard = &state.guard;
    let (headers, path) = (request.headers(), request.uri().path());
    let scope = PathScope::of(path);
    if !guard.is_known_host(headers) {
        let message = "the Host header does not name this server";
        return refused(&scope, StatusCode::FORBIDDEN, message);
    }
    if scope == PathScope::Page {
        // The page accepts no origin but its own, so that it needs no CORS headers.
        if guard.access.api_tokens.is_empty() {
            let message = "the page is closed while the config has no apiTokens";
            return refused(&scope, StatusCode::FORBIDDEN, message);
        }
        return next.run(request).await;
    }
    if !guard.is_known_origin(headers) {
        return refused(&scope, StatusCode::FORBIDDEN, "the Origin header is not allowed");
    }
    let origin = headers.get(ORIGIN).cloned();
    if request.method() == Method::OPTIONS {
        return with_cors(StatusCode::NO_CONTENT.into_response(), origin);
    }
    if scope == PathScope::Api && guard.access.api_tokens.is_empty() {
        let message = "the API is closed while the config has no apiTokens";
        return with_cors(refused(&scope, StatusCode::FORBIDDEN, message), origin);
    }
    // Read for each request, because a reload may change them.
    let server_tokens = state.fleet.tokens_of_servers();
    let tokens = state.fleet.settings().http.access.auth_tokens.clone();
    if let Some(token_hash) = guard.admit(&scope, headers, &tokens, &server_tokens) {
        request.extensions_mut().insert(Sender { token_hash, person: None, usage: None });
        return with_cors(next.run(request).await, origin);
    }
    match owner_of_token(guard, &scope, headers, path).await {
        Ok(person) => {
            let token_hash = TokenHash::of_person(&person);
            // The groups may be others than in the last token of the person.
            let limits = state.fleet.settings().limits_of(&person.groups);
            let usage = Some(state.quotas.usage(token_hash.user(), limits));
            request.extensions_mut().insert(Sender { token_hash, person: Some(person), usage });
            with_cors(next.run(request).await, origin)
        }
        Err(refused) => {
            state.refusals.note(path);
            with_cors(refused, origin)
        }
    }
}

/// Returns the owner of the access token of a request.
///
/// # Errors
/// The response that refuses the request.
async fn owner_of_token(
    guard: &Guard,
    scope: &PathScope<'_>,
    headers: &HeaderMap,
    path: &str,
) -> Result<Arc<Person>, Response> {
    let is_for_people = matches!(scope, PathScope::Server(_) | PathScope::AllServers);
    let resource = guard.access.resource.as_ref().filter(|_| is_for_people);
    let refused_with = |status, message: &str, challenge| {
        let mut refused = refused(scope, status, message);
        refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        refused
    };
    let Some(resource) = resource else {
        let key = if *scope == PathScope::Api { "apiTokens" } else { "authTokens" };
        let message = format!("a bearer token is required; see {key}");
        let bearer = HeaderValue::from_static("Bearer");
        return Err(refused_with(StatusCode::UNAUTHORIZED, &message, bearer));
    };
    let Some(token) = bearer_token(headers) else {
        let message = "a bearer token is required";
        let challenge = resource.challenge(path, None);
        return Err(refused_with(StatusCode::UNAUTHORIZED, message, challenge));
    };
    resource.issuers.owner(token).await.map_err(|problem| {
        if let TokenProblem::Unavailable(why) = &problem {
            // Not for strangers: the cause names addresses of the network.
            tracing::warn!(why, "cannot check an access token");
            let message = "the token cannot be checked now; try again later";
            return refused(scope, StatusCode::SERVICE_UNAVAILABLE, message);
        }
        let challenge = resource.challenge(path, Some(&problem));
        refused_with(ProtectedResource::status(&problem), &problem.to_string(), challenge)
    })
}

/// Returns the bearer token of a request.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let shown = only_value(headers, &AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Adds the CORS headers that let a page of an allowed origin read the response.
fn with_cors(mut response: Response, origin: Option<HeaderValue>) -> Response {
    let Some(origin) = origin else { return response };
    let fixed = [
        ("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("access-control-allow-headers", "*, Authorization"),
        ("access-control-expose-headers", "Mcp-Session-Id, WWW-Authenticate"),
        ("vary", "Origin"),
    ];
    let headers = response.headers_mut();
    headers.insert("access-control-allow-origin", origin);
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> Guard {
        let access = HttpAccess {
            api_tokens: Vec::new(),
            fallback: None,
            resource: None,
            hosts: vec!["mcp.example.com".to_owned()],
            origins: vec!["https://app.example.com".to_owned()],
        };
        let address = address.parse().unwrap();
        Guard::new(access, address)
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn only_known_hosts_are_answered() {
        for (address, host, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "localhost:80", true),
            ("127.0.0.1:80", "[::1]:80", true),
            ("127.0.0.1:80", "mcp.example.com", true),
            ("127.0.0.1:80", "evil.example.com", false),
            ("127.0.0.1:80", "localhost.evil.com", false),
            ("127.0.0.1:80", "10.0.0.7", false),
            ("10.0.0.7:80", "10.0.0.7:80", true),
            ("0.0.0.0:80", "10.0.0.7:80", true),
            ("0.0.0.0:80", "evil.example.com", false),
        ] {
            assert_eq!(guard(address).is_known_host(&headers("host", host)), expected, "{host}");
        }
        assert!(!guard("127.0.0.1:80").is_known_host(&HeaderMap::new()));
        let mut twice = headers("host", "127.0.0.1");
        twice.append("host", HeaderValue::from_static("127.0.0.1"));
        assert!(!guard("127.0.0.1:80").is_known_host(&twice));
    }

    #[test]
    fn only_known_origins_are_answered() {
        let guard = guard("127.0.0.1:80");
        assert!(guard.is_known_origin(&HeaderMap::new()));
        let mut twice = headers("origin", "http://127.0.0.1");
        twice.append("origin", HeaderValue::from_static("http://127.0.0.1"));
        assert!(!guard.is_known_origin(&twice));
        for (origin, expected) in [
            ("http://localhost:5173", true),
            ("http://127.0.0.1", true),
            ("https://app.example.com", true),
            ("https://evil.example.com", false),
            ("http://localhost.evil.com", false),
            ("null", false),
            ("moz-extension://localhost", false),
            ("httpx://localhost", false),
        ] {
            assert_eq!(guard.is_known_origin(&headers("origin", origin)), expected, "{origin}");
        }
    }

    #[test]
    fn server_token_opens_only_that_server() {
        let guard = guard("127.0.0.1:80");
        let all = ["all".to_owned(), "too".to_owned()];
        let shown = |token: &str| headers("authorization", &format!("Bearer {token}"));
        let everything = PathScope::of("/mcp");
        assert_eq!(
            guard.admit(&everything, &HeaderMap::new(), &[], &[]),
            Some(TokenHash::default())
        );
        let server_tokens = [("a&b".to_owned(), vec!["own".to_owned()])];
        let admit_with = |tokens: &[String], path, headers: &HeaderMap| {
            guard.admit(&PathScope::of(path), headers, tokens, &server_tokens)
        };
        let admit = |path, headers: &HeaderMap| admit_with(&[], path, headers);
        let nothing = HeaderMap::new();
        assert_eq!(admit("/mcp", &nothing), None);
        assert_eq!(admit("/mcp", &shown("own")), None);
        assert_eq!(admit("/servers/a&b/mcp", &nothing), None);
        assert_eq!(admit("/servers/b/mcp", &nothing), Some(TokenHash::default()));
        assert_eq!(admit("/servers/a%26b/mcp", &nothing), None);
        let own = Some(TokenHash::of("own"));
        assert_eq!(admit("/servers/a%26b/mcp", &shown("own")), own);
        assert_eq!(admit_with(&all, "/mcp", &shown("own")), None);
        assert_eq!(admit_with(&all, "/mcp", &shown("too")), Some(TokenHash::of("too")));
        assert_eq!(
            admit_with(&all, "/servers/a%26b/mcp", &shown("all")),
            Some(TokenHash::of("all"))
        );
        assert_eq!(admit_with(&all, "/mcp", &headers("authorization", "Basic all")), None);
    }
}
