//! The config of a server, made of its entry.

use std::{path::Path, sync::Arc};

use super::{
    LaunchContext, OfferExtent, PolicyRule, ServerSettings, Startup, ToolRules, Toolset, Transport,
    Unavailable,
    keys::{
        ENABLED, Features, Isolation, KeyGroup as _, LoginHolder, Protocol, SURFACE_OF_ENDPOINT,
        ServerEntry, Surface,
    },
    transport::transport,
};

#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    /// Never blank.
    pub description: Option<String>,
    pub enabled: bool,
    pub startup: Startup,
    pub settings: ServerSettings,
    pub connecting: ConnectionRules,
    pub offer: OfferRules,
    /// The rules for calls of the server's tools.
    pub(crate) policy: Vec<PolicyRule>,
    pub endpoint: EndpointSettings,
    /// The transport, or the reason that there is none.
    pub transport: Result<Transport, Unavailable>,
}

/// The rules by which instances of a server are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRules {
    pub protocol: Protocol,
    pub isolation: Isolation,
    pub login: LoginHolder,
}

impl ConnectionRules {
    /// Returns whether hosts, or their people, have instances of their own.
    pub fn has_own_instances(self) -> bool {
        self.isolation == Isolation::Session || self.login == LoginHolder::User
    }
}

/// The server's own endpoints over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Any of these tokens opens the endpoints of this server alone.
    pub auth_tokens: Vec<String>,
    /// The form in which the server is shown there.
    pub surface: Surface,
}

impl std::fmt::Debug for EndpointSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let auth_tokens = self.auth_tokens.len();
        f.debug_struct("EndpointSettings")
            .field("auth_tokens", &auth_tokens)
            .field("surface", &self.surface)
            .finish()
    }
}

/// The part of a server that an offer shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferRules {
    pub tools: ToolRules,
    pub features: Features,
    pub extent: OfferExtent,
}

impl OfferRules {
    /// Returns whether nothing is left out.
    pub fn allow_all(&self) -> bool {
        let is_whole = matches!(self.extent, OfferExtent::Whole(_));
        is_whole && self.tools.allows_all() && self.features == Features::default()
    }

    /// Returns whether the config lets hosts see and call a tool. It may belong to another offer
    /// of the server.
    pub fn allow_tool(&self, tool: &str) -> bool {
        self.features.tools && self.tools.allow(tool)
    }

    /// Returns the same rules for a toolset.
    pub fn of_toolset(&self, toolset: &Toolset) -> Self {
        Self { extent: OfferExtent::Toolset(toolset.clone()), ..self.clone() }
    }
}

/// Returns the config of a server with this entry. A relative `cwd` starts from `directory`.
pub(super) fn configure(
    name: String,
    mut entry: ServerEntry,
    settings: ServerSettings,
    directory: &Path,
    context: &Arc<LaunchContext>,
) -> ServerConfig {
    let transport = transport(&mut entry, directory, context);
    let description = entry.description.filter(|text| !text.trim().is_empty());
    let is_lazy = description.is_some() || !entry.toolsets.is_empty();
    let by_default = if is_lazy { Startup::Lazy } else { Startup::Eager };
    let toolsets = entry.toolsets.into_iter().map(|(name, entry)| Toolset::new(name, entry));
    ServerConfig {
        name,
        startup: entry.startup.unwrap_or(by_default),
        description,
        enabled: entry.enabled.unwrap_or(ENABLED),
        settings,
        connecting: ConnectionRules {
            protocol: entry.protocol,
            isolation: entry.isolation,
            login: entry.login,
        },
        offer: OfferRules {
            tools: ToolRules::new(entry.tools),
            features: entry.features,
            extent: OfferExtent::Whole(toolsets.collect()),
        },
        policy: entry.policy,
        endpoint: EndpointSettings {
            auth_tokens: entry.auth_tokens,
            surface: entry.surface.unwrap_or(SURFACE_OF_ENDPOINT),
        },
        transport,
    }
}

impl ServerConfig {
    /// Returns whether the server is connected before a host uses it, so that lists wait for its
    /// first attempt. An instance of one host cannot be started before there is the host.
    pub fn has_first_attempt(&self) -> bool {
        self.enabled && self.startup != Startup::Lazy && !self.connecting.has_own_instances()
    }

    /// Returns whether a connection that was made for `other` suits this config, because they
    /// differ only in what hosts see.
    pub fn has_same_connection(&self, other: &Self) -> bool {
        // Every field is named, so that each new one is decided upon.
        let Self {
            name,
            enabled,
            startup,
            settings,
            connecting,
            offer: OfferRules { features, tools: _, extent: _ },
            transport,
            description: _,
            policy: _,
            endpoint: _,
        } = self;
        *name == other.name
            && *enabled == other.enabled
            && *startup == other.startup
            && settings.changes_at_once(&other.settings)
            && *connecting == other.connecting
            && *features == other.offer.features
            && *transport == other.transport
    }

    /// Returns a server with defaults for everything but its transport.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self { transport: Ok(transport), ..Self::bare(name.into()) }
    }

    /// Returns a server with defaults, which cannot be started.
    pub(super) fn bare(name: String) -> Self {
        let (entry, settings) = (ServerEntry::default(), ServerSettings::default());
        configure(name, entry, settings, Path::new("."), &Arc::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::{
            Environment,
            keys::{ChangeEffect, keys_of_server},
            parse,
        },
        *,
    };

    fn server(entry: &Value) -> ServerConfig {
        let text = json!({"mcpServers": {"a": entry}}).to_string();
        let parsed = parse(&text, Path::new("/c.json"), &Environment::default());
        parsed.unwrap().config.servers.remove(0)
    }

    #[test]
    fn keys_reconnect_a_server_as_their_class_says() {
        let local = json!({"command": "x", "description": "d"});
        let remote = json!({"url": "https://x/", "description": "d"});
        let mut samples = json!({
            "description": "e", "enabled": false, "startup": "eager", "tools": {"t": false},
            "policy": [{"then": "deny"}], "toolsets": {"t": {"tools": ["t*"]}},
            "features": {"prompts": false}, "protocol": "modern", "type": "http",
            "url": "https://y/", "headers": {"A": "b"}, "oauth": {"clientId": "c"},
            "authTokens": ["t"], "surface": "discover", "isolation": "session", "login": "user",
            "command": "y", "args": ["b"], "env": {"A": "b"}, "cwd": "/d", "inheritEnv": true,
            "maxResultBytes": 9, "pin": "block", "idleTimeout": 1, "timeouts": {"call": 1},
        });
        for (key, class) in keys_of_server() {
            let sample = samples[&key].take();
            assert!(!sample.is_null(), "the test has no value of {key}");
            let of_remote = ["url", "type", "headers", "oauth", "login"];
            let is_of_remote = of_remote.contains(&key.as_str());
            let was = if is_of_remote { &remote } else { &local };
            let mut now = was.clone();
            now[&key] = sample;
            let (now, was) = (server(&now), server(was));
            assert_ne!(now, was, "{key}");
            let is_at_once = class.effect == ChangeEffect::AtOnce;
            assert_eq!(now.has_same_connection(&was), is_at_once, "{key}");
        }
    }
}
