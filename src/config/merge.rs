//! Updates the `tools` of a config to the tools that its servers have (`dormouse refresh`).

use crate::base::is_invisible;
use serde_json::{Map, Value, json};

use super::{ConfigFile, Dialect, NamePattern, ToolRules, Unchanged, format::Edit};

/// The differences between the tools of a server and the tools in the config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChanges {
    /// Tools of the server for which the config has no rule.
    pub added: Vec<String>,
    /// Tools in the config that the server no longer has.
    pub gone: Vec<String>,
    /// Tools that are marked as gone and that the server has again.
    pub back: Vec<String>,
    /// New tools that cannot be written, because their names would be globs or are not valid keys.
    pub left_out: Vec<String>,
}

/// Maximum length of a key in YAML, in characters (1.2.2, section 7.4.2).
const MAX_KEY_CHARS: usize = 1000;

/// Returns whether a tool's name can be a key of the config that means only that tool.
pub(super) fn can_be_key(tool: &str) -> bool {
    !NamePattern::new(tool).is_glob() && tool.len() <= MAX_KEY_CHARS && !tool.contains(is_invisible)
}

impl ToolChanges {
    /// Returns the changes for a server that has these tools. Tools that a glob decides are left to
    /// it.
    pub fn between(rules: &ToolRules, tools: &[&str]) -> Self {
        let named: Vec<(&str, bool)> = rules.named().collect();
        let new = tools.iter().filter(|tool| !rules.decide(tool)).map(|tool| (*tool).to_owned());
        let (added, left_out) = new.partition(|tool| can_be_key(tool));
        let of = |is_wanted: &dyn Fn(bool, bool) -> bool| {
            let wanted =
                named.iter().filter(|(tool, stale)| is_wanted(tools.contains(tool), *stale));
            wanted.map(|(tool, _)| (*tool).to_owned()).collect()
        };
        Self {
            added,
            left_out,
            gone: of(&|is_there, is_stale| !is_there && !is_stale),
            back: of(&|is_there, is_stale| is_there && is_stale),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.gone.is_empty() && self.back.is_empty()
    }

    /// Returns the edits that apply the changes to a file in which the server has this entry with
    /// its tools.
    fn edits(&self, at: &[&str], dialect: Option<Dialect>, entry: &Value) -> Vec<Edit> {
        let place = |steps: &[&str]| -> Vec<String> {
            at.iter().chain(steps).map(|step| (*step).to_owned()).collect()
        };
        if self.is_empty() {
            return Vec::new();
        }
        // The long form keeps the file readable for multi-mcp.
        let on = if dialect.is_some() { json!({"enabled": true}) } else { Value::Bool(true) };
        let Some(switches) = entry.get("tools").filter(|switches| !switches.is_null()) else {
            let switches: Map<String, Value> =
                self.added.iter().map(|tool| (tool.clone(), on.clone())).collect();
            return vec![Edit::Set { path: place(&[]), value: Value::Object(switches) }];
        };
        let enabled = |tool: &String| Edit::Set { path: place(&[tool]), value: on.clone() };
        let stale = |tool: &String| match &switches[tool] {
            Value::Bool(enabled) => {
                let value = json!({"enabled": enabled, "stale": true});
                Edit::Set { path: place(&[tool]), value }
            }
            _ => Edit::Set { path: place(&[tool, "stale"]), value: Value::Bool(true) },
        };
        let fresh = |tool: &String| Edit::Remove { path: place(&[tool, "stale"]) };
        let added = self.added.iter().map(enabled);
        added.chain(self.gone.iter().map(stale)).chain(self.back.iter().map(fresh)).collect()
    }
}

impl ConfigFile {
    /// Returns the file with these changes and no others.
    ///
    /// # Errors
    /// If the server's entry cannot be edited without touching other parts.
    pub(crate) fn with_tools(
        &self,
        server: &str,
        changes: &ToolChanges,
    ) -> Result<Self, Unchanged> {
        self.edited(server, |document| {
            let dialect = document.dialect();
            let servers =
                place_of_tools(dialect).map_err(|why| Unchanged::by_hand(server, &why))?;
            let entry = &document.written()[servers][server];
            Ok(changes.edits(&[servers, server, "tools"], dialect, entry))
        })
    }
}

/// Returns the key under which the servers are that can have `tools`.
pub(super) fn place_of_tools(dialect: Option<Dialect>) -> Result<&'static str, String> {
    match dialect {
        None => Ok("mcpServers"),
        Some(dialect) if dialect.has_tools() => Ok(dialect.servers_key()),
        Some(dialect) => Err(format!("a config of {} has no place for tools", dialect.name())),
    }
}

#[cfg(test)]
#[path = "merge_layouts.rs"]
mod layouts;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn changes(switches: &Value, tools: &[&str]) -> ToolChanges {
        let switches = serde_json::from_value(switches.clone()).unwrap();
        ToolChanges::between(&ToolRules::new(switches), tools)
    }

    #[test]
    fn merge_adds_new_tools_marks_gone_ones_and_keeps_settings() {
        let switches = json!({"kept": false, "gone": true, "old": {"stale": true}, "*_x": false});
        assert_eq!(
            changes(&switches, &["kept", "old", "new", "one_x"]),
            ToolChanges {
                added: vec!["new".to_owned()],
                gone: vec!["gone".to_owned()],
                back: vec!["old".to_owned()],
                left_out: Vec::new(),
            }
        );
        assert!(changes(&json!({"*": false, "a": true}), &["a", "b"]).is_empty());
    }

    #[test]
    fn tool_names_cannot_enable_other_tools() {
        let long = "x".repeat(MAX_KEY_CHARS + 1);
        let names = ["*el_all", "?el_all", "*", "a\nb", long.as_str(), "del_all", "good"];
        let found = changes(&json!({"del*": false}), &names);
        assert_eq!((found.added, found.left_out.len()), (vec!["good".to_owned()], 5));
    }
}
