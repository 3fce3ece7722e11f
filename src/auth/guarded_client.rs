//! An HTTP client for metadata and tokens that contacts permitted addresses only. A server names
//! its authorization server, and could otherwise make dormouse send requests to any address, such
//! as services of this machine or its network (MCP, Security Best Practices, SSRF).

use std::{
    collections::BTreeSet,
    error::Error as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::{
    Client, Method, Request, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::HeaderMap,
    redirect,
};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::{Host, Origin, Url};

use super::redaction::redacted;
use crate::{
    base::{Lock, resolve_name},
    config::is_loopback,
    wire::{http_client_builder, sse::root_cause},
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response body.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Sends requests to permitted addresses. Cheap to clone.
#[derive(Clone)]
pub(super) struct GuardedClient {
    client: Client,
    rules: Arc<AddressRules>,
    /// Failure of rmcp's last request, which rmcp does not pass on.
    failure: Arc<Lock<Option<String>>>,
}

/// The reason that a request was not sent or has failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuardedClientError {
    #[error("refused to contact {0}: https is required, except for this machine")]
    Insecure(String),
    #[error(
        "refused to contact {0}: its address is in a private network or on this machine; if the \
            authorization server is there, name it as \"authServer\""
    )]
    Private(String),
    #[error("refused to contact {0}: the URL has no host, or contains a name and a password")]
    InvalidUrl(String),
    #[error("the response of {0} has more than {MAX_BODY_BYTES} bytes")]
    TooLarge(String),
    #[error("cannot make HTTP requests: {0}")]
    Client(String),
    #[error("cannot contact {to}: {cause}")]
    Failed { to: String, cause: String },
}

impl GuardedClient {
    /// Makes a client. `configured`: the URLs that the config names, which may be at any address
    /// and permit other URLs of the same scope.
    pub(super) fn new(
        configured: impl IntoIterator<Item = Url>,
    ) -> Result<Self, GuardedClientError> {
        let rules = Arc::new(AddressRules::of(&configured.into_iter().collect::<Vec<Url>>()));
        let builder = || {
            http_client_builder()
                .user_agent(concat!("dormouse/", env!("CARGO_PKG_VERSION")))
                // The caller decides whether to follow a redirect.
                .redirect(redirect::Policy::none())
                .timeout(REQUEST_TIMEOUT)
                .connect_timeout(CONNECT_TIMEOUT)
                .dns_resolver(FilteringResolver(rules.clone()))
        };
        // A system without certificates can still use plain HTTP, which needs none.
        let client = builder().build().or_else(|_| builder().tls_certs_only(Vec::new()).build());
        let client = client.map_err(|error| GuardedClientError::Client(cause_of(&error)))?;
        Ok(Self { client, rules, failure: Arc::default() })
    }

    /// Checks whether a URL may be contacted, as far as its text shows.
    pub(super) fn check(&self, url: &Url) -> Result<(), GuardedClientError> {
        self.rules.check(url)
    }

    /// Sends one request, and follows no redirect.
    pub(super) async fn execute(
        &self,
        request: HttpRequest,
    ) -> Result<HttpResponse, GuardedClientError> {
        let (url, response) = self.send(request).await?;
        let mut answer = oauth2::http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let (mut body, mut chunks) = (Vec::new(), response.bytes_stream());
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| failed(&url, &error))?);
            if body.len() > MAX_BODY_BYTES {
                return Err(GuardedClientError::TooLarge(redacted(&url)));
            }
        }
        answer.body(body).map_err(|error| GuardedClientError::Client(error.to_string()))
    }

    /// Sends a request and returns status and headers; the body is not read, since it may be
    /// endless.
    pub(super) async fn fetch_head(
        &self,
        request: HttpRequest,
    ) -> Result<(StatusCode, HeaderMap), GuardedClientError> {
        let (_, response) = self.send(request).await?;
        Ok((response.status(), response.headers().clone()))
    }

    async fn send(&self, request: HttpRequest) -> Result<(Url, Response), GuardedClientError> {
        let request = Request::try_from(request)
            .map_err(|error| GuardedClientError::Client(cause_of(&error)))?;
        let url = request.url().clone();
        self.check(&url)?;
        let response = self.client.execute(request).await.map_err(|error| failed(&url, &error))?;
        Ok((url, response))
    }

    async fn request_token(
        &self,
        request: HttpRequest,
    ) -> Result<HttpResponse, GuardedClientError> {
        let to = redacted_uri(&request);
        let response = self.execute(request).await?;
        match response.status().as_u16() {
            // These statuses are temporary, whatever the body says.
            status @ (408 | 429 | 500..) => {
                Err(GuardedClientError::Failed { to, cause: format!("HTTP status {status}") })
            }
            _ => Ok(normalized(response)),
        }
    }

    /// Takes the reason for which rmcp's last request failed.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.failure.lock().take()
    }

    /// Fetches a JSON document; `None` if the status is not a success or the body is not JSON.
    pub(super) async fn get_json(
        &self,
        url: &Url,
    ) -> Result<Option<serde_json::Value>, GuardedClientError> {
        let request = oauth2::http::Request::get(url.as_str()).header("accept", "application/json");
        let request = request.body(Vec::new());
        let request = request.map_err(|error| GuardedClientError::Client(error.to_string()))?;
        let response = self.execute(request).await?;
        let document = response.status().is_success().then(|| response.into_body());
        Ok(document.and_then(|body| serde_json::from_slice(&body).ok()))
    }
}

impl OAuthHttpClient for GuardedClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let is_for_token = request.request.method() == Method::POST;
            let answered = if is_for_token {
                self.request_token(request.request).await
            } else {
                GuardedClient::execute(self, request.request).await
            };
            *self.failure.lock() = answered.as_ref().err().map(ToString::to_string);
            Ok(answered?)
        })
    }
}

impl<'c> AsyncHttpClient<'c> for GuardedClient {
    type Error = GuardedClientError;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<HttpResponse, GuardedClientError>> + Send + 'c>,
    >;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.request_token(request))
    }
}

/// Makes a token response conform to RFC 6749. Some authorization servers, such as GitHub's, report
/// an error with status 200; others write `expires_in` as a string or with a fraction.
pub(super) fn normalized(mut response: HttpResponse) -> HttpResponse {
    if response.status() != StatusCode::OK {
        return response;
    }
    let Ok(mut answer) = serde_json::from_slice::<serde_json::Value>(response.body()) else {
        return response;
    };
    if answer["error"].is_string() && answer["access_token"].is_null() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    }
    let life = match &answer["expires_in"] {
        serde_json::Value::Null => return response,
        serde_json::Value::Number(number) if number.is_u64() => return response,
        serde_json::Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    // An invalid lifetime counts as a missing one.
    let life = life.and_then(|life| Duration::try_from_secs_f64(life).ok());
    answer["expires_in"] = life.map(|life| life.as_secs()).into();
    *response.body_mut() = answer.to_string().into_bytes();
    response
}

fn redacted_uri(request: &HttpRequest) -> String {
    let url = Url::parse(&request.uri().to_string());
    url.map_or_else(|_| "it".to_owned(), |url| redacted(&url))
}

fn failed(to: &Url, error: &reqwest::Error) -> GuardedClientError {
    GuardedClientError::Failed { to: redacted(to), cause: cause_of(error) }
}

/// Returns the innermost cause, because reqwest's own text contains the URL with its query.
fn cause_of(error: &reqwest::Error) -> String {
    if error.source().is_none() { "no answer".to_owned() } else { root_cause(error) }
}

/// The addresses that may be contacted.
#[derive(Debug)]
struct AddressRules {
    /// Origins of the URLs that the config names.
    configured: Vec<Origin>,
    configured_hosts: BTreeSet<String>,
    /// Hosts of the proxies that requests may go through.
    proxies: BTreeSet<String>,
    allowed: BTreeSet<AddressScope>,
}

/// The networks from which an address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AddressScope {
    Global,
    PrivateNetwork,
    LinkLocal,
    Loopback,
    /// Unspecified, multicast, reserved and test addresses.
    Unusable,
}

impl AddressRules {
    /// Derives the rules from the URLs that the config names. A configured host name permits no
    /// scope by the addresses that it resolves to: the owner of the name chooses them, and may
    /// change them at any time.
    fn of(configured: &[Url]) -> Self {
        let mut allowed: BTreeSet<AddressScope> = configured.iter().filter_map(scope_of).collect();
        allowed.insert(AddressScope::Global);
        allowed.remove(&AddressScope::Unusable);
        Self {
            configured_hosts: configured
                .iter()
                .filter_map(|url| Some(url.host_str()?.to_owned()))
                .collect(),
            configured: configured.iter().map(Url::origin).collect(),
            proxies: proxies(|name| std::env::var(name).ok()),
            allowed,
        }
    }

    fn check(&self, url: &Url) -> Result<(), GuardedClientError> {
        let is_configured = self.configured.contains(&url.origin());
        if !url.has_host() || !url.username().is_empty() || url.password().is_some() {
            return Err(GuardedClientError::InvalidUrl(redacted(url)));
        }
        if url.scheme() != "https"
            && !is_configured
            && !(url.scheme() == "http" && is_loopback(url))
        {
            return Err(GuardedClientError::Insecure(redacted(url)));
        }
        if scope_of(url).is_some_and(|scope| !self.allowed.contains(&scope)) {
            return Err(GuardedClientError::Private(redacted(url)));
        }
        Ok(())
    }

    /// Returns whether a connection to this address of a host is permitted.
    fn permits(&self, host: &str, address: IpAddr) -> bool {
        self.proxies.contains(host)
            || self.configured_hosts.contains(host)
            || self.allowed.contains(&AddressScope::of(address))
    }
}

/// Returns the scope of a URL's host; `None` for a name other than that of the loopback interface.
fn scope_of(url: &Url) -> Option<AddressScope> {
    match url.host()? {
        Host::Ipv4(address) => Some(AddressScope::of(address.into())),
        Host::Ipv6(address) => Some(AddressScope::of(address.into())),
        Host::Domain(_) => is_loopback(url).then_some(AddressScope::Loopback),
    }
}

/// Returns the hosts of the proxies that the environment names.
fn proxies(variable: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let names = ["http_proxy", "https_proxy", "all_proxy"];
    let names = names.iter().flat_map(|name| [(*name).to_owned(), name.to_uppercase()]);
    let urls = names.filter_map(|name| variable(&name)).filter_map(|text| {
        let written = Url::parse(&text).ok().filter(Url::has_host);
        // Proxies are often written without a scheme.
        written.or_else(|| Url::parse(&format!("http://{text}")).ok())
    });
    urls.filter_map(|url| Some(url.host_str()?.to_owned())).collect()
}

impl AddressScope {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, ..] = address.octets();
        match (a, b) {
            (127, _) => Self::Loopback,
            (10, _) | (172, 16..=31) | (192, 168) | (100, 64..=127) => Self::PrivateNetwork,
            (169, 254) => Self::LinkLocal,
            (0 | 224.., _) | (198, 18..=19) => Self::Unusable,
            _ => Self::Global,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() {
            return Self::Loopback;
        }
        let words = address.segments();
        let embedded = |at: usize| {
            let [[one, two], [three, four]] = [words[at], words[at + 1]].map(u16::to_be_bytes);
            Self::of_v4(Ipv4Addr::new(one, two, three, four))
        };
        match words {
            // Addresses with an embedded IPv4 address: mapped, compatible and NAT64; then 6to4.
            [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(6),
            [0x2002, ..] => embedded(1),
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Self::PrivateNetwork,
            // The rest is global unicast, but for Teredo, whose embedded IPv4 address is
            // obfuscated.
            [0x2001, 0, ..] => Self::Unusable,
            [0x2000..=0x3fff, ..] => Self::Global,
            _ => Self::Unusable,
        }
    }
}

/// Resolves names, and drops addresses that are not permitted. The check belongs here, because a
/// name may resolve to another address at its next lookup.
struct FilteringResolver(Arc<AddressRules>);

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let mut permitted = resolve_name(host.clone()).await?;
            permitted.retain(|address| rules.permits(&host, address.ip()));
            if permitted.is_empty() {
                return Err(GuardedClientError::Private(host).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(configured: &str) -> AddressRules {
        AddressRules::of(&[Url::parse(configured).unwrap()])
    }

    fn may_ask(configured: &str, asked: &str) -> bool {
        rules(configured).check(&Url::parse(asked).unwrap()).is_ok()
    }

    #[test]
    fn public_server_cannot_reach_local_or_private_addresses() {
        let configured = "https://1.1.1.1/mcp";
        for asked in [
            "https://127.0.0.1/",
            "http://localhost:8080/",
            "https://a.localhost/",
            "https://10.1.2.3/",
            "https://172.16.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data/",
            "https://0.0.0.0/",
            "https://[::1]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:a00:1::]/",
            "https://0x7f.1/",
            "http://8.8.8.8/",
            "ftp://8.8.8.8/",
            "https://user:password@8.8.8.8/",
        ] {
            assert!(!may_ask(configured, asked), "{asked}");
        }
        assert!(may_ask(configured, "https://8.8.8.8/"));
        assert!(may_ask(configured, "https://[2606:4700::1111]/"));
    }

    #[test]
    fn configured_private_address_permits_its_scope() {
        assert!(may_ask("http://127.0.0.1:1/mcp", "http://localhost:2/"));
        assert!(!may_ask("http://127.0.0.1:1/mcp", "https://10.0.0.1/"));
        assert!(may_ask("https://10.0.0.1/mcp", "https://10.0.0.2/"));
        assert!(!may_ask("https://10.0.0.1/mcp", "http://127.0.0.1/"));
        // The configured origin itself is permitted as it is.
        assert!(may_ask("http://10.0.0.1/mcp", "http://10.0.0.1/token"));
        assert!(!may_ask("http://10.0.0.1/mcp", "http://10.0.0.2/token"));
    }

    #[test]
    fn name_that_resolves_to_a_private_address_is_refused() {
        let rules = rules("https://1.1.1.1/mcp");
        assert!(!rules.permits("innocent.example", "10.0.0.1".parse().unwrap()));
        assert!(rules.permits("innocent.example", "9.9.9.9".parse().unwrap()));
        // The configured name may resolve to a private address, which permits that to no other
        // name.
        let rules = self::rules("https://intranet.example/mcp");
        assert!(rules.permits("intranet.example", "10.0.0.1".parse().unwrap()));
        assert!(!rules.permits("other.example", "10.0.0.1".parse().unwrap()));
        let named = proxies(|name| (name == "HTTPS_PROXY").then(|| "proxy.lan:3128".to_owned()));
        assert!(named.contains("proxy.lan"));
    }

    #[test]
    fn error_in_a_success_response_becomes_status_400() {
        let answer = |body: &str| {
            let response = HttpResponse::new(body.as_bytes().to_vec());
            normalized(response).status().as_u16()
        };
        assert_eq!(answer(r#"{"error": "authorization_pending"}"#), 400);
        assert_eq!(answer(r#"{"access_token": "a", "error": ""}"#), 200);
        assert_eq!(answer("<html>"), 200);
    }
}
