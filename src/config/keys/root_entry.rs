//! The keys of the file that belong to no group of settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use serde_json::Value;

use super::{
    KeyProblem, PolicyRule, Profile,
    key_class::AT_ONCE,
    people_settings::{missing_for_logins, unknown_profiles},
    policy_rule,
};
use crate::config::key_path::keys;

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
    pub(in crate::config) mcp_servers: serde_json::Map<String, Value>,
}

impl RootEntry {
    /// Returns the problems of the lists of rules. `written` is the root.
    pub(in crate::config) fn problems(&self, written: &Value) -> Vec<KeyProblem> {
        let mut problems = policy_rule::problems(&written["policy"], None);
        problems.extend(unknown_profiles(&written["groups"], &written["profiles"]));
        problems.extend(missing_for_logins(written));
        for name in self.profiles.keys() {
            let base = keys(["profiles", name]);
            let of_profile = policy_rule::problems(&written["profiles"][name]["policy"], None);
            let of_profile = of_profile.into_iter();
            problems
                .extend(of_profile.map(|(path, message)| ([&base[..], &path].concat(), message)));
        }
        problems
    }
}
