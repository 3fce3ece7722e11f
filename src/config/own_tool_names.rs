//! The names of dormouse's own tools, which no tool of a config can have.

pub(crate) const DISCOVER_TOOL: &str = "discover_tool";
pub(crate) const USE_TOOL: &str = "use_tool";
pub(crate) const USE_READONLY_TOOL: &str = "use_readonly_tool";
pub(crate) const LOAD_MCP: &str = "load_mcp";
pub(crate) const GET_DYNAMIC_TOOLS: &str = "get_dynamic_tools";
pub(crate) const CALL_DYNAMIC_TOOL: &str = "call_dynamic_tool";
pub(crate) const READ_RESULT: &str = "read_result";
pub(crate) const RUN_SCRIPT: &str = "run_script";
pub(crate) const ACTIVATE_PREFIX: &str = "activate_";

/// The tools with fixed names.
const OWN_TOOLS: [&str; 8] = [
    DISCOVER_TOOL,
    USE_TOOL,
    USE_READONLY_TOOL,
    LOAD_MCP,
    GET_DYNAMIC_TOOLS,
    CALL_DYNAMIC_TOOL,
    READ_RESULT,
    RUN_SCRIPT,
];

/// Returns whether the name is reserved for tools of dormouse.
pub(crate) fn is_reserved(name: &str) -> bool {
    OWN_TOOLS.contains(&name) || name.starts_with(ACTIVATE_PREFIX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::config::{Environment, parse};

    #[test]
    fn saved_script_cannot_have_the_name_of_an_own_tool() {
        let is_refused = |name: &str| {
            let script = json!({"file": "x.ts", "description": "Does something"});
            let config = json!({"scripts": {name: script}}).to_string();
            parse(&config, Path::new("dormouse.json"), &Environment::default()).is_err()
        };
        for name in OWN_TOOLS.into_iter().chain(["activate_x", "a__b"]) {
            assert!(is_refused(name), "{name}");
        }
        assert!(!is_refused("triage"));
    }
}
