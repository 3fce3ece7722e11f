//! Rules of the policy that cannot match any tool, such as those with a misspelt server.

use serde_json::{Map, Value};

use super::{NamePattern, PolicyRule};

/// Returns the position of each rule of a list for all servers that cannot match any tool, with
/// the reason. `servers` are the entries of the config.
pub(super) fn unmatched_rules(
    rules: &[PolicyRule],
    servers: &Map<String, Value>,
) -> Vec<(usize, String)> {
    with_reasons(rules, |tools| reason(tools, servers))
}

/// Returns the position of each rule in the entry of a server that cannot match any tool, with the
/// reason. `toolsets` is what the entry has under this key.
pub(super) fn unmatched_rules_in_entry(
    rules: &[PolicyRule],
    toolsets: &Value,
) -> Vec<(usize, String)> {
    with_reasons(rules, |tools| unknown_toolset(tools, toolsets))
}

fn with_reasons(
    rules: &[PolicyRule],
    reason: impl Fn(&NamePattern) -> Option<String>,
) -> Vec<(usize, String)> {
    let reasons = rules.iter().map(|rule| reason(&rule.tools)).enumerate();
    reasons.filter_map(|(at, reason)| Some((at, reason?))).collect()
}

fn reason(tools: &NamePattern, servers: &Map<String, Value>) -> Option<String> {
    let written = tools.as_str();
    if !tools.has_slash() {
        return servers.keys().find_map(|name| {
            let tool = written.strip_prefix(&format!("{name}__"))?;
            Some(format!(
                "rules name a tool as \"{name}/{tool}\"; {written:?} would be its own name"
            ))
        });
    }
    if !servers.keys().any(|name| tools.may_begin_with(&format!("{name}/"))) {
        return Some(format!(
            "no server of this config has a tool named {written:?}: the rule has no effect"
        ));
    }
    // A name with several slashes may begin with the names of several servers.
    let mut unknown = servers.iter().filter_map(|(name, entry)| {
        let within = written.strip_prefix(name.as_str())?.strip_prefix('/')?;
        Some(unknown_toolset(&NamePattern::new(within), &entry["toolsets"]))
    });
    let first = unknown.next()?;
    if unknown.any(|other| other.is_none()) { None } else { first }
}

/// Returns the reason that a rule about `toolset/tool` of one server has probably no effect.
fn unknown_toolset(tools: &NamePattern, toolsets: &Value) -> Option<String> {
    let mut names = toolsets.as_object().into_iter().flatten().map(|(name, _)| name);
    if !tools.has_slash() || names.any(|name| tools.may_begin_with(&format!("{name}/"))) {
        return None;
    }
    Some(format!(
        "{:?} begins with no toolset of the server: unless a tool has this very name, the rule \
            has no effect",
        tools.as_str()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_without_effect_are_found() {
        let servers = json!({"git": {"toolsets": {"log": {}}}, "git/hub": {}});
        let idle = |tools: &str| reason(&NamePattern::new(tools), servers.as_object().unwrap());
        for tools in [
            "git/*",
            "git/hub/x",
            "*/x",
            "g*/x",
            "x",
            "*",
            "x__y",
            "gi?/x",
            "*__x",
            "git/hub__*",
            "git/log/x",
            "git/lo*",
            "git/*/x",
        ] {
            assert_eq!(idle(tools), None, "{tools}");
        }
        for tools in ["gut/*", "git-hub/x", "gt*/x", "git__x", "git/lag/x", "git/hub/log/x"] {
            assert!(idle(tools).is_some(), "{tools}");
        }
    }

    #[test]
    fn rules_in_an_entry_without_its_toolset_are_found() {
        let toolsets = json!({"log": {}});
        let idle = |tools: &str| unknown_toolset(&NamePattern::new(tools), &toolsets);
        for tools in ["x", "*", "log/x", "l*/x", "*/x"] {
            assert_eq!(idle(tools), None, "{tools}");
        }
        for tools in ["lag/x", "git/log/x", "x*/y"] {
            assert!(idle(tools).is_some(), "{tools}");
        }
        assert!(unknown_toolset(&NamePattern::new("a/*"), &json!(null)).is_some());
    }
}
