//! Tool definitions: those of our own, and how a server's appear under another name.

use serde_json::{Value, json};

use super::{View, apps::Names};
use crate::{
    catalog::{Exposed, Origin, Presence, ServerView, Tool},
    config::AlwaysLoad,
    wire::{Raw, edit},
};

/// The key by which a tool asks to stay in the model's context (Claude Code).
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// One of our own tools.
pub(super) fn meta_tool(view: View<'_>, mut definition: Value) -> Raw {
    if view.snapshot.settings.always_load != AlwaysLoad::Off {
        definition["_meta"] = json!({ ALWAYS_LOAD: true });
    }
    Raw::encode(&definition)
}

/// All tools of a server under the names by which they are listed directly.
pub(super) fn listed_tools<'a>(
    view: View<'a>,
    server: &'a ServerView,
    exposed: &'a Exposed,
    names: &'a Names<'a>,
) -> impl Iterator<Item = Raw> + 'a {
    let tools = exposed.catalog.tools.iter().zip(&exposed.listed_names);
    tools.map(move |(tool, listed)| listed_tool(view, server, tool, names.name(tool, listed)))
}

/// A server's tool under the name by which it is listed directly; everything else as its server wrote it.
pub(super) fn listed_tool(view: View<'_>, server: &ServerView, tool: &Tool, name: &str) -> Raw {
    let definition = edit::set(&tool.raw, "name", &Raw::encode(name));
    let brought_by_load =
        matches!(server.presence, Presence::Live { origin: Origin::HostsRequest, .. });
    if view.snapshot.settings.always_load != AlwaysLoad::Loaded || !brought_by_load {
        return definition;
    }
    edit::set_within(&definition, "_meta", &[(ALWAYS_LOAD, &Raw::encode(&true))])
}
