//! The definitions of dormouse's own tools, and of servers' tools under other names.

use serde_json::{Value, json};

use super::{
    View,
    mcp_apps::{InterfaceToolNames, listed_servers},
    own_tools::is_reserved,
};
use crate::{
    catalog::{ExposedCatalog, LoadOrigin, Offer, Presence, Tool},
    config::AlwaysLoad,
    wire::{Raw, edit},
};

/// The key by which a tool asks to stay in the model's context (Claude Code).
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// Returns the definition of one of dormouse's own tools.
///
/// Its name has to be reserved, so that a tool of a server cannot be listed under it.
pub(super) fn meta_tool(view: View<'_>, mut definition: Value) -> Raw {
    debug_assert!(definition["name"].as_str().is_some_and(is_reserved), "{definition}");
    if view.snapshot.settings.lists.always_load != AlwaysLoad::Off {
        definition["_meta"] = json!({ ALWAYS_LOAD: true });
    }
    Raw::encode(&definition)
}

/// Returns all tools of a server under the names by which they are listed directly.
pub(super) fn listed_tools<'a>(
    view: View<'a>,
    server: &'a Offer,
    exposed: &'a ExposedCatalog,
    names: &'a InterfaceToolNames<'a>,
) -> impl Iterator<Item = Raw> + 'a {
    let tools = exposed.catalog.tools.iter().zip(&exposed.listed_names);
    tools.map(move |(tool, listed)| listed_tool(view, server, tool, names.name(tool, listed)))
}

/// Returns a server's tool under the name by which it is listed directly. Other members stay as the
/// server wrote them.
pub(super) fn listed_tool(view: View<'_>, server: &Offer, tool: &Tool, name: &str) -> Raw {
    let definition = edit::set(&tool.raw, "name", &Raw::encode(name));
    let brought_by_load =
        matches!(server.presence, Presence::Live { origin: LoadOrigin::HostsRequest, .. });
    if view.snapshot.settings.lists.always_load != AlwaysLoad::Loaded || !brought_by_load {
        return definition;
    }
    edit::set_within(&definition, "_meta", &[(ALWAYS_LOAD, &Raw::encode(&true))])
}

/// Returns the tools with an interface of every loaded server, for surfaces that list no other
/// tools of servers.
pub(super) fn tools_with_interface(view: View<'_>) -> Vec<Raw> {
    let names = InterfaceToolNames::of(view);
    if !names.is_any() {
        return Vec::new();
    }
    let servers = listed_servers(view).into_iter();
    let tools = servers.flat_map(|(server, exposed)| {
        let tools = exposed.catalog.tools.iter().zip(&exposed.listed_names);
        tools.map(move |(tool, listed)| (server, tool, listed))
    });
    let with_interface = tools.filter(|(_, tool, _)| tool.interface().is_some());
    with_interface
        .map(|(server, tool, listed)| listed_tool(view, server, tool, names.name(tool, listed)))
        .collect()
}
