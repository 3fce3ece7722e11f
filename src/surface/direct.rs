//! The `direct` surface: every known tool under its own name, whose server wakes when the tool is
//! called, and `load_mcp` for servers whose tools are not known yet.

use super::{View, budget, definition, discover, load, mcp_apps, read_result};
use crate::{catalog::OfferVisibility, config::Listing, wire::Raw};

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let (mut tools, names) = (Vec::new(), mcp_apps::InterfaceToolNames::of(view));
    for listed in &view.offers() {
        tools.extend(definition::listed_tools(view, listed, &names));
    }
    if has_unknown(view) {
        tools.push(load::definition(view));
    }
    if view.snapshot.settings.lists.listing == Listing::Stable {
        tools.extend(discover::stable_tools(view));
    }
    tools.extend(read_result::listed(view));
    tools
}

pub(super) fn instructions(view: View<'_>) -> String {
    if view.snapshot.sole.is_some() {
        return view.own_instructions().unwrap_or_default();
    }
    let preamble = if has_unknown(view) {
        "Tools of MCP servers that are not loaded yet appear once load_mcp has loaded them."
    } else {
        "These MCP servers sleep until one of their tools is called."
    };
    budget::compose(view, preamble, false)
}

/// Returns whether there is a server whose tools are unknown until it is loaded.
fn has_unknown(view: View<'_>) -> bool {
    view.snapshot.sole.is_none()
        && view
            .shows_any(|it| matches!(it.visibility, OfferVisibility::Offered { known: None, .. }))
}
