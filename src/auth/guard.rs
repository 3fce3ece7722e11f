//! Who may be asked for metadata and tokens. A server names its authorization server, and so could have us ask anybody
//! for anything: a service of this machine, say, or of its network (MCP, Security Best Practices, SSRF).

use std::{
    collections::BTreeSet,
    error::Error as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
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

use super::LoginError;
use crate::{
    base::Lock,
    config::is_loopback,
    wire::{http_client_builder, sse::root_cause},
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECTING: Duration = Duration::from_secs(10);
/// Of the body of an answer.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Makes requests to those who may be asked. Cheap to clone.
#[derive(Clone)]
pub(super) struct Guard {
    client: Client,
    rules: Arc<Rules>,
    /// Why rmcp's last request has failed, which it does not hand on.
    failure: Arc<Lock<Option<String>>>,
}

/// Why something is not asked, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error("{0} is not asked: only https is, but for this machine itself")]
    Insecure(String),
    #[error(
        "{0} is not asked: it is an address of a private network, or of this machine; an authorization server that is meant to be there is named as \"authServer\""
    )]
    Private(String),
    #[error("{0} is not asked: there are a name and a password in it, or no host")]
    Odd(String),
    #[error("the answer of {0} has more than {MAX_BODY_BYTES} bytes")]
    TooLarge(String),
    #[error("cannot make HTTP requests: {0}")]
    Client(String),
    #[error("{to} cannot be asked: {cause}")]
    Failed { to: String, cause: String },
}

impl Guard {
    /// `own`: the URLs that the config itself names, which may be anywhere, and where others may be too.
    pub(super) fn new(own: impl IntoIterator<Item = Url>) -> Result<Self, GuardError> {
        let rules = Arc::new(Rules::of(&own.into_iter().collect::<Vec<Url>>()));
        let builder = || {
            http_client_builder()
                .user_agent(concat!("dormouse/", env!("CARGO_PKG_VERSION")))
                // Whoever asks judges where a redirect leads.
                .redirect(redirect::Policy::none())
                .timeout(REQUEST_TIMEOUT)
                .connect_timeout(CONNECTING)
                .dns_resolver(Filter(rules.clone()))
        };
        // A system without certificates can still reach what needs none.
        let client = builder().build().or_else(|_| builder().tls_certs_only(Vec::new()).build());
        let client = client.map_err(|error| GuardError::Client(cause_of(&error)))?;
        Ok(Self { client, rules, failure: Arc::default() })
    }

    /// Whether this may be asked at all, as far as its name tells.
    pub(super) fn check(&self, url: &Url) -> Result<(), GuardError> {
        self.rules.check(url)
    }

    /// Makes one request, and follows no redirect.
    pub(super) async fn execute(&self, request: HttpRequest) -> Result<HttpResponse, GuardError> {
        let (url, response) = self.send(request).await?;
        let mut answer = oauth2::http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let (mut body, mut chunks) = (Vec::new(), response.bytes_stream());
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| failed(&url, &error))?);
            if body.len() > MAX_BODY_BYTES {
                return Err(GuardError::TooLarge(shown(&url)));
            }
        }
        answer.body(body).map_err(|error| GuardError::Client(error.to_string()))
    }

    /// The same for those who need no body, which may have no end.
    pub(super) async fn head_of(
        &self,
        request: HttpRequest,
    ) -> Result<(StatusCode, HeaderMap), GuardError> {
        let (_, response) = self.send(request).await?;
        Ok((response.status(), response.headers().clone()))
    }

    async fn send(&self, request: HttpRequest) -> Result<(Url, Response), GuardError> {
        let request =
            Request::try_from(request).map_err(|error| GuardError::Client(cause_of(&error)))?;
        let url = request.url().clone();
        self.check(&url)?;
        let response = self.client.execute(request).await.map_err(|error| failed(&url, &error))?;
        Ok((url, response))
    }

    async fn ask_for_token(&self, request: HttpRequest) -> Result<HttpResponse, GuardError> {
        let to = shown_uri(&request);
        let response = self.execute(request).await?;
        match response.status().as_u16() {
            // It may answer otherwise later, whatever it says now.
            status @ (408 | 429 | 500..) => {
                Err(GuardError::Failed { to, cause: format!("HTTP status {status}") })
            }
            _ => Ok(as_usual(response)),
        }
    }

    /// Why rmcp's last request has failed, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().take()
    }

    /// Reads a JSON document; `None` where there is none.
    pub(super) async fn get_json(
        &self,
        url: &Url,
    ) -> Result<Option<serde_json::Value>, GuardError> {
        let request = oauth2::http::Request::get(url.as_str()).header("accept", "application/json");
        let request = request.body(Vec::new());
        let request = request.map_err(|error| GuardError::Client(error.to_string()))?;
        let response = self.execute(request).await?;
        let document = response.status().is_success().then(|| response.into_body());
        Ok(document.and_then(|body| serde_json::from_slice(&body).ok()))
    }
}

impl OAuthHttpClient for Guard {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let is_for_token = request.request.method() == Method::POST;
            let answered = if is_for_token {
                self.ask_for_token(request.request).await
            } else {
                Guard::execute(self, request.request).await
            };
            *self.failure.lock() = answered.as_ref().err().map(ToString::to_string);
            Ok(answered?)
        })
    }
}

impl<'c> AsyncHttpClient<'c> for Guard {
    type Error = GuardError;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<HttpResponse, GuardError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.ask_for_token(request))
    }
}

/// An answer about a token as RFC 6749 has it. Some, GitHub among them, say in what looks like a success that they give
/// none; others write the seconds of `expires_in` as a text or a fraction.
fn as_usual(mut response: HttpResponse) -> HttpResponse {
    if response.status() != StatusCode::OK {
        return response;
    }
    let Ok(mut said) = serde_json::from_slice::<serde_json::Value>(response.body()) else {
        return response;
    };
    if said["error"].is_string() && said["access_token"].is_null() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    }
    let life = match &said["expires_in"] {
        serde_json::Value::Null => return response,
        serde_json::Value::Number(number) if number.is_u64() => return response,
        serde_json::Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    // One that is none says nothing.
    let life = life.and_then(|life| Duration::try_from_secs_f64(life).ok());
    said["expires_in"] = life.map(|life| life.as_secs()).into();
    *response.body_mut() = said.to_string().into_bytes();
    response
}

fn shown_uri(request: &HttpRequest) -> String {
    let url = Url::parse(&request.uri().to_string());
    url.map_or_else(|_| "it".to_owned(), |url| shown(&url))
}

fn failed(to: &Url, error: &reqwest::Error) -> GuardError {
    GuardError::Failed { to: shown(to), cause: cause_of(error) }
}

/// Longer addresses are of nobody who means well.
const MAX_URL_BYTES: usize = 16 * 1024;

/// An address that a browser may be sent to: a web page, and nothing that a shell or another program would read
/// otherwise (MCP, Security Best Practices, authorization URLs).
pub(super) fn judged(address: &str, guard: &Guard) -> Result<Url, LoginError> {
    let bad = |why: String| LoginError::BadAddress(why);
    let url = Url::parse(address).map_err(|_| bad("it is no URL".to_owned()))?;
    if address.len() > MAX_URL_BYTES {
        return Err(bad("it is too long".to_owned()));
    }
    guard.check(&url).map_err(|error| bad(error.to_string()))?;
    Ok(url)
}

/// Of a URL, what may be shown: its query may hold anything.
pub(super) fn shown(url: &Url) -> String {
    if !url.has_host() {
        return format!("{}:…", url.scheme());
    }
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The whole would name the URL with its query.
fn cause_of(error: &reqwest::Error) -> String {
    if error.source().is_none() { "no answer".to_owned() } else { root_cause(error) }
}

/// Who may be asked.
#[derive(Debug)]
struct Rules {
    /// Where the config itself leads to.
    own: Vec<Origin>,
    own_hosts: BTreeSet<String>,
    /// Through which everything goes, if it does.
    proxies: BTreeSet<String>,
    allowed: BTreeSet<Reach>,
}

/// From where an address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Everywhere,
    Network,
    Link,
    Machine,
    /// It is nobody's, or everybody's.
    Nowhere,
}

impl Rules {
    /// What a name leads to allows nothing: whoever has the name decides that, and may say something else the next time.
    fn of(own: &[Url]) -> Self {
        let mut allowed: BTreeSet<Reach> = own.iter().filter_map(reach).collect();
        allowed.insert(Reach::Everywhere);
        allowed.remove(&Reach::Nowhere);
        Self {
            own_hosts: own.iter().filter_map(|url| Some(url.host_str()?.to_owned())).collect(),
            own: own.iter().map(Url::origin).collect(),
            proxies: proxies(|name| std::env::var(name).ok()),
            allowed,
        }
    }

    fn check(&self, url: &Url) -> Result<(), GuardError> {
        let is_own = self.own.contains(&url.origin());
        if !url.has_host() || !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Odd(shown(url)));
        }
        if url.scheme() != "https" && !is_own && !(url.scheme() == "http" && is_loopback(url)) {
            return Err(GuardError::Insecure(shown(url)));
        }
        if reach(url).is_some_and(|reach| !self.allowed.contains(&reach)) {
            return Err(GuardError::Private(shown(url)));
        }
        Ok(())
    }

    /// Which addresses of a host may be connected to.
    fn permits(&self, host: &str, address: IpAddr) -> bool {
        self.proxies.contains(host)
            || self.own_hosts.contains(host)
            || self.allowed.contains(&Reach::of(address))
    }
}

/// From where the host of a URL can be reached, as far as its name tells.
fn reach(url: &Url) -> Option<Reach> {
    match url.host()? {
        Host::Ipv4(address) => Some(Reach::of(address.into())),
        Host::Ipv6(address) => Some(Reach::of(address.into())),
        Host::Domain(_) => is_loopback(url).then_some(Reach::Machine),
    }
}

/// The hosts of the proxies that the environment names.
fn proxies(variable: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let names = ["http_proxy", "https_proxy", "all_proxy"];
    let names = names.iter().flat_map(|name| [(*name).to_owned(), name.to_uppercase()]);
    let urls = names.filter_map(|name| variable(&name)).filter_map(|text| {
        let written = Url::parse(&text).ok().filter(Url::has_host);
        // Many leave the scheme out.
        written.or_else(|| Url::parse(&format!("http://{text}")).ok())
    });
    urls.filter_map(|url| Some(url.host_str()?.to_owned())).collect()
}

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, ..] = address.octets();
        match (a, b) {
            (127, _) => Self::Machine,
            (10, _) | (172, 16..=31) | (192, 168) | (100, 64..=127) => Self::Network,
            (169, 254) => Self::Link,
            (0 | 224.., _) | (198, 18..=19) => Self::Nowhere,
            _ => Self::Everywhere,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() {
            return Self::Machine;
        }
        let words = address.segments();
        let embedded = |at: usize| {
            let [[one, two], [three, four]] = [words[at], words[at + 1]].map(u16::to_be_bytes);
            Self::of_v4(Ipv4Addr::new(one, two, three, four))
        };
        match words {
            // An IPv4 address in other words: mapped, compatible, NAT64; and 6to4.
            [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(6),
            [0x2002, ..] => embedded(1),
            [0xfe80..=0xfebf, ..] => Self::Link,
            [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Self::Network,
            // Global unicast, but for Teredo, which has an IPv4 address in it that is not plain.
            [0x2001, 0, ..] => Self::Nowhere,
            [0x2000..=0x3fff, ..] => Self::Everywhere,
            _ => Self::Nowhere,
        }
    }
}

/// Looks names up, and leaves out what may not be connected to. Here and not before: a name may lead elsewhere when it is
/// looked up again.
struct Filter(Arc<Rules>);

impl Resolve for Filter {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let permitted: Vec<SocketAddr> =
                found.filter(|address| rules.permits(&host, address.ip())).collect();
            if permitted.is_empty() {
                return Err(GuardError::Private(host).into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(own: &str) -> Rules {
        Rules::of(&[Url::parse(own).unwrap()])
    }

    fn may_ask(own: &str, asked: &str) -> bool {
        rules(own).check(&Url::parse(asked).unwrap()).is_ok()
    }

    #[test]
    fn a_server_elsewhere_cannot_have_us_ask_this_machine_or_its_network() {
        let own = "https://1.1.1.1/mcp";
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
            assert!(!may_ask(own, asked), "{asked}");
        }
        assert!(may_ask(own, "https://8.8.8.8/"));
        assert!(may_ask(own, "https://[2606:4700::1111]/"));
    }

    #[test]
    fn where_the_config_itself_leads_others_may_be_too() {
        assert!(may_ask("http://127.0.0.1:1/mcp", "http://localhost:2/"));
        assert!(!may_ask("http://127.0.0.1:1/mcp", "https://10.0.0.1/"));
        assert!(may_ask("https://10.0.0.1/mcp", "https://10.0.0.2/"));
        assert!(!may_ask("https://10.0.0.1/mcp", "http://127.0.0.1/"));
        // Its own origin is as the config has it.
        assert!(may_ask("http://10.0.0.1/mcp", "http://10.0.0.1/token"));
        assert!(!may_ask("http://10.0.0.1/mcp", "http://10.0.0.2/token"));
    }

    #[test]
    fn a_name_that_leads_into_the_network_is_not_followed() {
        let rules = rules("https://1.1.1.1/mcp");
        assert!(!rules.permits("innocent.example", "10.0.0.1".parse().unwrap()));
        assert!(rules.permits("innocent.example", "9.9.9.9".parse().unwrap()));
        // The server's own name may lead there, which allows it to nobody else.
        let rules = self::rules("https://intranet.example/mcp");
        assert!(rules.permits("intranet.example", "10.0.0.1".parse().unwrap()));
        assert!(!rules.permits("other.example", "10.0.0.1".parse().unwrap()));
        let named = proxies(|name| (name == "HTTPS_PROXY").then(|| "proxy.lan:3128".to_owned()));
        assert!(named.contains("proxy.lan"));
    }

    #[test]
    fn an_error_that_looks_like_a_success_is_one() {
        let answer = |body: &str| {
            let response = HttpResponse::new(body.as_bytes().to_vec());
            as_usual(response).status().as_u16()
        };
        assert_eq!(answer(r#"{"error": "authorization_pending"}"#), 400);
        assert_eq!(answer(r#"{"access_token": "a", "error": ""}"#), 200);
        assert_eq!(answer("<html>"), 200);
    }
}
