//! Which revision of MCP a message belongs to, and the metadata by which modern requests say so.

use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Serialize};

use super::{extension, handshake::MAX_CAPABILITIES};
use crate::wire::{Raw, edit};

/// How two MCP peers agree on what they speak (2026-07-28, basic/versioning, Terminology).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// An `initialize` handshake opens a session: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Every request carries version, identity and capabilities: 2026-07-28.
    Modern,
}

/// The revisions with a handshake, oldest first.
pub const LEGACY_VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
];

pub const MODERN_VERSION: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// Every revision that dormouse answers, newest first.
pub fn supported_versions() -> Vec<String> {
    std::iter::once(&MODERN_VERSION)
        .chain(LEGACY_VERSIONS.iter().rev())
        .map(ToString::to_string)
        .collect()
}

/// Keys of `_meta` that the 2026-07-28 revision reserves (basic/index, General fields).
pub struct Meta;

impl Meta {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// What a host says of itself: once in `initialize`, or in the `_meta` of each modern request.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    pub era: Era,
    pub version: String,
    /// `clientInfo`, where given.
    pub info: Option<Raw>,
    /// `capabilities`, as the host wrote them.
    pub capabilities: Raw,
}

impl Client {
    /// What we say of ourselves in requests of our own, to which no question can be answered.
    pub fn ourselves() -> Self {
        Self {
            era: Era::Legacy,
            version: ProtocolVersion::LATEST_WITH_INITIALIZE.to_string(),
            info: None,
            capabilities: Raw::empty_object(),
        }
    }

    /// What the host can do, in the words of another era: tasks are not the same thing in both.
    pub fn capabilities_for(&self, era: Era) -> Raw {
        if era == self.era {
            self.capabilities.clone()
        } else {
            extension::without(&edit::without(&self.capabilities, &["tasks"]), extension::TASKS)
        }
    }

    /// Whether the host has declared the extension `name`.
    pub fn declares_extension(&self, name: &str) -> bool {
        extension::declares(&self.capabilities, name)
    }

    /// The same, without keeping the request alive that said it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            info: self.info.as_ref().map(Raw::detached),
            capabilities: self.capabilities.detached(),
            ..self.clone()
        }
    }

    /// Reads the `params` of `initialize`.
    pub fn from_initialize(params: &Raw) -> Self {
        Self {
            era: Era::Legacy,
            version: edit::get_str(params, "protocolVersion").unwrap_or_default(),
            info: edit::get(params, "clientInfo"),
            capabilities: bounded(edit::get(params, "capabilities")),
        }
    }

    /// Reads the `_meta` of a modern request; `None` where the request is a legacy one.
    pub fn from_meta(meta: &Raw) -> Option<Self> {
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

/// Capabilities; none where they are too long to be read and put together again and again.
fn bounded(capabilities: Option<Raw>) -> Raw {
    let capabilities = capabilities.filter(|it| it.len() <= MAX_CAPABILITIES);
    capabilities.unwrap_or_else(Raw::empty_object)
}
