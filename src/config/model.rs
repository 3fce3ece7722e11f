//! A validated config. Code further in never checks again.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;
use url::Url;

pub use super::file::{
    AlwaysLoad, Grant, Isolation, Listing, Loads, Pin, Protocol, Startup, Surface,
};
use super::{Dialect, OAuth, Problem, tools::ToolRules};

#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// In the order of the file, which is the order of precedence between servers.
    pub servers: Vec<ServerConfig>,
    pub profiles: BTreeMap<String, Profile>,
    /// The system that the file was written for, where it is another than this.
    pub dialect: Option<Dialect>,
    /// Servers of such a file whose own idle timeout beats that of the command line.
    pub own_idle_timeouts: BTreeSet<String>,
    /// What of such a file is not done, or otherwise.
    pub warnings: Vec<Problem>,
}

/// A choice of servers and of their tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Names or globs of the tools of each server; none for all of them.
    pub servers: BTreeMap<String, Vec<String>>,
}

/// What holds for all servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub surface: Surface,
    pub listing: Listing,
    pub always_load: AlwaysLoad,
    /// Bytes of UTF-8 that a composed description may take; `None` for no limit.
    pub description_budget: Option<usize>,
    /// Whether there is a `use_readonly_tool` beside `use_tool`.
    pub split_calls: bool,
    pub loads: Loads,
    /// Whether loads outlive the process.
    pub remember_loads: bool,
    /// How long a hybrid server's catalog is taken from disk; `None` for ever.
    pub catalog_ttl: Option<Duration>,
    /// How long a load's result waits for the host to fetch the new list.
    pub settle: Duration,
    /// How long lists wait for eager and hybrid servers, counted from the start of the process.
    pub startup_wait: Duration,
    pub max_message_bytes: usize,
    /// What tells a dormouse that one of its ancestors serves the same config; none without a config.
    pub lineage: Option<String>,
    pub browser: Browser,
    pub wrapping: Wrapping,
    pub http: HttpSettings,
}

/// Whether dormouse serves a config, or wraps the one server of its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    None,
    /// The server's names are bare, and requests with unknown methods pass to it.
    Shared,
    /// As `Shared`, and its one host reads the server's lists itself: dormouse asks for none of its own.
    Exclusive,
}

/// Whether a browser is opened by a dormouse that serves hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browser {
    Never,
    /// When a server that is needed wants a login.
    WhenNeeded,
}

/// How hosts may connect over HTTP.
#[derive(Clone, PartialEq)]
pub struct HttpSettings {
    /// Any of them opens everything; empty for none.
    pub auth_tokens: Vec<String>,
    /// Any of them opens the API; empty for none.
    pub api_tokens: Vec<String>,
    /// Beside loopback names and the address that is listened on.
    pub allowed_hosts: Vec<String>,
    /// Beside loopback origins.
    pub allowed_origins: Vec<String>,
    /// Reverse proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// How long a session lives without an open stream or a request.
    pub session_timeout: Duration,
    /// The address to listen on, as it is written.
    pub listen: Option<String>,
    /// What is at `/servers/<name>/` is at `/<name>/` too.
    pub servers_at_root: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        let (auth_tokens, api_tokens, allowed_hosts, allowed_origins) = Default::default();
        // A host may be left open over night; what it holds here is small.
        let session_timeout = Duration::from_hours(24);
        let (trusted_proxies, listen, servers_at_root) = Default::default();
        Self {
            auth_tokens,
            api_tokens,
            allowed_hosts,
            allowed_origins,
            trusted_proxies,
            session_timeout,
            listen,
            servers_at_root,
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
            .field("servers_at_root", &self.servers_at_root)
            .finish()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            surface: Surface::Discover,
            listing: Listing::Growing,
            always_load: AlwaysLoad::Meta,
            description_budget: Some(2048),
            split_calls: false,
            loads: Loads::Process,
            remember_loads: false,
            catalog_ttl: Some(Duration::from_hours(24)),
            settle: Duration::from_millis(250),
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
    /// `None` means that the server is never put to sleep.
    pub idle_timeout: Option<Duration>,
    pub timeouts: Timeouts,
    pub protocol: Protocol,
    pub isolation: Isolation,
    pub tools: ToolRules,
    pub features: Features,
    pub pin: Pin,
    /// Bytes of text that a tool's result may hold; `None` for no limit.
    pub max_result_bytes: Option<usize>,
    /// Any of them opens the endpoints of this server alone.
    pub auth_tokens: Vec<String>,
    /// The form in which it is shown at its own endpoints.
    pub surface: Surface,
    /// How to reach it, or why that cannot be.
    pub transport: Result<Transport, Unavailable>,
}

/// Which parts of a server are used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    pub tools: bool,
    /// And resource templates.
    pub resources: bool,
    pub prompts: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { tools: true, resources: true, prompts: true }
    }
}

/// How a server is reached.
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
    /// How to log in where the server wants that; `None` where `headers` say all there is to say.
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

/// How messages travel over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Streamable HTTP, or HTTP+SSE where the server refuses that.
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

/// Why a server's entry cannot be used, though the file is valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unavailable {
    #[error("undefined: {}; set what is missing in the environment or in .env", .0.join(", "))]
    Undefined(Vec<String>),
    #[error("its command is blank once its variables are expanded")]
    BlankCommand,
    #[error(
        "its url is none once its variables are expanded; it must begin with http:// or https://"
    )]
    BadUrl,
    #[error("the value of its header {0:?} cannot be sent once its variables are expanded")]
    BadHeader(String),
    #[error("the {0:?} of its \"oauth\" cannot be used once its variables are expanded")]
    BadOAuth(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For spawn, handshake and catalog together.
    pub load: Duration,
    /// Of silence in a tool call; progress starts it anew.
    pub call: Duration,
    /// For every other request.
    pub request: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_mins(2),
            call: Duration::from_mins(10),
            request: Duration::from_mins(1),
        }
    }
}

impl Config {
    /// Leaves only what a profile shows.
    pub fn choose(&mut self, profile: &Profile) {
        for server in &mut self.servers {
            match profile.servers.get(&server.name) {
                None => server.enabled = false,
                Some(tools) if tools.is_empty() => {}
                Some(tools) => server.tools.restrict(tools),
            }
        }
    }
}

impl ServerConfig {
    /// A server with nothing said of it but how to reach it.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            description: None,
            enabled: true,
            startup: Startup::Eager,
            idle_timeout: Some(Self::IDLE_TIMEOUT),
            timeouts: Timeouts::default(),
            protocol: Protocol::Auto,
            isolation: Isolation::Shared,
            tools: ToolRules::default(),
            features: Features::default(),
            pin: Pin::Warn,
            max_result_bytes: None,
            auth_tokens: Vec::new(),
            surface: Surface::Direct,
            transport: Ok(transport),
        }
    }

    /// Whether a connection that was made for `other` is one for this: what differs is only what hosts see of the
    /// server.
    pub fn has_same_connection(&self, other: &Self) -> bool {
        let shown_as_other = Self {
            description: other.description.clone(),
            tools: other.tools.clone(),
            max_result_bytes: other.max_result_bytes,
            auth_tokens: other.auth_tokens.clone(),
            surface: other.surface,
            ..self.clone()
        };
        shown_as_other == *other
    }

    pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
}
