//! The eras of MCP, and the metadata that carries version and identity in modern requests.

use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Serialize};

use super::extension;
use crate::wire::{Raw, edit};

/// The way in which two MCP peers agree on a version (2026-07-28, basic/versioning, Terminology).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// A session begins with an `initialize` handshake: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Every request carries version, identity and capabilities: 2026-07-28.
    Modern,
}

/// The revisions with a handshake, oldest first.
pub(crate) const LEGACY_VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
];

pub(crate) const MODERN_VERSION: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// Returns every revision that dormouse accepts from hosts, newest first.
pub(crate) fn supported_versions() -> Vec<String> {
    std::iter::once(&MODERN_VERSION)
        .chain(LEGACY_VERSIONS.iter().rev())
        .map(ToString::to_string)
        .collect()
}

/// Keys of `_meta` that the 2026-07-28 revision reserves (basic/index, General fields).
pub(crate) struct Meta;

impl Meta {
    pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// The identity and capabilities of a host, sent once in `initialize` or in the `_meta` of each
/// modern request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientIdentity {
    pub era: Era,
    pub version: String,
    /// `clientInfo`, if the host sent it.
    pub info: Option<Raw>,
    /// `capabilities` as the host wrote them.
    pub capabilities: Raw,
}

/// The kinds of questions that a host shows to its user (2025-11-25, client/elicitation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elicitation {
    /// Forms; an empty declaration stands for these.
    pub form: bool,
    /// Pages in the browser.
    pub url: bool,
}

impl ClientIdentity {
    /// Returns the kinds of questions that the host has declared.
    pub(crate) fn elicitation(&self) -> Elicitation {
        let declared = edit::get(&self.capabilities, "elicitation").filter(Raw::is_object);
        let Some(declared) = declared else { return Elicitation::default() };
        let [form, url] = edit::get_each(&declared, ["form", "url"]);
        // A declaration that names another kind alone is not empty.
        let form = form.map_or(url.is_none(), |form| form.is_object());
        Elicitation { form, url: url.is_some_and(|url| url.is_object()) }
    }

    /// Returns the identity for dormouse's own requests. It declares no capabilities, since a
    /// server's question to dormouse itself cannot be answered.
    pub(crate) fn ourselves() -> Self {
        Self {
            era: Era::Legacy,
            version: ProtocolVersion::LATEST_WITH_INITIALIZE.to_string(),
            info: None,
            capabilities: Raw::empty_object(),
        }
    }

    /// Returns the host's capabilities for a request in `era`. Tasks are dropped when the era
    /// changes, because they differ between the eras.
    pub(crate) fn capabilities_for(&self, era: Era) -> Raw {
        if era == self.era {
            self.capabilities.clone()
        } else {
            extension::without(&edit::without(&self.capabilities, &["tasks"]), extension::TASKS)
        }
    }

    /// Returns whether the host has declared the extension `name`.
    pub(crate) fn declares_extension(&self, name: &str) -> bool {
        extension::declares(&self.capabilities, name)
    }

    /// Returns a copy that does not keep the memory of the whole request alive.
    #[must_use]
    pub(crate) fn detached(&self) -> Self {
        Self {
            info: self.info.as_ref().map(Raw::detached),
            capabilities: self.capabilities.detached(),
            ..self.clone()
        }
    }

    /// Reads the `params` of `initialize`.
    pub(crate) fn from_initialize(params: &Raw) -> Self {
        Self {
            era: Era::Legacy,
            version: edit::get_str(params, "protocolVersion").unwrap_or_default(),
            info: edit::get(params, "clientInfo"),
            capabilities: bounded(edit::get(params, "capabilities")),
        }
    }

    /// Reads the `_meta` of a modern request. Returns `None` for a legacy request.
    pub(crate) fn from_meta(meta: &Raw) -> Option<Self> {
        let [version, info, capabilities] = edit::get_each(
            meta,
            [Meta::PROTOCOL_VERSION, Meta::CLIENT_INFO, Meta::CLIENT_CAPABILITIES],
        );
        Some(Self {
            era: Era::Modern,
            version: version?.read().ok()?,
            info,
            capabilities: bounded(capabilities),
        })
    }
}

/// Returns the capabilities, or none if they are too long to be parsed and merged for every
/// request.
fn bounded(capabilities: Option<Raw>) -> Raw {
    let capabilities = capabilities.filter(|it| it.len() <= MAX_CAPABILITIES_BYTES);
    capabilities.unwrap_or_else(Raw::empty_object)
}

/// Maximum length of the capabilities of a server or a host, in bytes. They are parsed and merged
/// for each host.
pub(super) const MAX_CAPABILITIES_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn empty_declaration_of_elicitation_stands_for_forms() {
        let declared = |capabilities: Value| {
            let capabilities = Raw::encode(&capabilities);
            ClientIdentity { capabilities, ..ClientIdentity::ourselves() }.elicitation()
        };
        let of = |elicitation: Value| declared(json!({"elicitation": elicitation}));
        for able in [json!({}), json!({"form": {}}), json!({"form": {}, "url": {}})] {
            assert!(of(able.clone()).form, "{able}");
        }
        for odd in [json!(null), json!(false), json!([]), json!("form"), json!({"form": false})] {
            assert_eq!(of(odd.clone()), Elicitation::default(), "{odd}");
        }
        assert_eq!(of(json!({"url": {}})), Elicitation { form: false, url: true });
        assert_eq!(declared(json!({})), Elicitation::default());
    }
}
