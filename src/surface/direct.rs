//! The `direct` surface: every known tool under its own name, woken when it is called, and `load_mcp` for
//! servers whose tools are not known yet.

use super::{View, budget, definition, discover, load};
use crate::{catalog::Shown, config::Listing, wire::Raw};

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = Vec::new();
    let mut is_any_unknown = false;
    for server in &view.snapshot.servers {
        match server.shown(view.settings.listing) {
            Shown::Live(exposed) | Shown::Offered { known: Some(exposed), .. } => {
                tools.extend(definition::listed_tools(view, server, exposed));
            }
            Shown::Offered { known: None, .. } => is_any_unknown = true,
            Shown::Nothing => {}
        }
    }
    if is_any_unknown && view.snapshot.sole.is_none() {
        tools.push(load::definition(view));
    }
    if view.settings.listing == Listing::Stable {
        tools.push(discover::use_tool_definition(view));
    }
    tools
}

pub(super) fn instructions(view: View<'_>) -> String {
    if view.snapshot.sole.is_some() {
        return view.own_instructions().unwrap_or_default();
    }
    let preamble =
        "Tools of MCP servers that are not loaded yet appear once load_mcp has loaded them.";
    budget::compose(view, preamble, false)
}
