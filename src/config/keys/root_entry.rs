//! The keys of the file that belong to no group of settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{PolicyRule, Profile, key_class::AT_ONCE};

/// The config of dormouse: one MCP server in front of many.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(in crate::config) struct RootEntry {
    /// The address of the JSON schema of this file, for editors.
    #[serde(rename = "$schema")]
    #[schemars(extend("x-class" = AT_ONCE))]
    pub(in crate::config) _schema: Option<String>,
    /// Rules for calls of tools: see docs/reference/policy.md.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub(in crate::config) policy: Vec<PolicyRule>,
    /// Selections of servers and tools; a host has at most one: see docs/reference/config.md.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub(in crate::config) profiles: BTreeMap<String, Profile>,
    /// The servers by name. If two offer the same URI or prompt, the first one takes precedence.
    // Entries are kept as values, so that one bad entry does not hide the problems of the next.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub(in crate::config) mcp_servers: serde_json::Map<String, serde_json::Value>,
}
