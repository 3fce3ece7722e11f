//! The names of dormouse's own tools.

use crate::wire::{Raw, edit};

pub(super) const DISCOVER_TOOL: &str = "discover_tool";
pub(super) const USE_TOOL: &str = "use_tool";
pub(super) const USE_READONLY_TOOL: &str = "use_readonly_tool";
pub(super) const LOAD_MCP: &str = "load_mcp";
pub(super) const GET_DYNAMIC_TOOLS: &str = "get_dynamic_tools";
pub(super) const CALL_DYNAMIC_TOOL: &str = "call_dynamic_tool";
pub(super) const ACTIVATE_PREFIX: &str = "activate_";

/// Returns whether the name is reserved for tools of dormouse.
pub(super) fn is_reserved(name: &str) -> bool {
    let ours = [
        DISCOVER_TOOL,
        USE_TOOL,
        USE_READONLY_TOOL,
        LOAD_MCP,
        GET_DYNAMIC_TOOLS,
        CALL_DYNAMIC_TOOL,
    ];
    ours.contains(&name) || name.starts_with(ACTIVATE_PREFIX)
}

/// Returns whether the `params` of a `tools/call` ask for a tool that is marked as read-only.
pub(crate) fn is_to_read_only(params: &Raw) -> bool {
    edit::get_str(params, "name").is_some_and(|name| name == USE_READONLY_TOOL)
}

/// Returns whether the `params` of a `tools/call` name a tool of dormouse that calls a server's
/// tool.
pub(crate) fn calls_another(params: &Raw) -> bool {
    let calling = [USE_TOOL, USE_READONLY_TOOL, CALL_DYNAMIC_TOOL];
    edit::get_str(params, "name").is_some_and(|name| calling.contains(&name.as_str()))
}
