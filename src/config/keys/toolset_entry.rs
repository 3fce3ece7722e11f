//! The key `toolsets` of a server.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{KeyProblem, simple_name};
use crate::config::{NamePattern, key_path::keys};

/// The `toolsets` of an entry as written, in order.
pub(in crate::config) type ToolsetEntries = IndexMap<String, ToolsetEntry>;

/// A named part of a server's tools.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(in crate::config) struct ToolsetEntry {
    /// The tools of the toolset, by name or glob.
    #[schemars(length(min = 1))]
    pub(in crate::config) tools: Vec<NamePattern>,
    /// The tasks for which to load the toolset. Default: the names and globs of its tools.
    pub(in crate::config) description: Option<String>,
}

/// Returns the problems of the toolsets of a server, with paths from its entry. `written` is the
/// value of the key.
pub(super) fn problems(toolsets: &ToolsetEntries, written: &Value) -> Vec<KeyProblem> {
    let mut problems = Vec::new();
    for (name, toolset) in toolsets {
        if !simple_name::is_simple(name) {
            problems.push((keys(["toolsets", name]), simple_name::rule("a toolset")));
        }
        if written[name]["tools"].is_null() {
            problems.push((
                keys(["toolsets", name]),
                "a toolset needs \"tools\": names or globs".to_owned(),
            ));
        } else if toolset.tools.is_empty() {
            problems.push((
                keys(["toolsets", name, "tools"]),
                "a toolset needs a name or glob".to_owned(),
            ));
        }
    }
    problems
}
