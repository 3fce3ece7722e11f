//! `load_mcp`: its definition, and the report of what a load brought.

use serde::Serialize;
use serde_json::json;

use super::{Action, View, definition, failure};
use crate::{
    catalog::{Presence, ServerCatalog, ServerView, ToolRef},
    config::{Listing, Surface},
    wire::{Raw, edit},
};

pub(super) const LOAD_MCP: &str = "load_mcp";

pub(super) fn definition(view: View<'_>) -> Raw {
    definition::meta_tool(
        view,
        json!({
            "name": LOAD_MCP,
            "description": "Load an MCP server from <mcp_servers> and return what it has. Loading a loaded server again does no harm.",
            "inputSchema": {
                "type": "object",
                "properties": {"mcp_name": {"type": "string", "description": "The server's name"}},
                "required": ["mcp_name"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "mcp_name": {"type": "string"},
                    "tools": {"type": "array"},
                    "resources": {"type": "array"},
                    "resource_templates": {"type": "array"},
                    "prompts": {"type": "array"},
                    "instructions": {"type": "string"},
                },
                "required": ["mcp_name", "tools", "resources", "resource_templates", "prompts"],
            },
        }),
    )
}

/// Loads the server, or reports what it has if it is loaded.
pub(super) fn load_mcp(view: View<'_>, arguments: &Raw) -> Action {
    let Some(name) = edit::get_str(arguments, "mcp_name") else {
        return failure("load_mcp needs \"mcp_name\", the name of a server");
    };
    let Some(server) = view.snapshot.find(&name) else { return unknown_server(view, &name) };
    let shown = &view.snapshot.servers[server];
    match &shown.presence {
        Presence::Live { exposed, .. } => {
            Action::Answer(report(view, server, shown, &exposed.catalog))
        }
        _ => Action::Load { server: shown.id },
    }
}

pub(super) fn unknown_server(view: View<'_>, name: &str) -> Action {
    let loadable = view.snapshot.loadable();
    let loadable = if loadable.is_empty() { "(none)".to_owned() } else { loadable.join(", ") };
    failure(format!("Unknown MCP server: {name:?}. Available servers to load: {loadable}"))
}

/// What a loaded server has, in the order and under the names of `load_mcp`'s result.
#[derive(Serialize)]
struct Report<'a> {
    mcp_name: &'a str,
    tools: Vec<Raw>,
    resources: Vec<Raw>,
    resource_templates: Vec<Raw>,
    prompts: Vec<Raw>,
    /// Beyond DESIGN.md section 3: the agent has no other way to what the server says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

fn report(view: View<'_>, server: usize, shown: &ServerView, catalog: &ServerCatalog) -> Raw {
    let prompts = view.snapshot.prompts().into_iter();
    let report = Raw::encode(&Report {
        mcp_name: &shown.name,
        tools: (0..catalog.tools.len())
            .map(|tool| tool_line(view, ToolRef { server, tool }))
            .collect(),
        resources: catalog
            .resources
            .iter()
            .map(|resource| pick(&resource.raw, &["uri", "name", "description", "mimeType"]))
            .collect(),
        resource_templates: catalog
            .templates
            .iter()
            .map(|template| {
                pick(&template.raw, &["uriTemplate", "name", "description", "mimeType"])
            })
            .collect(),
        prompts: prompts
            .filter(|exposed| exposed.server == server)
            .map(|exposed| {
                let line = pick(&exposed.prompt.raw, &["name", "description", "arguments"]);
                edit::set(&line, "name", &Raw::encode(&exposed.name))
            })
            .collect(),
        instructions: catalog.greeting.instructions.as_deref(),
    });
    let text = Raw::encode(&json!([{"type": "text", "text": report.to_string()}]));
    let result = edit::set(&Raw::empty_object(), "content", &text);
    edit::set(&result, "structuredContent", &report)
}

/// A tool under the name by which it can be called now. Hosts that never see a new list also need its schema.
pub(super) fn tool_line(view: View<'_>, at: ToolRef) -> Raw {
    let (_, tool) = view.snapshot.tool(at);
    let members: &[&str] = match view.snapshot.settings.listing {
        Listing::Growing => &["name", "description"],
        Listing::Stable => &["name", "description", "inputSchema"],
    };
    let name = match view.surface {
        Surface::Discover | Surface::Groups => view.snapshot.qualified(at),
        Surface::Activate | Surface::Direct => view.snapshot.listed_name(at).to_owned(),
    };
    let line = edit::set(&pick(&tool.raw, members), "name", &Raw::encode(&name));
    match edit::get(&line, "description") {
        Some(_) => line,
        None => edit::set(&line, "description", &Raw::encode("")),
    }
}

/// An object with only these members, in this order, as they were written.
fn pick(object: &Raw, members: &[&str]) -> Raw {
    members.iter().fold(Raw::empty_object(), |picked, member| match edit::get(object, member) {
        Some(value) => edit::set(&picked, member, &value),
        None => picked,
    })
}
