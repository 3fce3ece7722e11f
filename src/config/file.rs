//! The config file as it is written. Its doc comments become the JSON schema and
//! `docs/reference/config.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{duration::DurationText, tools::ToolSwitches};

/// The config of dormouse: one MCP server in front of many.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct File {
    /// The address of the JSON schema of this file, for editors.
    #[serde(rename = "$schema")]
    pub(super) _schema: Option<String>,
    /// The form in which hosts see the servers: see docs/reference/surfaces.md.
    #[schemars(extend("default" = "discover"))]
    pub(super) surface: Option<Surface>,
    /// Whether lists follow the loads, or always stay the same bytes.
    #[schemars(extend("default" = "growing"))]
    pub(super) listing: Option<Listing>,
    /// The tools that ask the host to keep them in context: see docs/reference/surfaces.md.
    #[schemars(extend("default" = "meta"))]
    pub(super) always_load: Option<AlwaysLoad>,
    /// Maximum size of the description of `discover_tool`, and of `instructions`, in bytes of
    /// UTF-8; 0 for no limit.
    #[schemars(extend("default" = 2048))]
    pub(super) description_budget: Option<usize>,
    /// Adds `use_readonly_tool`, which calls only tools that are marked as read-only.
    #[schemars(extend("default" = false))]
    pub(super) split_calls: Option<bool>,
    /// Whether a load is for all hosts, or only for the session that requested it.
    #[schemars(extend("default" = "process"))]
    pub(super) loads: Option<Loads>,
    /// Load the servers again that were loaded when dormouse last ended.
    #[schemars(extend("default" = false))]
    pub(super) remember_loads: Option<bool>,
    /// How long the stored catalog of a hybrid server is used before it is read again; 0 for no
    /// limit.
    #[schemars(extend("default" = "24h"))]
    pub(super) catalog_ttl: Option<DurationText>,
    /// Maximum size of the text in a tool's result, in bytes; the rest can be read page by page. 0
    /// for no limit.
    #[schemars(extend("default" = 0))]
    pub(super) max_result_bytes: Option<usize>,
    /// The reaction to a tool whose definition has changed since it was first seen.
    #[schemars(extend("default" = "warn"))]
    pub(super) pin: Option<Pin>,
    /// Maximum time for which the result of a load waits until the host has fetched the new tool
    /// list.
    #[schemars(extend("default" = "250ms"))]
    pub(super) settle: Option<DurationText>,
    /// Maximum time for which lists wait for eager and hybrid servers, counted from the start of
    /// dormouse.
    #[schemars(extend("default" = "5s"))]
    pub(super) startup_wait: Option<DurationText>,
    /// Maximum size of a message, in bytes; a larger one fails its request.
    #[schemars(extend("default" = 67_108_864), range(min = 1024))]
    pub(super) max_message_bytes: Option<usize>,
    /// Time without use after which a lazy or hybrid server goes to sleep; 0 for never. For all
    /// servers.
    #[schemars(extend("default" = "5m"))]
    pub(super) idle_timeout: Option<DurationText>,
    /// Timeouts for all servers.
    pub(super) timeouts: TimeoutsEntry,
    /// Bearer tokens for hosts over HTTP, of which each must send one; only with `--http`. `${VAR}`
    /// is expanded.
    pub(super) auth_tokens: Vec<String>,
    /// Bearer tokens that open `/api/v1`, through which servers and their tools are changed;
    /// without any, it is closed. They are for operators; hosts do not need them.
    pub(super) api_tokens: Vec<String>,
    /// Names that HTTP requests may have in `Host`, in addition to the loopback names and the
    /// listening address.
    pub(super) allowed_hosts: Vec<String>,
    /// Web origins that may send HTTP requests, in addition to loopback ones, such as
    /// `https://example.com`.
    pub(super) allowed_origins: Vec<String>,
    /// Addresses or networks of reverse proxies in front of dormouse, such as `127.0.0.1` or
    /// `10.0.0.0/8`. Their `Forwarded` and `X-Forwarded-For` headers tell whether a user is at this
    /// machine and can be asked to log in.
    pub(super) trusted_proxies: Vec<String>,
    /// The address on which to serve hosts over HTTP, unless `--http` gives another.
    pub(super) listen: Option<String>,
    /// Selections of servers and tools; `--profile` names one.
    pub(super) profiles: BTreeMap<String, ProfileEntry>,
    /// Let dormouse open the browser when a server that is needed now demands a login.
    #[schemars(extend("default" = false))]
    pub(super) interactive: Option<bool>,
    /// Time without an open stream or a request after which the HTTP session of a legacy host ends.
    #[schemars(extend("default" = "24h"))]
    pub(super) session_timeout: Option<DurationText>,
    /// The servers by name. If two offer the same URI or prompt, the first one takes precedence.
    pub(super) mcp_servers: serde_json::Map<String, serde_json::Value>,
}

/// One MCP server: a `command` that speaks MCP on its standard input and output, or a `url`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct ServerEntry {
    /// What the server is for and when to use it. A server with a description is not connected
    /// before it is requested.
    pub(super) description: Option<String>,
    /// `false` removes the server without deleting its entry.
    #[schemars(extend("default" = true))]
    pub(super) enabled: Option<bool>,
    /// When the server is connected. Default: `lazy` with a description, otherwise `eager`.
    pub(super) startup: Option<Startup>,
    /// Time without use after which the server goes to sleep; 0 for never. Not for eager servers.
    pub(super) idle_timeout: Option<DurationText>,
    /// The tools that are shown and can be called, by name or glob; tools without a match are.
    #[serde(deserialize_with = "or_nothing")]
    #[schemars(with = "std::collections::BTreeMap<String, super::tools::ToolSwitch>")]
    pub(super) tools: ToolSwitches,
    /// The parts of the server that are used.
    pub(super) features: FeaturesEntry,
    /// The global `pin`, for this server.
    pub(super) pin: Option<Pin>,
    /// The global `maxResultBytes`, for this server.
    pub(super) max_result_bytes: Option<usize>,
    /// Timeouts for this server.
    pub(super) timeouts: TimeoutsEntry,
    /// The generation of MCP that is spoken with the server.
    #[schemars(extend("default" = "auto"))]
    pub(super) protocol: Option<Protocol>,
    /// The transport. Default: `stdio` with a `command`; with a `url` streamable HTTP, or HTTP+SSE
    /// if the server supports only that.
    #[serde(rename = "type")]
    pub(super) kind: Option<TransportKind>,
    /// The address of a remote server.
    pub(super) url: Option<String>,
    /// HTTP headers for every request to `url`.
    pub(super) headers: BTreeMap<String, String>,
    /// Login settings, if the server demands a login and does not announce all that is needed: see
    /// docs/reference/oauth.md.
    #[serde(rename = "oauth")]
    pub(super) oauth: Option<OAuthEntry>,
    /// Bearer tokens for hosts at `/servers/<name>/` over HTTP, in addition to the global ones.
    pub(super) auth_tokens: Vec<String>,
    /// The form in which the server is shown at `/servers/<name>/`, unless the address gives one.
    #[schemars(extend("default" = "direct"))]
    pub(super) surface: Option<Surface>,
    /// Whether all hosts share one instance of the server, or each session of a host has its own,
    /// which is connected at its first use even if `startup` is `eager`.
    #[schemars(extend("default" = "shared"))]
    pub(super) isolation: Option<Isolation>,
    /// The program to start: a name on `PATH`, or a path.
    pub(super) command: Option<String>,
    /// The arguments of the program.
    pub(super) args: Vec<String>,
    /// Environment variables of the program.
    pub(super) env: BTreeMap<String, EnvironmentValue>,
    /// The working directory of the program. A relative path starts from the directory of this
    /// file.
    pub(super) cwd: Option<String>,
    /// Pass on the whole environment of dormouse instead of the few variables that programs need to
    /// run.
    #[schemars(extend("default" = false))]
    pub(super) inherit_env: Option<bool>,
}

/// In YAML a key whose members have all been deleted has no value.
fn or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolSwitches, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The content of a profile.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct ProfileEntry {
    /// The servers of the profile, each with names or globs of its tools; without any, all its
    /// tools.
    pub(super) servers: BTreeMap<String, Option<Vec<String>>>,
}

/// How dormouse gets tokens for a server (OAuth 2.1).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct OAuthEntry {
    /// The client's id at the authorization server, or the https URL of a client metadata document,
    /// for authorization servers that support it. By default dormouse registers itself.
    pub(super) client_id: Option<String>,
    /// The client's secret: `${VAR}`, or `keychain:NAME` for the entry of that name in the system's
    /// keychain.
    pub(super) client_secret: Option<String>,
    /// A private key in PEM (PKCS #8) instead of a secret, for `client_credentials`.
    pub(super) private_key: Option<String>,
    /// The name of the private key at the authorization server (`kid`), if it needs one.
    pub(super) key_id: Option<String>,
    /// The scopes to request. Default: those that the server names.
    pub(super) scopes: Vec<String>,
    /// The redirect URI, for clients that are registered with one, such as
    /// `http://127.0.0.1:8090/callback`. Default: a free port of this machine.
    pub(super) redirect_uri: Option<String>,
    /// Who gets the token: a user who logs in, or this machine.
    #[schemars(extend("default" = "authorization_code"))]
    pub(super) grant: Option<Grant>,
    /// The URL of the authorization server, or of its metadata document. Default: the one that the
    /// server names.
    pub(super) auth_server: Option<String>,
}

/// The grant by which tokens are obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A user logs in: `dormouse login`.
    AuthorizationCode,
    /// The client has its own secret or key, and no user logs in.
    ClientCredentials,
}

impl Grant {
    /// Returns the name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
        }
    }
}

/// The parts of a server that are used.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct FeaturesEntry {
    /// The server's tools.
    #[schemars(extend("default" = true))]
    pub(super) tools: Option<bool>,
    /// The server's resources and resource templates.
    #[schemars(extend("default" = true))]
    pub(super) resources: Option<bool>,
    /// The server's prompts.
    #[schemars(extend("default" = true))]
    pub(super) prompts: Option<bool>,
}

/// Timeouts for a server.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct TimeoutsEntry {
    /// For a load: start, handshake and catalog together; 0 for no limit.
    #[schemars(extend("default" = "2m"))]
    pub(super) load: Option<DurationText>,
    /// For silence in a tool call, which each progress notification ends; 0 for no limit.
    #[schemars(extend("default" = "10m"))]
    pub(super) call: Option<DurationText>,
    /// For any other request; 0 for no limit.
    #[schemars(extend("default" = "1m"))]
    pub(super) request: Option<DurationText>,
}

/// The form in which hosts see the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// `discover_tool`, `use_tool` and `load_mcp`: the smallest context, and works with every host.
    Discover,
    /// `activate_<server>` for each lazy server, and the tools of every loaded one.
    Activate,
    /// `get_dynamic_tools` and `call_dynamic_tool`, with each server as a group.
    Groups,
    /// The tools of every server whose tools are known, and `load_mcp` for the others.
    Direct,
}

impl Surface {
    pub const ALL: [Self; 4] = [Self::Discover, Self::Activate, Self::Groups, Self::Direct];

    /// Returns the name in the config, on the command line and in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Activate => "activate",
            Self::Groups => "groups",
            Self::Direct => "direct",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.name() == name)
    }
}

/// Whether lists follow the loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// A loaded server moves from the list of servers to the list of tools, and hosts are notified.
    Growing,
    /// Lists depend only on the config; a load changes no list and sends no notification.
    Stable,
}

/// The tools that carry `_meta["anthropic/alwaysLoad"]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlwaysLoad {
    /// The discovery tools of dormouse.
    Meta,
    /// The discovery tools and the tools of loaded servers.
    Loaded,
    /// None.
    Off,
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

/// The scope of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Loads {
    /// All hosts see what one host loads.
    Process,
    /// Each session of a host sees only its own loads.
    Session,
}

/// The reaction to a tool that changes after it was first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// None.
    Off,
    /// The change is logged, and shown by `dormouse status`.
    Warn,
    /// The tool cannot be called until `dormouse approve` is run.
    Block,
}

/// The generation of MCP that is spoken with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The generation of the host that first uses the server, if the server supports it.
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

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TransportKind {
    /// A child process.
    Stdio,
    /// Streamable HTTP.
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// Who shares an instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// All hosts.
    Shared,
    /// Each session of a host has its own instance, which ends with the session.
    Session,
}

/// The value of an environment variable; numbers and booleans are used as they are written.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string, a number or a boolean")]
pub(super) enum EnvironmentValue {
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
