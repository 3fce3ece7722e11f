//! Who may come in: the `Host` and `Origin` of a request, and its bearer token.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::request::refusal;
use crate::{
    base::Lock,
    config::is_loopback,
    proxy::{Fleet, User},
};

/// Who may use the servers over HTTP.
#[derive(Clone, Default)]
pub struct HttpAccess {
    /// Opens everything while the config has no tokens; without it everything is open then, but for what servers have
    /// tokens for.
    pub fallback: Option<String>,
    /// Any of them opens what stands below `/api/`, and nothing else does.
    pub api_tokens: Vec<String>,
    /// Names in `Host` beside loopback ones and the address that is listened on.
    pub hosts: Vec<String>,
    /// Origins beside loopback ones.
    pub origins: Vec<String>,
}

/// Where what runs here is changed.
const API_PREFIX: &str = "/api/";

pub(super) struct Guard {
    access: HttpAccess,
    address: SocketAddr,
    /// How nearly every host writes the address.
    usual_hosts: [String; 2],
}

/// Tokens for one server each, under its name.
type ServerTokens = [(String, Vec<String>)];

/// The guard, and whom it asks for what may change while hosts are served.
pub(super) struct GuardState {
    pub(super) guard: Guard,
    pub(super) fleet: Arc<Fleet>,
    pub(super) refusals: RefusalLog,
}

/// Requests without a good token, which are logged, and not so often that the log is flooded.
#[derive(Default)]
pub(super) struct RefusalLog(Lock<RefusalCount>);

#[derive(Default)]
struct RefusalCount {
    last_logged: Option<Instant>,
    /// Since then.
    count: u64,
}

impl RefusalLog {
    const LOG_INTERVAL: Duration = Duration::from_secs(1);

    /// What was shown is not for the log: it may be a good token with a slip in it.
    fn note(&self, path: &str) {
        let mut refused = self.0.lock();
        refused.count += 1;
        if refused.last_logged.is_some_and(|last| last.elapsed() < Self::LOG_INTERVAL) {
            return;
        }
        let count = std::mem::take(&mut refused.count);
        refused.last_logged = Some(Instant::now());
        drop(refused);
        tracing::warn!(path, count, "refused requests without a good token");
    }
}

/// What a request has shown to come in with: the hash of a token, where one is needed. Sessions are bound to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TokenHash(Option<[u8; 32]>);

impl TokenHash {
    pub(super) fn user(self) -> User {
        User(self.0)
    }

    fn of(token: &str) -> Self {
        Self(Some(Sha256::digest(token).into()))
    }
}

impl Guard {
    pub(super) fn new(access: HttpAccess, address: SocketAddr) -> Self {
        Self { access, address, usual_hosts: usual_hosts(address) }
    }

    /// DNS rebinding makes a browser send requests for another name to our address.
    fn is_known_host(&self, headers: &HeaderMap) -> bool {
        let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else {
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
            // Listening everywhere, each address of this machine is meant; a name can be anybody's.
            || self.address.ip().is_unspecified()
                && name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }

    /// A browser names the page that a request comes from; programs name none.
    fn is_known_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        let is_allowed = |allowed: &String| {
            allowed == "*" || allowed.trim_end_matches('/').eq_ignore_ascii_case(origin)
        };
        // Extensions of a browser have origins too, with schemes of their own.
        Url::parse(origin)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && is_loopback(&url))
            || self.access.origins.iter().any(is_allowed)
    }

    /// The token that the request shows, among those that open this path; `None` where it shows none of them.
    /// `tokens`: those of the config, any of which opens everything.
    fn admit(
        &self,
        path: &str,
        headers: &HeaderMap,
        tokens: &[String],
        server_tokens: &ServerTokens,
    ) -> Option<TokenHash> {
        if path.starts_with(API_PREFIX) {
            return matching_token(headers, self.access.api_tokens.iter());
        }
        let own_tokens = server_tokens.iter().find(|(name, _)| is_below(path, name));
        let own_tokens = own_tokens.map(|(_, tokens)| tokens.as_slice()).unwrap_or_default();
        // Where all servers are to be had, those with tokens of their own are too.
        let is_everything = !path.starts_with("/servers/");
        let is_closed = is_everything && !server_tokens.is_empty();
        let tokens = if tokens.is_empty() { self.access.fallback.as_slice() } else { tokens };
        if tokens.is_empty() && own_tokens.is_empty() && !is_closed {
            return Some(TokenHash(None));
        }
        matching_token(headers, tokens.iter().chain(own_tokens))
    }
}

/// The one of these tokens that the request shows.
fn matching_token<'a>(
    headers: &HeaderMap,
    tokens: impl Iterator<Item = &'a String>,
) -> Option<TokenHash> {
    let shown = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, shown) = shown.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut found = None;
    // All of them are compared, whichever it is, so that the time taken says nothing.
    for token in tokens {
        if bool::from(token.as_bytes().ct_eq(shown.trim().as_bytes())) {
            found = Some(TokenHash::of(token));
        }
    }
    found
}

fn usual_hosts(address: SocketAddr) -> [String; 2] {
    [address.to_string(), format!("localhost:{}", address.port())]
}

/// Whether a path is that of the server's own endpoint.
fn is_below(path: &str, name: &str) -> bool {
    let Some(rest) = path.strip_prefix("/servers/") else { return false };
    let segment = rest.split('/').next().unwrap_or_default();
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy() == name
}

/// Says no in the form of what was asked for.
fn refused(path: &str, status: StatusCode, message: &str) -> Response {
    if path.starts_with(API_PREFIX) {
        return (status, Json(json!({"error": message}))).into_response();
    }
    refusal(status, None, message)
}

/// Lets a request in, or answers it.
pub(super) async fn authorize(
    State(state): State<Arc<GuardState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let guard = &state.guard;
    let (headers, path) = (request.headers(), request.uri().path());
    if !guard.is_known_host(headers) {
        let message = "the Host header names no host of this server";
        return refused(path, StatusCode::FORBIDDEN, message);
    }
    if !guard.is_known_origin(headers) {
        return refused(path, StatusCode::FORBIDDEN, "the Origin is not allowed");
    }
    let origin = headers.get(ORIGIN).cloned();
    if request.method() == Method::OPTIONS {
        return with_cors(StatusCode::NO_CONTENT.into_response(), origin);
    }
    if path.starts_with(API_PREFIX) && guard.access.api_tokens.is_empty() {
        let message = "this is closed while the config has no apiTokens";
        return with_cors(refused(path, StatusCode::FORBIDDEN, message), origin);
    }
    // As the config has them now.
    let server_tokens = state.fleet.tokens_of_servers();
    let tokens = state.fleet.settings().http.auth_tokens.clone();
    let Some(token_hash) = guard.admit(path, headers, &tokens, &server_tokens) else {
        state.refusals.note(path);
        let key = if path.starts_with(API_PREFIX) { "apiTokens" } else { "authTokens" };
        let message = format!("a bearer token is needed; see {key}");
        let mut refused = refused(path, StatusCode::UNAUTHORIZED, &message);
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return with_cors(refused, origin);
    };
    request.extensions_mut().insert(token_hash);
    with_cors(next.run(request).await, origin)
}

/// A page of an origin that is let in may read what it asked for.
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
    }

    #[test]
    fn only_known_origins_are_answered() {
        let guard = guard("127.0.0.1:80");
        assert!(guard.is_known_origin(&HeaderMap::new()));
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
        assert_eq!(guard.admit("/mcp", &HeaderMap::new(), &[], &[]), Some(TokenHash(None)));
        let server_tokens = [("a&b".to_owned(), vec!["own".to_owned()])];
        let admit_with = |tokens: &[String], path, headers: &HeaderMap| {
            guard.admit(path, headers, tokens, &server_tokens)
        };
        let admit = |path, headers: &HeaderMap| admit_with(&[], path, headers);
        let nothing = HeaderMap::new();
        assert_eq!(admit("/mcp", &nothing), None);
        assert_eq!(admit("/mcp", &shown("own")), None);
        assert_eq!(admit("/servers/a&b/mcp", &nothing), None);
        assert_eq!(admit("/servers/b/mcp", &nothing), Some(TokenHash(None)));
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
