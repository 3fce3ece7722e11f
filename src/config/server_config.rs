//! The validated config of one server, which later code never checks again.

use std::{collections::BTreeMap, path::PathBuf};

use url::Url;

use super::{
    OAuth, Unavailable,
    keys::{Features, Isolation, Protocol, ServerSettings, Startup, Surface},
    tools::ToolRules,
};

#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    /// Never blank.
    pub description: Option<String>,
    pub enabled: bool,
    pub startup: Startup,
    pub settings: ServerSettings,
    /// True if the idle timeout takes precedence over the command line.
    pub keeps_idle_timeout: bool,
    pub connecting: ConnectionRules,
    pub offer: OfferRules,
    pub endpoint: EndpointSettings,
    /// The transport, or the reason that there is none.
    pub transport: Result<Transport, Unavailable>,
}

/// The rules by which instances of a server are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRules {
    pub protocol: Protocol,
    pub isolation: Isolation,
}

/// The server's own endpoints over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Any of these tokens opens the endpoints of this server alone.
    pub auth_tokens: Vec<String>,
    /// The form in which the server is shown there.
    pub surface: Surface,
}

/// What is offered of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferRules {
    pub tools: ToolRules,
    pub features: Features,
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

impl OfferRules {
    /// Returns whether nothing is left out.
    pub fn allow_all(&self) -> bool {
        self.tools.allows_all() && self.features == Features::default()
    }

    /// Returns whether hosts see and may call a tool.
    pub fn allow_tool(&self, tool: &str) -> bool {
        self.features.tools && self.tools.allow(tool)
    }
}

impl ServerConfig {
    /// Returns whether the server is connected before a host uses it, so that lists wait for its
    /// first attempt. An instance of one host cannot be started before there is the host.
    pub fn has_first_attempt(&self) -> bool {
        self.enabled
            && self.startup != Startup::Lazy
            && self.connecting.isolation == Isolation::Shared
    }

    /// Returns whether a connection that was made for `other` suits this config, because they
    /// differ only in what hosts see.
    pub fn has_same_connection(&self, other: &Self) -> bool {
        let shown_as_other = Self {
            description: other.description.clone(),
            offer: OfferRules { tools: other.offer.tools.clone(), ..self.offer.clone() },
            settings: ServerSettings {
                max_result_bytes: other.settings.max_result_bytes,
                ..self.settings.clone()
            },
            keeps_idle_timeout: other.keeps_idle_timeout,
            endpoint: other.endpoint.clone(),
            ..self.clone()
        };
        shown_as_other == *other
    }
}
