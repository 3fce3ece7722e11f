//! A validated config, which later code never checks again.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use ipnet::IpNet;
use url::Url;

pub(crate) use super::file::{
    AlwaysLoad, Grant, Isolation, Listing, Loads, Pin, Protocol, Startup, Surface,
};
use super::{OAuth, Unavailable, tools::ToolRules};

#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// The servers in the order of the file, which is their order of precedence.
    pub servers: Vec<ServerConfig>,
    pub profiles: BTreeMap<String, Profile>,
}

/// A selection of servers and of their tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Names or globs of the tools of each server; none for all of them.
    pub servers: BTreeMap<String, Vec<String>>,
}

/// The settings for all servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub lists: ListSettings,
    pub loading: LoadSettings,
    /// The lifetime of a hybrid server's stored catalog; `None` for no expiry.
    pub catalog_ttl: Option<Duration>,
    /// Maximum time for which lists wait for eager and hybrid servers, counted from the start of
    /// the process.
    pub startup_wait: Duration,
    pub max_message_bytes: usize,
    /// The mark by which a dormouse detects an ancestor that serves the same config; `None` without
    /// a config.
    pub lineage: Option<String>,
    pub browser: Browser,
    pub wrapping: Wrapping,
    pub http: HttpSettings,
}

/// What hosts see in their lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSettings {
    pub surface: Surface,
    pub listing: Listing,
    pub always_load: AlwaysLoad,
    /// Maximum size of a composed description in bytes of UTF-8; `None` for no limit.
    pub description_budget: Option<usize>,
    /// True if there is a `use_readonly_tool` in addition to `use_tool`.
    pub split_calls: bool,
}

impl Default for ListSettings {
    fn default() -> Self {
        Self {
            surface: Surface::Discover,
            listing: Listing::Growing,
            always_load: AlwaysLoad::Meta,
            description_budget: Some(2048),
            split_calls: false,
        }
    }
}

/// How loads work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSettings {
    pub loads: Loads,
    /// True if loads outlive the process.
    pub remember_loads: bool,
    /// Maximum time for which a load's result waits until the host has fetched the new list.
    pub settle: Duration,
}

impl Default for LoadSettings {
    fn default() -> Self {
        let settle = Duration::from_millis(250);
        Self { loads: Loads::Process, remember_loads: false, settle }
    }
}

/// Whether dormouse serves a config, or wraps the one server of its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    None,
    /// The server's names have no prefix, and requests with unknown methods pass to it.
    Shared,
    /// As `Shared`, and its only host reads the server's lists itself: dormouse requests none.
    Exclusive,
}

/// When a dormouse that serves hosts opens a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browser {
    Never,
    /// When a server that is needed demands a login.
    WhenNeeded,
}

/// The settings for hosts over HTTP.
#[derive(Clone, PartialEq)]
pub struct HttpSettings {
    /// Any of these tokens opens everything; empty for none.
    pub auth_tokens: Vec<String>,
    /// Any of these tokens opens the API; empty for none.
    pub api_tokens: Vec<String>,
    /// In addition to loopback names and the listening address.
    pub allowed_hosts: Vec<String>,
    /// In addition to loopback origins.
    pub allowed_origins: Vec<String>,
    /// Reverse proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The lifetime of a session without an open stream or a request.
    pub session_timeout: Duration,
    /// The listening address, as written.
    pub listen: Option<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        let (auth_tokens, api_tokens, allowed_hosts, allowed_origins) = Default::default();
        // A host may stay open overnight; its state here is small.
        let session_timeout = Duration::from_hours(24);
        let (trusted_proxies, listen) = Default::default();
        Self {
            auth_tokens,
            api_tokens,
            allowed_hosts,
            allowed_origins,
            trusted_proxies,
            session_timeout,
            listen,
        }
    }
}

impl std::fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSettings")
            .field("auth_tokens", &self.auth_tokens.len())
            .field("api_tokens", &self.api_tokens.len())
            .field("allowed_hosts", &self.allowed_hosts)
            .field("allowed_origins", &self.allowed_origins)
            .field("trusted_proxies", &self.trusted_proxies)
            .field("session_timeout", &self.session_timeout)
            .field("listen", &self.listen)
            .finish()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lists: ListSettings::default(),
            loading: LoadSettings::default(),
            catalog_ttl: Some(Duration::from_hours(24)),
            startup_wait: Duration::from_secs(5),
            max_message_bytes: 64 * 1024 * 1024,
            lineage: None,
            browser: Browser::Never,
            wrapping: Wrapping::None,
            http: HttpSettings::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    /// Never blank.
    pub description: Option<String>,
    pub enabled: bool,
    pub startup: Startup,
    pub timeouts: Timeouts,
    pub protocol: Protocol,
    pub isolation: Isolation,
    pub offer: OfferRules,
    pub endpoint: EndpointSettings,
    /// The transport, or the reason that there is none.
    pub transport: Result<Transport, Unavailable>,
}

/// The server's own endpoints over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Any of these tokens opens the endpoints of this server alone.
    pub auth_tokens: Vec<String>,
    /// The form in which the server is shown there.
    pub surface: Surface,
}

impl Default for EndpointSettings {
    fn default() -> Self {
        Self { auth_tokens: Vec::new(), surface: Surface::Direct }
    }
}

/// What is offered of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferRules {
    pub tools: ToolRules,
    pub features: Features,
    pub pin: Pin,
    /// Maximum size of the text of a tool's result, in bytes; `None` for no limit.
    pub max_result_bytes: Option<usize>,
}

impl Default for OfferRules {
    fn default() -> Self {
        let (tools, features) = Default::default();
        Self { tools, features, pin: Pin::Warn, max_result_bytes: None }
    }
}

/// The parts of a server that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    pub tools: bool,
    /// Includes resource templates.
    pub resources: bool,
    pub prompts: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { tools: true, resources: true, prompts: true }
    }
}

/// The transport of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    Stdio(Launch),
    Http(Remote),
}

/// A server behind a URL.
#[derive(Clone, PartialEq)]
pub struct Remote {
    /// `http` or `https`.
    pub url: Url,
    /// Sent with every request; the names are valid, the values may be secret.
    pub headers: BTreeMap<String, String>,
    pub framing: Framing,
    /// The login settings; `None` if `headers` contain the authorization.
    pub oauth: Option<Box<OAuth>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Remote")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &headers)
            .field("framing", &self.framing)
            .field("oauth", &self.oauth)
            .finish()
    }
}

/// The framing of messages over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Streamable HTTP, or HTTP+SSE if the server refuses that.
    Either,
    Streamable,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// A child process that speaks MCP on its standard streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    pub inherit_env: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For spawn, handshake and catalog together.
    pub load: Duration,
    /// For silence in a tool call, which progress ends.
    pub call: Duration,
    /// For every other request.
    pub request: Duration,
    /// Time without use after which the server goes to sleep; `None` for never.
    pub idle: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_mins(2),
            call: Duration::from_mins(10),
            request: Duration::from_mins(1),
            idle: Some(Duration::from_mins(5)),
        }
    }
}

impl Config {
    /// Keeps only the servers and tools of a profile.
    pub fn choose(&mut self, profile: &Profile) {
        for server in &mut self.servers {
            match profile.servers.get(&server.name) {
                None => server.enabled = false,
                Some(tools) if tools.is_empty() => {}
                Some(tools) => server.offer.tools.restrict(tools),
            }
        }
    }
}

impl ServerConfig {
    /// Returns a server with defaults for everything but its transport.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            description: None,
            enabled: true,
            startup: Startup::Eager,
            timeouts: Timeouts::default(),
            protocol: Protocol::Auto,
            isolation: Isolation::Shared,
            offer: OfferRules::default(),
            endpoint: EndpointSettings::default(),
            transport: Ok(transport),
        }
    }

    /// Returns whether a connection that was made for `other` suits this config, because they
    /// differ only in what hosts see.
    pub fn has_same_connection(&self, other: &Self) -> bool {
        let shown_as_other = Self {
            description: other.description.clone(),
            offer: OfferRules {
                tools: other.offer.tools.clone(),
                max_result_bytes: other.offer.max_result_bytes,
                ..self.offer.clone()
            },
            endpoint: other.endpoint.clone(),
            ..self.clone()
        };
        shown_as_other == *other
    }
}
