//! The config of a server, from its entry.

use std::path::Path;

use super::{
    EndpointSettings, OfferRules, ServerConfig, ServerSettings, Startup, ToolRules, Transport,
    keys::{ENABLED, SURFACE_OF_ENDPOINT, ServerEntry},
    server_config::ConnectionRules,
    transport::transport,
};

/// Returns the config of a server with this entry. A relative `cwd` starts from `directory`.
pub(super) fn configure(
    name: String,
    mut entry: ServerEntry,
    settings: ServerSettings,
    directory: &Path,
) -> ServerConfig {
    let transport = transport(&mut entry, directory);
    let description = entry.description.filter(|text| !text.trim().is_empty());
    let by_default = if description.is_some() { Startup::Lazy } else { Startup::Eager };
    ServerConfig {
        name,
        startup: entry.startup.unwrap_or(by_default),
        description,
        enabled: entry.enabled.unwrap_or(ENABLED),
        settings,
        keeps_idle_timeout: false,
        connecting: ConnectionRules { protocol: entry.protocol, isolation: entry.isolation },
        offer: OfferRules { tools: ToolRules::new(entry.tools), features: entry.features },
        endpoint: EndpointSettings {
            auth_tokens: entry.auth_tokens,
            surface: entry.surface.unwrap_or(SURFACE_OF_ENDPOINT),
        },
        transport,
    }
}

impl ServerConfig {
    /// Returns a server with defaults for everything but its transport.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        let entry = ServerEntry::default();
        let settings = ServerSettings::default();
        let server = configure(name.into(), entry, settings, Path::new("."));
        Self { transport: Ok(transport), ..server }
    }
}
