//! The `activate` surface: `activate_<server>` for every server that is to be activated, and the tools of every loaded one.

use serde_json::json;

use super::{
    Action, View,
    answer::{self, Form, Section},
    answered, apps, budget, definition, discover, load,
    text::{counted, sanitized},
};
use crate::{
    catalog::{Exposed, Presence, ServerView, Shown},
    config::Listing,
    wire::{Raw, edit},
};

pub(super) const PREFIX: &str = "activate_";

/// Tool names given before a load.
const NAMED: usize = 5;

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let (mut tools, names) = (Vec::new(), apps::Names::of(view));
    for server in &view.snapshot.servers {
        let shown = server.shown(view.snapshot.settings.listing);
        // Others come by themselves, unless something is in their way: a login, say.
        let is_stuck = matches!(shown, Shown::Offered { trouble: Some(_), .. });
        if server.is_lazy && !matches!(shown, Shown::Nothing) || is_stuck {
            tools.push(activate_definition(view, server, shown));
        }
        if let Shown::Live(exposed) = shown {
            tools.extend(definition::listed_tools(view, server, exposed, &names));
        }
    }
    if view.snapshot.settings.listing == Listing::Stable {
        tools.extend(discover::stable_tools(view));
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
    let mut rest = String::new();
    if let Shown::Live(exposed) | Shown::Offered { known: Some(exposed), .. } = shown {
        let all = exposed.names_for_model();
        let names: Vec<String> = all.iter().take(NAMED).map(|name| sanitized(name, 64)).collect();
        let more = if all.len() > NAMED { ", …" } else { "" };
        let count = counted(all.len(), "tool");
        rest.push_str(&format!(" This will load {count}: {}{more}", names.join(", ")));
    }
    if let Shown::Offered { trouble: Some(trouble), .. } = shown {
        rest.push_str(&format!(" ({})", sanitized(trouble, 500)));
    }
    let description = with_about(view, server, &rest);
    definition::meta_tool(
        view,
        json!({
            "name": format!("{PREFIX}{}", server.part),
            "description": description,
            "inputSchema": {"type": "object", "properties": {}},
        }),
    )
}

/// The description of an `activate_` tool, in which the server's own gives way to the budget.
fn with_about(view: View<'_>, server: &ServerView, rest: &str) -> String {
    let begin = format!("Activate the {} MCP server.", sanitized(&server.name, 64));
    let about = server.description.as_deref().unwrap_or_default();
    let budget = view.snapshot.settings.description_budget.unwrap_or(usize::MAX);
    let lengths = [1000, 500, 250, 120, 60, 30].map(|longest| sanitized(about, longest));
    let composed = lengths.into_iter().filter(|about| !about.is_empty());
    let composed = composed.map(|about| format!("{begin} {about}{rest}"));
    let whole = composed.chain([format!("{begin}{rest}")]).find(|text| text.len() <= budget);
    whole.unwrap_or(begin)
}

/// `None` when `name` is not that of an `activate_` tool.
pub(super) fn activate(view: View<'_>, name: &str) -> Option<Action> {
    let part = name.strip_prefix(PREFIX)?;
    let is_named = |server: &std::sync::Arc<ServerView>| server.part == part;
    let server = view.snapshot.servers.iter().position(is_named)?;
    let shown = &view.snapshot.servers[server];
    Some(match &shown.presence {
        Presence::Live { exposed, .. } => report(view, server, shown, exposed),
        Presence::Offered { .. } => Action::Load { server: shown.id },
        Presence::Evicted | Presence::Disabled => load::unknown_server(view, &shown.name),
    })
}

/// What an activated server has, and the names that can be called now.
fn report(view: View<'_>, server: usize, shown: &ServerView, exposed: &Exposed) -> Action {
    let catalog = &exposed.catalog;
    let mut about = json!({
        "activated": true,
        "server": shown.name,
        "toolCount": exposed.for_model.len(),
        "promptCount": catalog.prompts.len(),
        "resourceCount": catalog.resources.len(),
        "resourceTemplateCount": catalog.templates.len(),
    });
    if let Some(instructions) = load::instructions(catalog) {
        about["instructions"] = json!(instructions);
    }
    // Their kinds are those of the server's own names: under the listed ones all begin alike.
    let names = exposed.names_for_model();
    let mut sections = vec![Section::new(names, Form::Named, |at, _| {
        Raw::encode(&exposed.listed_names[exposed.for_model[at]])
    })];
    if view.snapshot.settings.listing == Listing::Stable {
        // The tools themselves never appear in the list.
        sections.push(load::tools_section(view, server, exposed));
    }
    let about = Raw::encode(&about);
    answer::fit(&mut sections, about.len());
    let written: Vec<Raw> = sections.iter().map(Section::write).collect();
    let members: Vec<(&str, &Raw)> = ["tools", "definitions"].into_iter().zip(&written).collect();
    let note = answer::note(view, Some(&shown.name), &sections);
    Action::Answer(answered(&edit::set_each(&about, &members), note.as_deref()))
}
