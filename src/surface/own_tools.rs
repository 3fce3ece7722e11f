//! The names of dormouse's own tools.

use serde_json::{Value, json};

use crate::wire::{Raw, edit};

pub(super) const DISCOVER_TOOL: &str = "discover_tool";
pub(super) const USE_TOOL: &str = "use_tool";
pub(super) const USE_READONLY_TOOL: &str = "use_readonly_tool";
pub(super) const LOAD_MCP: &str = "load_mcp";
pub(super) const GET_DYNAMIC_TOOLS: &str = "get_dynamic_tools";
pub(super) const CALL_DYNAMIC_TOOL: &str = "call_dynamic_tool";
pub(super) const READ_RESULT: &str = "read_result";
pub(super) const RUN_SCRIPT: &str = "run_script";
pub(super) const ACTIVATE_PREFIX: &str = "activate_";

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

/// The name before dormouse's own tools where they are called like the tools of a server.
pub(super) const OWN_GROUP: &str = "dormouse";
/// `read_result` as a tool that other tools call.
pub(super) const QUALIFIED_READ_RESULT: &str = "dormouse/read_result";

/// Returns whether the name is reserved for tools of dormouse.
pub(super) fn is_reserved(name: &str) -> bool {
    OWN_TOOLS.contains(&name) || name.starts_with(ACTIVATE_PREFIX)
}

/// Returns the `params` of a `tools/call` that calls a server's tool through `use_tool`.
pub(crate) fn through_use_tool(tool: &str, input: &Raw) -> Raw {
    let arguments = edit::set(&Raw::encode(&json!({"tool_name": tool})), "tool_input", input);
    edit::set(&Raw::encode(&json!({"name": USE_TOOL})), "arguments", &arguments)
}

/// Returns the `params` of a `tools/call` of `discover_tool`.
pub(crate) fn to_discover_tool(arguments: &Value) -> Raw {
    Raw::encode(&json!({"name": DISCOVER_TOOL, "arguments": arguments}))
}

/// Returns the `params` of a `tools/call` of `run_script`.
pub(crate) fn to_run_script(code: &str, input: &Value) -> Raw {
    Raw::encode(&json!({"name": RUN_SCRIPT, "arguments": {"code": code, "input": input}}))
}

/// Returns whether the `params` of a `tools/call` name a tool of dormouse that calls a server's
/// tool.
pub(crate) fn calls_another(params: &Raw) -> bool {
    calling_tool(params).is_some()
}

/// Returns the tool of dormouse by which the `params` of a `tools/call` call a server's tool.
pub(crate) fn calling_tool(params: &Raw) -> Option<String> {
    let calling = [USE_TOOL, USE_READONLY_TOOL, CALL_DYNAMIC_TOOL];
    edit::get_str(params, "name").filter(|name| calling.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
