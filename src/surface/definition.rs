//! Tool definitions: those of our own, and how a server's appear under another name.

use serde_json::{Value, json};

use super::View;
use crate::{
    catalog::{Origin, Presence, ServerCatalog, ToolRef},
    config::AlwaysLoad,
    wire::{Raw, edit},
};

/// The key by which a tool asks to stay in the model's context (Claude Code).
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// One of our own tools.
pub(super) fn meta_tool(view: View<'_>, mut definition: Value) -> Raw {
    if view.settings.always_load != AlwaysLoad::Off {
        definition["_meta"] = json!({ ALWAYS_LOAD: true });
    }
    Raw::encode(&definition)
}

/// All tools of a live server under the names by which they are listed directly.
pub(super) fn listed_tools(
    view: View<'_>,
    server: usize,
    catalog: &ServerCatalog,
) -> impl Iterator<Item = Raw> {
    (0..catalog.tools.len()).map(move |tool| listed_tool(view, ToolRef { server, tool }))
}

/// A server's tool under the name by which it is listed directly; everything else as its server wrote it.
fn listed_tool(view: View<'_>, at: ToolRef) -> Raw {
    let (server, tool) = view.snapshot.tool(at);
    let definition = edit::set(&tool.raw, "name", &Raw::encode(&server.listed_names[at.tool]));
    let brought_by_load =
        matches!(server.presence, Presence::Live { origin: Origin::HostsRequest, .. });
    if view.settings.always_load != AlwaysLoad::Loaded || !brought_by_load {
        return definition;
    }
    edit::set_within(&definition, "_meta", &[(ALWAYS_LOAD, &Raw::encode(&true))])
}
