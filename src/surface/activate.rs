//! The `activate` surface: `activate_<server>` for every server that is to be activated, and the tools of every loaded one.

use serde::Serialize;
use serde_json::json;

use super::{Action, View, answered, budget, definition, discover, load, text::sanitized};
use crate::{
    catalog::{Exposed, Presence, ServerView, Shown, ToolRef},
    config::Listing,
    wire::Raw,
};

const PREFIX: &str = "activate_";

/// Tool names given before a load.
const NAMED: usize = 5;

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = Vec::new();
    for server in &view.snapshot.servers {
        let shown = server.shown(view.snapshot.settings.listing);
        // Others come by themselves, unless something is in their way: a login, say.
        let is_stuck = matches!(shown, Shown::Offered { trouble: Some(_), .. });
        if server.is_lazy && !matches!(shown, Shown::Nothing) || is_stuck {
            tools.push(activate_definition(view, server, shown));
        }
        if let Shown::Live(exposed) = shown {
            tools.extend(definition::listed_tools(view, server, exposed));
        }
    }
    if view.snapshot.settings.listing == Listing::Stable {
        tools.extend(discover::calling_tools(view));
    }
    tools
}

pub(super) fn instructions(view: View<'_>) -> String {
    if view.snapshot.sole.is_some() {
        return view.own_instructions().unwrap_or_default();
    }
    let preamble =
        "Tools of sleeping MCP servers appear once their activate_ tool has been called.";
    budget::compose(view, preamble, false)
}

fn activate_definition(view: View<'_>, server: &ServerView, shown: Shown<'_>) -> Raw {
    let mut description = format!("Activate the {} MCP server.", sanitized(&server.name, 64));
    if let Some(about) = &server.description {
        description.push_str(&format!(" {}", sanitized(about, 1000)));
    }
    if let Shown::Live(exposed) | Shown::Offered { known: Some(exposed), .. } = shown {
        let catalog = &exposed.catalog;
        let names: Vec<String> =
            catalog.tools.iter().take(NAMED).map(|tool| sanitized(&tool.name, 64)).collect();
        let more = if catalog.tools.len() > NAMED { ", …" } else { "" };
        description.push_str(&format!(
            " This will load {} tools: {}{more}",
            catalog.tools.len(),
            names.join(", ")
        ));
    }
    if let Shown::Offered { trouble: Some(trouble), .. } = shown {
        description.push_str(&format!(" ({})", sanitized(trouble, 500)));
    }
    definition::meta_tool(
        view,
        json!({
            "name": format!("{PREFIX}{}", server.part),
            "description": description,
            "inputSchema": {"type": "object", "properties": {}},
        }),
    )
}

/// `None` when `name` is not that of an `activate_` tool.
pub(super) fn activate(view: View<'_>, name: &str) -> Option<Action> {
    let part = name.strip_prefix(PREFIX)?;
    let is_named = |server: &std::sync::Arc<ServerView>| server.part == part;
    let server = view.snapshot.servers.iter().position(is_named)?;
    let shown = &view.snapshot.servers[server];
    Some(match &shown.presence {
        Presence::Live { exposed, .. } => {
            Action::Answer(answered(&report(view, server, shown, exposed).to_string()))
        }
        Presence::Offered { .. } => Action::Load { server: shown.id },
        Presence::Evicted | Presence::Disabled => load::unknown_server(view, &shown.name),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    activated: bool,
    server: &'a str,
    tool_count: usize,
    prompt_count: usize,
    resource_count: usize,
    resource_template_count: usize,
    tools: &'a [String],
    /// Only for stable lists, in which the tools themselves never appear.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    definitions: Vec<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

fn report(view: View<'_>, server: usize, shown: &ServerView, exposed: &Exposed) -> Raw {
    let catalog = &exposed.catalog;
    let definitions = match view.snapshot.settings.listing {
        Listing::Growing => Vec::new(),
        Listing::Stable => {
            let all = 0..catalog.tools.len();
            all.map(|tool| load::tool_line(view, ToolRef { server, tool })).collect()
        }
    };
    Raw::encode(&Report {
        activated: true,
        server: &shown.name,
        tool_count: catalog.tools.len(),
        prompt_count: catalog.prompts.len(),
        resource_count: catalog.resources.len(),
        resource_template_count: catalog.templates.len(),
        tools: &exposed.listed_names,
        definitions,
        instructions: catalog.greeting.instructions.as_deref(),
    })
}
