//! MCP Apps (SEP-1865): on every surface, tools with a user interface are listed under their own
//! names for a host that can show the interface. An MCP App calls the tools of its server by these
//! names, and knows no others.

use std::collections::HashMap;

use super::{View, own_tools::is_reserved};
use crate::catalog::{ListedOffer, Tool, tool_names::is_listable};

/// The servers' own names for their tools, and the number of servers that have a tool of each name.
pub(super) struct InterfaceToolNames<'a> {
    view: View<'a>,
    count: HashMap<&'a str, usize>,
}

impl<'a> InterfaceToolNames<'a> {
    /// Counts the names. The result is empty if the host cannot show apps, or no tool has an
    /// interface.
    pub(super) fn of(view: View<'a>) -> Self {
        let mut count = HashMap::new();
        let offers = if view.apps.is_some() { view.offers() } else { Vec::new() };
        let tools: Vec<&Tool> = offers.iter().flat_map(listed_by).collect();
        if tools.iter().any(|tool| tool.interface().is_some()) {
            for tool in tools {
                *count.entry(tool.name.as_str()).or_default() += 1;
            }
        }
        Self { view, count }
    }

    pub(super) fn is_any(&self) -> bool {
        !self.count.is_empty()
    }

    /// Returns the name under which a tool is listed: its own name if the tool has an interface and
    /// the name is unique, or else `listed`.
    pub(super) fn name<'b>(&self, tool: &'b Tool, listed: &'b str) -> &'b str {
        let own = tool.name.as_str();
        let snapshot = self.view.snapshot;
        let is_free = self.count.get(own) == Some(&1)
            && is_listable(own)
            && !is_reserved(own)
            && !snapshot.tools().names_a_server(own)
            && snapshot.tools().listed(own).is_none();
        if is_free && tool.interface().is_some() { own } else { listed }
    }
}

/// Returns the tools that an offer lists.
fn listed_by<'a>(listed: &ListedOffer<'a>) -> Vec<&'a Tool> {
    let tools = listed.exposed().map(|exposed| exposed.catalog.tools.as_slice());
    let tools = tools.unwrap_or_default();
    listed.tools.iter().map(|tool| &tools[*tool]).collect()
}
