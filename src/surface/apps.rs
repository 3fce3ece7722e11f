//! MCP Apps (SEP-1865): tools with a user interface stand in the list under their own names, on every surface, for a
//! host that can show it. An app calls the tools of its server by these names, and knows no others.

use std::collections::HashMap;

use super::{View, activate, definition, discover, groups, load};
use crate::{
    catalog::{Exposed, ServerId, ServerView, Shown, Tool, names::is_listable},
    config::Surface,
    wire::Raw,
};

/// What a host that can show apps has done with them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Apps {
    /// The server whose interface the host has read last: what an app calls is meant for it.
    pub last_read: Option<ServerId>,
}

/// The tools with an interface of every loaded server, for surfaces that list no other tools of servers.
pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let names = Names::of(view);
    if !names.is_any() {
        return Vec::new();
    }
    let servers = shown(view).into_iter();
    let tools = servers.flat_map(|(server, exposed)| {
        let tools = exposed.catalog.tools.iter().zip(&exposed.listed_names);
        tools.map(move |(tool, listed)| (server, tool, listed))
    });
    let with_interface = tools.filter(|(_, tool, _)| tool.interface().is_some());
    with_interface
        .map(|(server, tool, listed)| {
            definition::listed_tool(view, server, tool, names.name(tool, listed))
        })
        .collect()
}

/// The own names of tools, and how many servers have a tool of each.
pub(super) struct Names<'a> {
    view: View<'a>,
    count: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    /// Empty where the host shows no apps, or there are none.
    pub(super) fn of(view: View<'a>) -> Self {
        let mut count = HashMap::new();
        let servers = if view.apps.is_some() { shown(view) } else { Vec::new() };
        let tools = || servers.iter().flat_map(|(_, exposed)| &exposed.catalog.tools);
        if tools().any(|tool| tool.interface().is_some()) {
            for tool in tools() {
                *count.entry(tool.name.as_str()).or_default() += 1;
            }
        }
        Self { view, count }
    }

    fn is_any(&self) -> bool {
        !self.count.is_empty()
    }

    /// The name under which a tool is listed: its own where it has an interface and no other tool is called so, else
    /// `listed`.
    pub(super) fn name<'b>(&self, tool: &'b Tool, listed: &'b str) -> &'b str {
        let own = tool.name.as_str();
        let snapshot = self.view.snapshot;
        let is_free = self.count.get(own) == Some(&1)
            && is_listable(own)
            && !is_ours(own)
            && !snapshot.names_a_server(own)
            && snapshot.listed(own).is_none();
        if is_free && tool.interface().is_some() { own } else { listed }
    }
}

/// The servers whose tools are shown, with what is exposed of each.
fn shown(view: View<'_>) -> Vec<(&ServerView, &Exposed)> {
    let servers = view.snapshot.servers.iter().map(AsRef::as_ref);
    servers
        .filter_map(|server: &ServerView| match server.shown(view.snapshot.settings.listing) {
            Shown::Live(exposed) => Some((server, exposed)),
            Shown::Offered { known: Some(exposed), .. } if view.surface == Surface::Direct => {
                Some((server, exposed))
            }
            Shown::Offered { .. } | Shown::Nothing => None,
        })
        .collect()
}

/// Whether a tool of dormouse may be called so.
fn is_ours(name: &str) -> bool {
    let ours = [
        discover::DISCOVER_TOOL,
        discover::USE_TOOL,
        discover::USE_READONLY_TOOL,
        load::LOAD_MCP,
        groups::GET_DYNAMIC_TOOLS,
        groups::CALL_DYNAMIC_TOOL,
    ];
    ours.contains(&name) || name.starts_with(activate::PREFIX)
}
