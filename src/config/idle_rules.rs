//! Rules of the policy that can be about no tool, such as those with a misspelt server.

use serde_json::{Map, Value};

use super::{NamePattern, PolicyRule};

/// Returns the position of each rule of a list for all servers that can be about no tool, with the
/// reason. `servers` are the entries of the config.
pub(super) fn idle_rules(
    rules: &[PolicyRule],
    servers: &Map<String, Value>,
) -> Vec<(usize, String)> {
    let reasons = rules.iter().map(|rule| reason(&rule.tools, servers)).enumerate();
    reasons.filter_map(|(at, reason)| Some((at, reason?))).collect()
}

fn reason(tools: &NamePattern, servers: &Map<String, Value>) -> Option<String> {
    let written = tools.as_str();
    if written.contains('/') {
        let is_known = servers.keys().any(|name| tools.may_begin_with(&format!("{name}/")));
        return (!is_known).then(|| {
            format!("no server of this config has a tool named {written:?}: the rule has no effect")
        });
    }
    servers.keys().find_map(|name| {
        let tool = written.strip_prefix(&format!("{name}__"))?;
        Some(format!("rules name a tool as \"{name}/{tool}\"; {written:?} would be its own name"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_without_effect_are_found() {
        let servers = json!({"git": {}, "git/hub": {}});
        let idle = |tools: &str| reason(&NamePattern::new(tools), servers.as_object().unwrap());
        for tools in
            ["git/*", "git/hub/x", "*/x", "g*/x", "x", "*", "x__y", "gi?/x", "*__x", "git/hub__*"]
        {
            assert_eq!(idle(tools), None, "{tools}");
        }
        for tools in ["gut/*", "git-hub/x", "gt*/x", "git__x"] {
            assert!(idle(tools).is_some(), "{tools}");
        }
    }
}
