//! The tool that a script means by its names.

use crate::{
    catalog::{Offer, ServerId, Tool, ToolResolution},
    proxy::{Caller, Fleet},
    script::find_spelled_alike,
};

/// A tool, loaded or only known.
pub(super) struct NamedTool {
    pub(super) server: ServerId,
    pub(super) server_name: String,
    /// The tool as its server defines it.
    pub(super) tool: Tool,
}

impl NamedTool {
    /// Finds a tool by any name that `use_tool` takes.
    pub(super) fn find(fleet: &Fleet, caller: &Caller, name: &str) -> Option<Self> {
        let snapshot = fleet.board.snapshot_for(&caller.viewer());
        let at = snapshot.tools().known_tool(name)?;
        let (offer, (_, tool)) = (&snapshot.offers[at.offer], snapshot.tools().tool(at));
        let (server, server_name) = (offer.server(), offer.server_name().to_owned());
        Some(Self { server, server_name, tool: tool.clone() })
    }
}

/// Returns `server/tool` as dormouse knows them, or as they are written. `mcp.my_server.listIssues`
/// means the tool `list-issues` of `my-server`. A name that exists means nothing else, even if it
/// is disabled or switched off.
pub(super) fn spelled(fleet: &Fleet, caller: &Caller, server: &str, tool: &str) -> String {
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let has_name = |offer: &Offer| offer.name == server || offer.server_name() == server;
    let is_server = snapshot.offers.iter().any(|offer| has_name(offer));
    let offers = || snapshot.offers.iter().filter(|offer| offer.is_known());
    let servers = offers().map(|offer| offer.server_name());
    let alike = find_spelled_alike(servers, server).filter(|_| !is_server);
    let server = alike.unwrap_or(server);
    let written = format!("{server}/{tool}");
    if let ToolResolution::Withheld { .. } = snapshot.tools().resolve_tool(&written) {
        return written;
    }
    let tools = offers().filter(|offer| offer.server_name() == server);
    let tools = tools.filter_map(|offer| offer.exposed());
    let tools = tools.flat_map(|exposed| exposed.catalog.tools.iter().map(|it| it.name.as_str()));
    let tool = find_spelled_alike(tools, tool).unwrap_or(tool);
    format!("{server}/{tool}")
}
