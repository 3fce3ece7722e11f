//! dormouse's own tools as the other tools of this layer know them.

use serde_json::{Value, json};

pub(super) use crate::config::own_tool_names::{
    ACTIVATE_PREFIX, CALL_DYNAMIC_TOOL, DISCOVER_TOOL, GET_DYNAMIC_TOOLS, LOAD_MCP, READ_RESULT,
    RUN_SCRIPT, USE_READONLY_TOOL, USE_TOOL, is_reserved,
};
use crate::wire::{Raw, edit};

/// The name before dormouse's own tools where they are called like the tools of a server.
pub(super) const OWN_GROUP: &str = "dormouse";
/// `read_result` as a tool that other tools call.
pub(super) const QUALIFIED_READ_RESULT: &str = "dormouse/read_result";

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
