//! The keys of a server's entry, next to the [`ServerSettings`](super::ServerSettings).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Features, OAuthEntry, Surface};
use crate::config::tools::{ToolSwitch, ToolSwitches};

/// The default of `enabled`.
pub(in crate::config) const ENABLED: bool = true;
/// The default of `surface`.
pub(in crate::config) const SURFACE_OF_ENDPOINT: Surface = Surface::Direct;

/// One MCP server: a `command` that speaks MCP on its standard input and output, or a `url`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(in crate::config) struct ServerEntry {
    /// What the server is for and when to use it. A server with a description is not connected
    /// before it is requested.
    pub(in crate::config) description: Option<String>,
    /// `false` removes the server without deleting its entry.
    #[schemars(extend("default" = ENABLED))]
    pub(in crate::config) enabled: Option<bool>,
    /// When the server is connected. Default: `lazy` with a description, otherwise `eager`.
    pub(in crate::config) startup: Option<Startup>,
    /// The tools that are shown and can be called, by name or glob; tools without a match are.
    #[schemars(with = "BTreeMap<String, ToolSwitch>")]
    pub(in crate::config) tools: ToolSwitches,
    /// The parts of the server that are used.
    pub(in crate::config) features: Features,
    /// The generation of MCP that is spoken with the server.
    pub(in crate::config) protocol: Protocol,
    /// The transport. Default: `stdio` with a `command`; with a `url` streamable HTTP, or HTTP+SSE
    /// if the server supports only that.
    #[serde(rename = "type")]
    pub(in crate::config) kind: Option<TransportKind>,
    /// The address of a remote server.
    pub(in crate::config) url: Option<String>,
    /// HTTP headers for every request to `url`.
    pub(in crate::config) headers: BTreeMap<String, String>,
    /// Login settings, if the server demands a login and does not announce all that is needed: see
    /// docs/reference/oauth.md.
    #[serde(rename = "oauth")]
    pub(in crate::config) oauth: Option<OAuthEntry>,
    /// Bearer tokens for hosts at `/servers/<name>/` over HTTP, in addition to the global ones.
    pub(in crate::config) auth_tokens: Vec<String>,
    /// The form in which the server is shown at `/servers/<name>/`, unless the address gives one.
    #[schemars(extend("default" = SURFACE_OF_ENDPOINT))]
    pub(in crate::config) surface: Option<Surface>,
    /// Whether all hosts share one instance of the server, or each session of a host has its own,
    /// which is connected at its first use even if `startup` is `eager`.
    pub(in crate::config) isolation: Isolation,
    /// The program to start: a name on `PATH`, or a path.
    pub(in crate::config) command: Option<String>,
    /// The arguments of the program.
    pub(in crate::config) args: Vec<String>,
    /// Environment variables of the program.
    pub(in crate::config) env: BTreeMap<String, EnvironmentValue>,
    /// The working directory of the program. A relative path starts from the directory of this
    /// file.
    pub(in crate::config) cwd: Option<String>,
    /// Pass on the whole environment of dormouse instead of the few variables that programs need to
    /// run.
    pub(in crate::config) inherit_env: bool,
}

/// When a server is connected (docs/design/lifecycle.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Startup {
    /// In the background at the start, and kept connected.
    Eager,
    /// On first use.
    Lazy,
    /// Once to learn its catalog, then on use.
    Hybrid,
}

impl Startup {
    /// Returns the name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::Hybrid => "hybrid",
        }
    }
}

/// The generation of MCP that is spoken with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The generation of the host that first uses the server, if the server supports it.
    #[default]
    Auto,
    /// `initialize`: 2024-11-05 to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl Protocol {
    /// Returns the name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Who shares an instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// All hosts.
    #[default]
    Shared,
    /// Each session of a host has its own instance, which ends with the session.
    Session,
}

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::config) enum TransportKind {
    /// A child process.
    Stdio,
    /// Streamable HTTP.
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// The value of an environment variable; numbers and booleans are used as they are written.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string, a number or a boolean")]
pub(in crate::config) enum EnvironmentValue {
    Text(String),
    Number(serde_json::Number),
    Flag(bool),
}

impl std::fmt::Display for EnvironmentValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}
