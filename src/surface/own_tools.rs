//! The names of dormouse's own tools.

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
