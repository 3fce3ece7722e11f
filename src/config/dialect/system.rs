//! The system that a config was written for, and its translation.

use serde_json::Value;

use super::{dynamic_mcp, dynmcp, mcp_proxy, members::Members, multi_mcp, notes::Notes};
use crate::config::{format::Node, reading_rules::ReadingRules};

/// The system that a file belongs to, if it is not dormouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Dynmcp,
    DynamicMcp,
    MultiMcp,
    McpProxy,
}

/// A config of another system, translated.
pub(in crate::config) struct Translated {
    pub(in crate::config) root: Node,
    pub(in crate::config) rules: ReadingRules,
    pub(in crate::config) notes: Notes,
}

impl Dialect {
    /// Detects the system by the keys that only it has. dynamic-mcp has them next to `mcpServers`
    /// as dormouse does, so that they decide nothing if the file is a dormouse config by its name
    /// or by a key.
    pub(in crate::config) fn of(root: &Node, is_ours: bool, is_yaml: bool) -> Option<Self> {
        let value = root.to_value();
        let any_entry = |servers: &str, is_theirs: &dyn Fn(&Value) -> bool| {
            value[servers].as_object().is_some_and(|entries| entries.values().any(is_theirs))
        };
        let has = |entry: &Value, keys: &[&str]| keys.iter().any(|key| entry.get(key).is_some());
        if value.get("mcpProxy").is_some() {
            Some(Self::McpProxy)
        } else if any_entry("mcp", &|entry| has(entry, &["transport"])) {
            Some(Self::Dynmcp)
        } else if any_entry("servers", &|entry| has(entry, &["always_on", "tools"]))
            // Before its first run a config of multi-mcp has neither. Other programs that have
            // `servers` write them in JSON.
            || is_yaml && any_entry("servers", &|entry| has(entry, &["command", "url"]))
        {
            Some(Self::MultiMcp)
        } else if !is_ours
            && any_entry("mcpServers", &dynamic_mcp::has_own_keys)
            && !dynamic_mcp::has_keys_of_ours(&value)
        {
            Some(Self::DynamicMcp)
        } else {
            None
        }
    }

    /// Returns the name of the system.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dynmcp => "dynmcp",
            Self::DynamicMcp => "dynamic-mcp",
            Self::MultiMcp => "multi-mcp",
            Self::McpProxy => "mcp-proxy",
        }
    }

    /// Returns whether the entries of this system can hold tools and their switches.
    pub(crate) fn has_tools(self) -> bool {
        self == Self::MultiMcp
    }

    /// Returns the key of the servers.
    pub(in crate::config) fn servers_key(self) -> &'static str {
        match self {
            Self::Dynmcp => "mcp",
            Self::MultiMcp => "servers",
            Self::DynamicMcp | Self::McpProxy => "mcpServers",
        }
    }

    pub(in crate::config) fn translate(self, root: &Node) -> Translated {
        let mut notes = Notes::default();
        let members = Members::of(root.clone(), &mut notes);
        let (written, rules) = match self {
            Self::Dynmcp => dynmcp::translate(members, &mut notes),
            Self::DynamicMcp => dynamic_mcp::translate(members, &mut notes),
            Self::MultiMcp => multi_mcp::translate(members, &mut notes),
            Self::McpProxy => mcp_proxy::translate(members, &mut notes),
        };
        Translated { root: written.node(root.at), rules, notes }
    }
}
