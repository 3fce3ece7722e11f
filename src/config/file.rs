//! The canonical file as it is written. Its doc comments become the JSON schema and `docs/config.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{duration::DurationText, tools::ToolSwitches};

/// The config of dormouse: one MCP server in front of all of yours.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct File {
    /// Where the JSON schema of this file is; for editors.
    #[serde(rename = "$schema")]
    pub(super) _schema: Option<String>,
    /// The form in which the servers are shown to the host: see docs/surfaces.md.
    #[schemars(extend("default" = "discover"))]
    pub(super) surface: Option<Surface>,
    /// Whether lists follow what has been loaded, or always stay the same bytes.
    #[schemars(extend("default" = "growing"))]
    pub(super) listing: Option<Listing>,
    /// Which tools ask the host to be kept in context: see docs/surfaces.md.
    #[schemars(extend("default" = "meta"))]
    pub(super) always_load: Option<AlwaysLoad>,
    /// Bytes of UTF-8 that the description of `discover_tool`, and `instructions`, may take; 0 for no limit.
    #[schemars(extend("default" = 2048))]
    pub(super) description_budget: Option<usize>,
    /// Add `use_readonly_tool`, which calls only tools that say of themselves that they change nothing.
    #[schemars(extend("default" = false))]
    pub(super) split_calls: Option<bool>,
    /// Whether a load is for all hosts, or for the session that asked for it.
    #[schemars(extend("default" = "process"))]
    pub(super) loads: Option<Loads>,
    /// Load what was loaded before dormouse last ended.
    #[schemars(extend("default" = false))]
    pub(super) remember_loads: Option<bool>,
    /// How long the catalog of a hybrid server is taken from disk before it is learned anew; 0 for ever.
    #[schemars(extend("default" = "24h"))]
    pub(super) catalog_ttl: Option<DurationText>,
    /// Bytes of text that the result of a tool may hold; the rest can be read page by page. 0 for no limit.
    #[schemars(extend("default" = 0))]
    pub(super) max_result_bytes: Option<usize>,
    /// What happens to a tool whose definition is not what it was when it was first seen.
    #[schemars(extend("default" = "warn"))]
    pub(super) pin: Option<Pin>,
    /// How long the result of a load waits for the host to fetch the new tool list.
    #[schemars(extend("default" = "250ms"))]
    pub(super) settle: Option<DurationText>,
    /// How long lists wait for eager and hybrid servers that still start, counted from the start of dormouse.
    #[schemars(extend("default" = "5s"))]
    pub(super) startup_wait: Option<DurationText>,
    /// The largest message in bytes that is passed on; a larger one fails its request.
    #[schemars(extend("default" = 67_108_864), range(min = 1024))]
    pub(super) max_message_bytes: Option<usize>,
    /// After how long without use a lazy or hybrid server goes to sleep; 0 for never. For all servers.
    #[schemars(extend("default" = "5m"))]
    pub(super) idle_timeout: Option<DurationText>,
    /// Deadlines for all servers.
    pub(super) timeouts: TimeoutsEntry,
    /// Bearer tokens that HTTP hosts must send, one of them: with `--http` only. `${VAR}` is expanded.
    pub(super) auth_tokens: Vec<String>,
    /// Bearer tokens that open `/api/v1`, where servers and their tools are changed; none for no such thing. They are for
    /// operators: a host needs none of them.
    pub(super) api_tokens: Vec<String>,
    /// Names in `Host` that HTTP requests may be sent to, beside the loopback ones and the address itself.
    pub(super) allowed_hosts: Vec<String>,
    /// Web origins that may send HTTP requests, beside loopback ones; `https://example.com`, say.
    pub(super) allowed_origins: Vec<String>,
    /// Addresses or networks of reverse proxies in front of dormouse, whose `Forwarded` and `X-Forwarded-For` tell whether
    /// a user sits at this machine and can be asked to log in; `127.0.0.1` or `10.0.0.0/8`, say.
    pub(super) trusted_proxies: Vec<String>,
    /// Serve hosts over HTTP on this address, unless `--http` says another.
    pub(super) listen: Option<String>,
    /// Choices of servers and their tools, of which `--profile` names one.
    pub(super) profiles: BTreeMap<String, ProfileEntry>,
    /// Let dormouse open the browser by itself when a server wants a login that is needed now.
    #[schemars(extend("default" = false))]
    pub(super) interactive: Option<bool>,
    /// How long an HTTP session of a legacy host stays without an open stream or a request.
    #[schemars(extend("default" = "24h"))]
    pub(super) session_timeout: Option<DurationText>,
    /// The servers by name. Their order is their precedence where two offer the same URI or prompt.
    pub(super) mcp_servers: serde_json::Map<String, serde_json::Value>,
}

/// One MCP server: a `command` that speaks MCP on its standard input and output, or the `url` of one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct ServerEntry {
    /// What the server is for and when to use it. A server with a description stays asleep until it is asked for.
    pub(super) description: Option<String>,
    /// `false` takes the server out without deleting its entry.
    #[schemars(extend("default" = true))]
    pub(super) enabled: Option<bool>,
    /// When to connect. Default: `lazy` with a description, else `eager`.
    pub(super) startup: Option<Startup>,
    /// After how long without use the server goes to sleep; 0 for never. Not for eager ones.
    pub(super) idle_timeout: Option<DurationText>,
    /// Which tools are shown and can be called, by name or glob; what is not named is.
    #[serde(deserialize_with = "or_nothing")]
    #[schemars(with = "std::collections::BTreeMap<String, super::tools::ToolSwitch>")]
    pub(super) tools: ToolSwitches,
    /// Which parts of the server are used at all.
    pub(super) features: FeaturesEntry,
    /// As the general `pin`, for this server.
    pub(super) pin: Option<Pin>,
    /// As the general `maxResultBytes`, for this server.
    pub(super) max_result_bytes: Option<usize>,
    /// Deadlines for this server.
    pub(super) timeouts: TimeoutsEntry,
    /// Which generation of MCP to speak with the server.
    #[schemars(extend("default" = "auto"))]
    pub(super) protocol: Option<Protocol>,
    /// How the server is reached. Default: `stdio` with a `command`; with a `url` streamable HTTP, or HTTP+SSE
    /// where the server knows only that.
    #[serde(rename = "type")]
    pub(super) kind: Option<TransportKind>,
    /// The address of a server that runs elsewhere.
    pub(super) url: Option<String>,
    /// HTTP headers for every request to `url`.
    pub(super) headers: BTreeMap<String, String>,
    /// How to log in, where the server wants that and does not say all that is needed: see docs/oauth.md.
    #[serde(rename = "oauth")]
    pub(super) oauth: Option<OAuthEntry>,
    /// Bearer tokens that HTTP hosts may send for `/servers/<name>/`, beside the general ones.
    pub(super) auth_tokens: Vec<String>,
    /// The form in which it is shown at `/servers/<name>/`, where the address does not say.
    #[schemars(extend("default" = "direct"))]
    pub(super) surface: Option<Surface>,
    /// Whether all hosts use one instance of the server, or each host session has its own, which is connected with
    /// its first use even where `startup` is `eager`.
    #[schemars(extend("default" = "shared"))]
    pub(super) isolation: Option<Isolation>,
    /// The program to start, found on `PATH` or given as a path.
    pub(super) command: Option<String>,
    /// Its arguments.
    pub(super) args: Vec<String>,
    /// Environment variables to set for it.
    pub(super) env: BTreeMap<String, EnvironmentValue>,
    /// The directory to start it in. A relative one starts from the directory of this file.
    pub(super) cwd: Option<String>,
    /// Pass the whole environment of dormouse on, instead of the few variables that programs need to run.
    #[schemars(extend("default" = false))]
    pub(super) inherit_env: Option<bool>,
}

/// In YAML a key whose members have all been deleted has no value.
fn or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolSwitches, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What a profile shows.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct ProfileEntry {
    /// Its servers, each with the names or globs of its tools; with none of them, all its tools.
    pub(super) servers: BTreeMap<String, Option<Vec<String>>>,
}

/// How to get tokens for a server (OAuth 2.1).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct OAuthEntry {
    /// The client, as the authorization server knows it; or the https URL of a client metadata document, which is used
    /// where the authorization server reads such. By default dormouse registers itself.
    pub(super) client_id: Option<String>,
    /// The client's secret: `${VAR}`, or `keychain:NAME` for what the system's keychain has under that name.
    pub(super) client_secret: Option<String>,
    /// A private key in PEM (PKCS #8) in place of a secret, for `client_credentials`.
    pub(super) private_key: Option<String>,
    /// The name by which the authorization server knows the private key (`kid`), where it wants one.
    pub(super) key_id: Option<String>,
    /// The scopes to ask for. Default: those that the server names.
    pub(super) scopes: Vec<String>,
    /// Where the browser comes back to, for clients that are registered with it: `http://127.0.0.1:8090/callback`, say.
    /// Default: a free port of this machine.
    pub(super) redirect_uri: Option<String>,
    /// Who gets the token: a person who logs in, or the machine by itself.
    #[schemars(extend("default" = "authorization_code"))]
    pub(super) grant: Option<Grant>,
    /// The authorization server's URL, or that of its metadata document. Default: the one that the server names.
    pub(super) auth_server: Option<String>,
}

/// How tokens are got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person logs in: `dormouse login`.
    AuthorizationCode,
    /// The client has a secret or a key of its own, and nobody logs in.
    ClientCredentials,
}

impl Grant {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
        }
    }
}

/// Which parts of a server are used.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct FeaturesEntry {
    /// Its tools.
    #[schemars(extend("default" = true))]
    pub(super) tools: Option<bool>,
    /// Its resources and resource templates.
    #[schemars(extend("default" = true))]
    pub(super) resources: Option<bool>,
    /// Its prompts.
    #[schemars(extend("default" = true))]
    pub(super) prompts: Option<bool>,
}

/// How long to wait for a server.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(super) struct TimeoutsEntry {
    /// For a load: start, handshake and catalog together; 0 for never.
    #[schemars(extend("default" = "2m"))]
    pub(super) load: Option<DurationText>,
    /// Of silence in a tool call; each progress notification starts it anew; 0 for never.
    #[schemars(extend("default" = "10m"))]
    pub(super) call: Option<DurationText>,
    /// For any other request; 0 for never.
    #[schemars(extend("default" = "1m"))]
    pub(super) request: Option<DurationText>,
}

/// The form in which the servers are shown to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// `discover_tool`, `use_tool` and `load_mcp`: the smallest context, and works on every host.
    Discover,
    /// `activate_<server>` for each lazy server, and the tools of every loaded one.
    Activate,
    /// `get_dynamic_tools` and `call_dynamic_tool`, with each server as a group.
    Groups,
    /// The tools of every server whose tools are known, and `load_mcp` for the others.
    Direct,
}

/// Whether what the host sees follows the loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// A loaded server moves from the list of servers to the list of tools, and hosts are told.
    Growing,
    /// Lists depend on the config only; a load changes and notifies nothing.
    Stable,
}

/// Which tools carry `_meta["anthropic/alwaysLoad"]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlwaysLoad {
    /// The discovery tools of dormouse.
    Meta,
    /// These, and the tools that a load brought.
    Loaded,
    /// None.
    Off,
}

/// When a server is connected (DESIGN.md section 2, Start policy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Startup {
    /// In the background at start, and kept connected.
    Eager,
    /// On first use.
    Lazy,
    /// Once to learn what it has, then on use.
    Hybrid,
}

impl Startup {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Lazy => "lazy",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Whose a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Loads {
    /// What one host loads, all see.
    Process,
    /// Each host session sees what it has loaded itself.
    Session,
}

/// What happens to a tool that changes after it was first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// Nothing.
    Off,
    /// It is logged, and shown by `dormouse status`.
    Warn,
    /// The tool cannot be called until `dormouse approve` is said.
    Block,
}

/// Which generation of MCP to speak with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// That of the host that first uses the server, if the server speaks it.
    Auto,
    /// `initialize`: 2024-11-05 to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl Protocol {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// How a server is reached.
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
    /// Nobody: each host session has its own, which ends with it.
    Session,
}

/// The value of an environment variable; numbers and booleans are taken as they are written.
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
