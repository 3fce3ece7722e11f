//! The tool `load_mcp`: its definition, and the report on a loaded server.

use serde_json::json;

use super::{
    Action, View,
    action::failure,
    definition,
    name_list::{MAX_NAME_LIST_BYTES, name_list},
    own_tools::LOAD_MCP,
    section::{self, DetailLevel, Section},
    text::{first_sentence, repeated, without_hidden},
    toolsets,
};
use crate::{
    base::{is_hidden, one_line, shortened},
    catalog::{ExposedCatalog, ExposedPrompt, Offer, Presence, ServerCatalog, ToolRef},
    config::{Listing, Surface},
    wire::{Raw, edit},
};

/// Maximum length of a server's instructions in a report, in bytes.
const MAX_INSTRUCTIONS_BYTES: usize = 1500;

/// Maximum length of a first sentence, in characters.
pub(super) const MAX_SENTENCE_CHARS: usize = 300;

pub(super) fn definition(view: View<'_>) -> Raw {
    definition::meta_tool(
        view,
        json!({
            "name": LOAD_MCP,
            "description": "Load an MCP server from <mcp_servers> and list its tools. Loading it \
                again has no effect.",
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

/// Loads the server, or reports its contents if it is loaded.
pub(super) fn load_mcp(view: View<'_>, arguments: &Raw) -> Action {
    let Some(name) = edit::get_str(arguments, "mcp_name") else {
        return failure("load_mcp needs \"mcp_name\", the name of a server");
    };
    let Some(server) = view.snapshot.find(&name) else { return unknown_server(view, &name) };
    let offer = &view.snapshot.offers[server];
    match &offer.presence {
        Presence::Live { exposed, .. } => Action::Answer(report(view, server, offer, exposed)),
        _ => view.load(server),
    }
}

pub(super) fn unknown_server(view: View<'_>, name: &str) -> Action {
    let loadable = view.snapshot.loadable();
    let loadable = if loadable.is_empty() {
        "(none)".to_owned()
    } else {
        name_list(&loadable, MAX_NAME_LIST_BYTES)
    };
    failure(format!(
        "Unknown MCP server: {}. Available servers to load: {loadable}",
        repeated(name)
    ))
}

/// Returns the contents of a loaded server, as text and as `structuredContent`.
fn report(view: View<'_>, position: usize, offer: &Offer, exposed: &ExposedCatalog) -> Raw {
    let catalog = &exposed.catalog;
    let prompts: Vec<_> = view.snapshot.merged_lists().prompts();
    let is_own = |prompt: &&ExposedPrompt<'_>| view.server(prompt.offer) == offer.server();
    let prompts: Vec<_> = prompts.iter().filter(is_own).collect();
    let instructions = instructions(catalog).map(|text| Raw::encode(&text));
    let resources = catalog.resources.iter().map(|resource| resource.uri.as_str()).collect();
    let templates = catalog.templates.iter().map(|t| t.uri_template.as_str()).collect();
    let mut sections = [
        tools_section(view, position, exposed),
        Section::new(resources, DetailLevel::Described, |at, level| {
            listed_item(&catalog.resources[at].raw, "uri", level)
        }),
        Section::new(templates, DetailLevel::Described, |at, level| {
            listed_item(&catalog.templates[at].raw, "uriTemplate", level)
        }),
        Section::new(
            prompts.iter().map(|exposed| exposed.name.as_str()).collect(),
            DetailLevel::Described,
            |at, level| {
                let renamed =
                    edit::set(&prompts[at].prompt.raw, "name", &Raw::encode(&prompts[at].name));
                listed_item(&renamed, "name", level)
            },
        ),
    ];
    let name = Raw::encode(&offer.name);
    section::fit(&mut sections, name.len() + instructions.as_ref().map_or(0, Raw::len));
    let names = ["tools", "resources", "resource_templates", "prompts"];
    let written = sections.each_ref().map(Section::write);
    let mut members = vec![("mcp_name", &name)];
    members.extend(names.into_iter().zip(&written));
    members.extend(instructions.as_ref().map(|text| ("instructions", text)));
    let note = section::note(view, Some(&offer.name), &sections);
    let note = toolsets::with_siblings(view, position, exposed, note);
    let note = note.map(|note| Raw::encode(&note));
    members.extend(note.as_ref().map(|note| ("note", note)));
    structured(&edit::set_each(&Raw::empty_object(), &members))
}

/// Returns a result with the same contents as text and as `structuredContent`.
fn structured(report: &Raw) -> Raw {
    let report = edit::escaped(report, is_hidden);
    let text = Raw::encode(&json!([{"type": "text", "text": report.to_string()}]));
    let members = [("content", &text), ("structuredContent", &report)];
    edit::set_each(&Raw::empty_object(), &members)
}

/// Returns the server's own instructions. An agent that works through meta-tools has no other
/// access to them.
pub(super) fn instructions(catalog: &ServerCatalog) -> Option<String> {
    let text = catalog.greeting.instructions.as_deref()?;
    let text = without_hidden(text);
    let end = text.floor_char_boundary(MAX_INSTRUCTIONS_BYTES);
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text })
}

/// Returns the tools of a server under the names by which they can be called now. With stable lists
/// the section includes the schemas, since the host never receives a new list.
pub(super) fn tools_section<'a>(
    view: View<'a>,
    position: usize,
    exposed: &'a ExposedCatalog,
) -> Section<'a> {
    let level = match view.snapshot.settings.lists.listing {
        Listing::Growing => DetailLevel::Described,
        Listing::Stable => DetailLevel::Full,
    };
    Section::new(exposed.names_for_model(), level, move |at, level| {
        let at = ToolRef { offer: position, tool: exposed.for_model[at] };
        let name = match view.surface {
            Surface::Discover | Surface::Groups => view.snapshot.tools().qualified(at),
            Surface::Activate | Surface::Direct => view.snapshot.tools().listed_name(at).to_owned(),
        };
        tool_line(view, at, &name, level)
    })
}

/// Writes a tool under `name`, with as much of its definition as `level` asks for.
pub(super) fn tool_line(view: View<'_>, at: ToolRef, name: &str, level: DetailLevel) -> Raw {
    let (_, tool) = view.snapshot.tools().tool(at);
    let line = |description: &str| Raw::encode(&json!({"name": name, "description": description}));
    match level {
        DetailLevel::Full => {
            let schema = edit::get(&tool.raw, "inputSchema").unwrap_or_else(Raw::empty_object);
            edit::set(&line(&without_hidden(&tool.description)), "inputSchema", &schema)
        }
        DetailLevel::Described => line(&without_hidden(&tool.description)),
        DetailLevel::Brief => line(&sentence(&tool.description)),
        DetailLevel::Named | DetailLevel::Prefixes | DetailLevel::Counted => Raw::encode(name),
    }
}

/// Returns the first sentence of a description on one clean line.
pub(super) fn sentence(description: &str) -> String {
    shortened(&one_line(first_sentence(description)), MAX_SENTENCE_CHARS)
}

/// Writes a resource, template or prompt. `key` is the member that names it.
fn listed_item(item: &Raw, key: &str, level: DetailLevel) -> Raw {
    const REPORTED_MEMBERS: [&str; 6] =
        ["uri", "uriTemplate", "name", "description", "mimeType", "arguments"];
    match level {
        DetailLevel::Full | DetailLevel::Described => pick(item, &REPORTED_MEMBERS),
        DetailLevel::Brief => {
            let about = edit::get_str(item, "description").unwrap_or_default();
            edit::set(&pick(item, &[key]), "description", &Raw::encode(&sentence(&about)))
        }
        DetailLevel::Named | DetailLevel::Prefixes | DetailLevel::Counted => {
            edit::get(item, key).unwrap_or_else(|| Raw::encode(""))
        }
    }
}

/// Returns an object with only these members, in this order, as they were written.
fn pick(object: &Raw, members: &[&str]) -> Raw {
    members.iter().fold(Raw::empty_object(), |picked, member| match edit::get(object, member) {
        Some(value) => edit::set(&picked, member, &value),
        None => picked,
    })
}
