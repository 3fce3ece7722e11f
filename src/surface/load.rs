//! `load_mcp`: its definition, and the report of what a load brought.

use serde_json::json;

use super::{
    Action, ROOM_FOR_NAMES, View,
    answer::{self, Form, Section},
    definition, failure,
    text::{first_sentence, repeated, shortened, without_hidden},
};
use crate::{
    catalog::{Exposed, Presence, ServerCatalog, ServerView, ToolRef},
    config::{Listing, Surface, is_hidden},
    wire::{Raw, edit},
};

pub(super) const LOAD_MCP: &str = "load_mcp";

/// The most bytes of a server's instructions in a report.
const MAX_INSTRUCTIONS: usize = 1500;

/// The most characters of a first sentence.
pub(super) const MAX_SENTENCE: usize = 300;

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
                    "note": {"type": "string"},
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
        Presence::Live { exposed, .. } => Action::Answer(report(view, server, shown, exposed)),
        _ => Action::Load { server: shown.id },
    }
}

pub(super) fn unknown_server(view: View<'_>, name: &str) -> Action {
    let loadable = view.snapshot.loadable();
    let loadable = if loadable.is_empty() {
        "(none)".to_owned()
    } else {
        answer::listed(&loadable, ROOM_FOR_NAMES)
    };
    failure(format!(
        "Unknown MCP server: {}. Available servers to load: {loadable}",
        repeated(name)
    ))
}

/// What a loaded server has, as text and as `structuredContent`.
fn report(view: View<'_>, server: usize, shown: &ServerView, exposed: &Exposed) -> Raw {
    let catalog = &exposed.catalog;
    let prompts: Vec<_> = view.snapshot.prompts();
    let prompts: Vec<_> = prompts.iter().filter(|exposed| exposed.server == server).collect();
    let instructions = instructions(catalog).map(|text| Raw::encode(&text));
    let resources = catalog.resources.iter().map(|resource| resource.uri.as_str()).collect();
    let templates = catalog.templates.iter().map(|t| t.uri_template.as_str()).collect();
    let mut sections = [
        tools_section(view, server, exposed),
        Section::new(resources, Form::Described, |at, form| {
            listed_item(&catalog.resources[at].raw, "uri", form)
        }),
        Section::new(templates, Form::Described, |at, form| {
            listed_item(&catalog.templates[at].raw, "uriTemplate", form)
        }),
        Section::new(
            prompts.iter().map(|exposed| exposed.name.as_str()).collect(),
            Form::Described,
            |at, form| {
                let renamed =
                    edit::set(&prompts[at].prompt.raw, "name", &Raw::encode(&prompts[at].name));
                listed_item(&renamed, "name", form)
            },
        ),
    ];
    let name = Raw::encode(&shown.name);
    answer::fit(&mut sections, name.len() + instructions.as_ref().map_or(0, Raw::len));
    let names = ["tools", "resources", "resource_templates", "prompts"];
    let written = sections.each_ref().map(Section::write);
    let mut members = vec![("mcp_name", &name)];
    members.extend(names.into_iter().zip(&written));
    members.extend(instructions.as_ref().map(|text| ("instructions", text)));
    let note = answer::note(view, Some(&shown.name), &sections).map(|note| Raw::encode(&note));
    members.extend(note.as_ref().map(|note| ("note", note)));
    structured(&edit::set_each(&Raw::empty_object(), &members))
}

/// A result that says the same as text and as `structuredContent`.
fn structured(report: &Raw) -> Raw {
    let report = edit::escaped(report, is_hidden);
    let text = Raw::encode(&json!([{"type": "text", "text": report.to_string()}]));
    let members = [("content", &text), ("structuredContent", &report)];
    edit::set_each(&Raw::empty_object(), &members)
}

/// What the server says of itself: an agent that works through meta-tools has no other way to it.
pub(super) fn instructions(catalog: &ServerCatalog) -> Option<String> {
    let text = catalog.greeting.instructions.as_deref()?;
    let text = without_hidden(text);
    let end = text.floor_char_boundary(MAX_INSTRUCTIONS);
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text })
}

/// The tools of a server under the names by which they can be called now. Hosts that never see a new list
/// also need the schemas.
pub(super) fn tools_section<'a>(
    view: View<'a>,
    server: usize,
    exposed: &'a Exposed,
) -> Section<'a> {
    let form = match view.snapshot.settings.listing {
        Listing::Growing => Form::Described,
        Listing::Stable => Form::Full,
    };
    Section::new(exposed.names_for_model(), form, move |at, form| {
        let at = ToolRef { server, tool: exposed.for_model[at] };
        let name = match view.surface {
            Surface::Discover | Surface::Groups => view.snapshot.qualified(at),
            Surface::Activate | Surface::Direct => view.snapshot.listed_name(at).to_owned(),
        };
        tool_line(view, at, &name, form)
    })
}

/// A tool under `name`, with as much of its definition as is needed to call it.
pub(super) fn tool_line(view: View<'_>, at: ToolRef, name: &str, form: Form) -> Raw {
    let (_, tool) = view.snapshot.tool(at);
    let line = |description: &str| Raw::encode(&json!({"name": name, "description": description}));
    match form {
        Form::Full => {
            let schema = edit::get(&tool.raw, "inputSchema").unwrap_or_else(Raw::empty_object);
            edit::set(&line(&without_hidden(&tool.description)), "inputSchema", &schema)
        }
        Form::Described => line(&without_hidden(&tool.description)),
        Form::Brief => line(&sentence(&tool.description)),
        Form::Named | Form::Kinds | Form::Counted => Raw::encode(name),
    }
}

/// The first sentence of a description, on one clean line.
pub(super) fn sentence(description: &str) -> String {
    shortened(&super::one_line(first_sentence(description)), MAX_SENTENCE)
}

/// A resource, template or prompt; `key` is the member that names it.
fn listed_item(item: &Raw, key: &str, form: Form) -> Raw {
    const TOLD: [&str; 6] = ["uri", "uriTemplate", "name", "description", "mimeType", "arguments"];
    match form {
        Form::Full | Form::Described => pick(item, &TOLD),
        Form::Brief => {
            let about = edit::get_str(item, "description").unwrap_or_default();
            edit::set(&pick(item, &[key]), "description", &Raw::encode(&sentence(&about)))
        }
        Form::Named | Form::Kinds | Form::Counted => {
            edit::get(item, key).unwrap_or_else(|| Raw::encode(""))
        }
    }
}

/// An object with only these members, in this order, as they were written.
fn pick(object: &Raw, members: &[&str]) -> Raw {
    members.iter().fold(Raw::empty_object(), |picked, member| match edit::get(object, member) {
        Some(value) => edit::set(&picked, member, &value),
        None => picked,
    })
}
