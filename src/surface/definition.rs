//! The definitions of dormouse's own tools, and of servers' tools under other names.

use serde_json::{Value, json};

use super::{View, mcp_apps::InterfaceToolNames, own_tools::is_reserved};
use crate::{
    catalog::{ListedOffer, LoadOrigin, Offer, Tool},
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

/// Returns the tools that an offer lists under the names by which they are listed directly.
pub(super) fn listed_tools(
    view: View<'_>,
    listed: &ListedOffer<'_>,
    names: &InterfaceToolNames<'_>,
) -> Vec<Raw> {
    let tools = tools_of(listed);
    tools.map(|(tool, name)| listed_tool(view, listed, tool, names.name(tool, name))).collect()
}

/// Returns the tools that an offer lists, each with its listed name.
pub(super) fn tools_of<'a>(listed: &ListedOffer<'a>) -> impl Iterator<Item = (&'a Tool, &'a str)> {
    let exposed = listed.exposed();
    let tools = exposed.into_iter().flat_map(|exposed| {
        listed
            .tools
            .iter()
            .map(move |tool| (&exposed.catalog.tools[*tool], exposed.listed_names[*tool].as_str()))
    });
    tools.collect::<Vec<_>>().into_iter()
}

/// Returns a server's tool under the name by which it is listed directly. Other members stay as the
/// server wrote them.
fn listed_tool(view: View<'_>, listed: &ListedOffer<'_>, tool: &Tool, name: &str) -> Raw {
    let definition = edit::set(&tool.raw, "name", &Raw::encode(name));
    if view.snapshot.settings.lists.always_load != AlwaysLoad::Loaded
        || !is_brought_by_load(view, listed.offer, tool)
    {
        return definition;
    }
    edit::set_within(&definition, "_meta", &[(ALWAYS_LOAD, &Raw::encode(&true))])
}

/// Returns whether hosts have loaded a tool, with the offer that lists it or another.
fn is_brought_by_load(view: View<'_>, offer: &Offer, tool: &Tool) -> bool {
    let is_loaded = |offer: &Offer| offer.presence.origin() == Some(LoadOrigin::HostsRequest);
    let has_it = |offer: &Offer| {
        let exposed = offer.exposed();
        exposed.is_some_and(|it| it.catalog.tools.iter().any(|own| own.name == tool.name))
    };
    let mut offers = view.snapshot.offers_of(offer.server());
    is_loaded(offer)
        || offer.is_divided() && offers.any(|(_, other)| is_loaded(other) && has_it(other))
}

/// Returns the tools with an interface of every loaded server, for surfaces that list no other
/// tools of servers.
pub(super) fn tools_with_interface(view: View<'_>) -> Vec<Raw> {
    let names = InterfaceToolNames::of(view);
    if !names.is_any() {
        return Vec::new();
    }
    let offers = view.offers();
    let tools = offers
        .iter()
        .flat_map(|listed| tools_of(listed).map(move |(tool, name)| (listed, tool, name)));
    let with_interface = tools.filter(|(_, tool, _)| tool.interface().is_some());
    with_interface
        .map(|(listed, tool, name)| listed_tool(view, listed, tool, names.name(tool, name)))
        .collect()
}
