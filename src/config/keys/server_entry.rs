//! The keys of a server's entry, next to the [`ServerSettings`](super::ServerSettings).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Features, Grant, KeyProblem, OAuthEntry, PolicyRule, Surface, ToolsetEntries, ToolsetEntry,
    key_class::{AT_ONCE, RECONNECTS},
    policy_rule, toolset_entry,
};
use crate::config::{
    header_names::{has_authorization, is_header_name},
    key_path::Step,
    tools::{ToolSwitch, ToolSwitches},
    urls::remote_url,
};

/// The default of `enabled`.
pub(in crate::config) const ENABLED: bool = true;
/// The default of `surface`.
pub(in crate::config) const SURFACE_OF_ENDPOINT: Surface = Surface::Direct;

/// One MCP server: a `command` that speaks MCP on its standard input and output, or a `url`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(in crate::config) struct ServerEntry {
    /// The purpose of the server, and the tasks for which to use it. A server with a description is
    /// not connected before it is requested.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub(in crate::config) description: Option<String>,
    /// `false` removes the server without deleting its entry.
    #[schemars(extend("default" = ENABLED, "x-class" = RECONNECTS))]
    pub(in crate::config) enabled: Option<bool>,
    /// The time at which the server is connected. Default: `lazy` with a description or toolsets,
    /// otherwise `eager`.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) startup: Option<Startup>,
    /// The tools that are shown and can be called, by name or glob; tools without a match are.
    #[schemars(with = "BTreeMap<String, ToolSwitch>", extend("x-class" = AT_ONCE))]
    pub(in crate::config) tools: ToolSwitches,
    /// Named parts of the tools, each of which is listed, searched and loaded as
    /// `<server>/<toolset>`.
    #[schemars(with = "BTreeMap<String, ToolsetEntry>", extend("x-class" = AT_ONCE))]
    pub(in crate::config) toolsets: ToolsetEntries,
    /// Rules for calls of the server's tools, in addition to those of the file: the strictest
    /// verdict holds.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub(in crate::config) policy: Vec<PolicyRule>,
    /// The parts of the server that are used.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) features: Features,
    /// The generation of MCP that is spoken with the server.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) protocol: Protocol,
    /// The transport. Default: `stdio` with a `command`; with a `url` streamable HTTP, or HTTP+SSE
    /// if the server supports only that.
    #[serde(rename = "type")]
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) kind: Option<TransportKind>,
    /// The address of a remote server.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) url: Option<String>,
    /// HTTP headers for every request to `url`.
    #[schemars(extend("x-class" = RECONNECTS.secret()))]
    pub(in crate::config) headers: BTreeMap<String, String>,
    /// Login settings, if the server demands a login and does not announce all that is needed: see
    /// docs/reference/oauth.md.
    #[serde(rename = "oauth")]
    #[schemars(extend("x-class" = RECONNECTS.secret()))]
    pub(in crate::config) oauth: Option<OAuthEntry>,
    /// Bearer tokens for hosts at `/servers/<name>/` over HTTP, in addition to the global ones.
    #[schemars(extend("x-class" = AT_ONCE.secret()))]
    pub(in crate::config) auth_tokens: Vec<String>,
    /// The form in which the server is shown at `/servers/<name>/`, unless the address gives one.
    #[schemars(extend("default" = SURFACE_OF_ENDPOINT, "x-class" = AT_ONCE))]
    pub(in crate::config) surface: Option<Surface>,
    /// `shared`: one instance serves all hosts. `session`: each session of a host has an instance
    /// of its own, which is connected at its first use even if `startup` is `eager`. `auto`: as
    /// `shared` over HTTP; with a daemon, hosts share only servers that are known to keep nothing
    /// for one host.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) isolation: Isolation,
    /// The login that requests to a server with a `url` carry. `service`: one login for all hosts,
    /// by `dormouse login`. `user`: a login of the person whose access token the host shows; hosts
    /// without one use that of the service. See docs/reference/people.md.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) login: LoginHolder,
    /// The program to start: a name on `PATH`, or a path.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) command: Option<String>,
    /// The arguments of the program.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) args: Vec<String>,
    /// Environment variables of the program.
    #[schemars(extend("x-class" = RECONNECTS.secret()))]
    pub(in crate::config) env: BTreeMap<String, EnvironmentValue>,
    /// The working directory of the program. A relative path starts from the directory of this
    /// file.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) cwd: Option<String>,
    /// `true` passes on the whole environment of dormouse instead of the few variables that
    /// programs need to run.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub(in crate::config) inherit_env: bool,
}

impl ServerEntry {
    /// Returns the problems of the entry of the server `name`. `written` is the entry before its
    /// variables were expanded; the expanded values are checked when the server's config is made of
    /// them.
    pub(in crate::config) fn problems(&self, name: &str, written: &Value) -> Vec<KeyProblem> {
        let mut problems = transport_problems(written);
        let is_remote = has(written, "url");
        match self.kind {
            Some(TransportKind::Stdio) if is_remote => {
                problems.push(at("type", "a server with a \"url\" cannot have the type \"stdio\""));
            }
            Some(TransportKind::Http | TransportKind::Sse)
                if !is_remote && has(written, "command") =>
            {
                problems.push(at("type", "a server of this type needs a \"url\""));
            }
            _ => {}
        }
        for name in self.headers.keys().filter(|name| !is_header_name(name)) {
            problems.push(at("headers", format!("{name:?} is not a valid header name")));
        }
        if self.oauth.is_some() && has_authorization(self.headers.keys()) {
            let message = "a server has either a header \"Authorization\" or \"oauth\"";
            problems.push(at("oauth", message));
        }
        if self.login == LoginHolder::User {
            problems.extend(self.problems_of_user_login(is_remote));
        }
        problems.extend(policy_rule::problems(&written["policy"], Some((name, &self.toolsets))));
        problems.extend(toolset_entry::problems(&self.toolsets, &written["toolsets"]));
        let oauth = self.oauth.iter().flat_map(|oauth| oauth.problems(&written["oauth"]));
        problems.extend(oauth.map(|(path, message)| {
            ([vec![Step::Key("oauth".to_owned())], path].concat(), message)
        }));
        problems
    }

    /// Returns why people cannot log in to the server.
    fn problems_of_user_login(&self, is_remote: bool) -> Option<KeyProblem> {
        let is_machine =
            self.oauth.as_ref().is_some_and(|oauth| oauth.grant == Grant::ClientCredentials);
        let why = if !is_remote {
            "a login is for servers with a \"url\""
        } else if has_authorization(self.headers.keys()) {
            "a server has either a header \"Authorization\" or a login"
        } else if is_machine {
            "\"grant\": \"client_credentials\" is the login of a machine, not of a user"
        } else {
            return None;
        };
        Some(at("login", why))
    }
}

/// Returns the problems of the keys that say how a server is reached.
fn transport_problems(written: &Value) -> Vec<KeyProblem> {
    let mut problems = Vec::new();
    let is_remote = has(written, "url");
    match (has(written, "command"), is_remote) {
        (false, false) => {
            problems.push((Vec::new(), "a server needs a \"command\" or a \"url\"".to_owned()));
        }
        (true, true) => {
            problems.push(at("url", "a server has either a \"command\" or a \"url\""));
        }
        _ => {}
    }
    let is_blank = |text: &str| text.trim().is_empty();
    for key in ["command", "url"] {
        if written[key].as_str().is_some_and(is_blank) {
            problems.push(at(key, format!("a server's {key:?} must not be blank")));
        }
    }
    if let Some(url) = written["url"].as_str().filter(|url| !url.contains("${") && !is_blank(url))
        && remote_url(url).is_none()
    {
        problems.push(at("url", "expected a URL that begins with http:// or https://"));
    }
    let misplaced: &[&str] =
        if is_remote { &["args", "env", "cwd", "inheritEnv"] } else { &["headers", "oauth"] };
    let other = if is_remote { "command" } else { "url" };
    for key in misplaced.iter().filter(|key| has(written, key) && !has(written, other)) {
        problems.push(at(key, format!("this key is for servers with a {other:?}")));
    }
    problems
}

fn has(written: &Value, key: &str) -> bool {
    !written[key].is_null()
}

fn at(key: &str, message: impl Into<String>) -> KeyProblem {
    (vec![Step::Key(key.to_owned())], message.into())
}

/// The time at which a server is connected (docs/design/lifecycle.md).
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

/// The hosts that share an instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// All hosts over HTTP; with a daemon, all hosts if that is known to be harmless.
    #[default]
    Auto,
    /// All hosts.
    Shared,
    /// Each session of a host has its own instance, which ends with the session.
    Session,
}

impl Isolation {
    /// Returns the name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Shared => "shared",
            Self::Session => "session",
        }
    }
}

/// The holder of the login that requests to a server carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoginHolder {
    /// All hosts share one login.
    #[default]
    Service,
    /// Each person has a login.
    User,
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
