//! The `activate` surface: `activate_<server>` for every server that has to be activated, and the
//! tools of every loaded server.

use serde_json::json;

use super::{
    Action, View,
    action::answered,
    budget, definition, discover, load, mcp_apps,
    own_tools::ACTIVATE_PREFIX,
    read_result,
    section::{self, DetailLevel, Section},
    text::sanitized,
    toolsets,
};
use crate::{
    base::counted,
    catalog::{ExposedCatalog, Offer, OfferVisibility, Presence},
    config::Listing,
    wire::{Raw, edit},
};

/// Maximum number of tool names in the description of an `activate_` tool.
const MAX_NAMED_TOOLS: usize = 5;

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let (mut tools, names) = (Vec::new(), mcp_apps::InterfaceToolNames::of(view));
    for listed in &view.offers() {
        let (offer, visibility) = (listed.offer, listed.visibility);
        // Other servers load by themselves, unless a problem prevents it, such as a missing login.
        let is_stuck = matches!(visibility, OfferVisibility::Offered { trouble: Some(_), .. });
        if offer.is_lazy && !matches!(visibility, OfferVisibility::Hidden) || is_stuck {
            tools.push(activate_definition(view, offer, visibility));
        }
        tools.extend(definition::listed_tools(view, listed, &names));
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
    let preamble =
        "Tools of sleeping MCP servers appear once their activate_ tool has been called.";
    budget::compose(view, preamble, false)
}

fn activate_definition(view: View<'_>, offer: &Offer, visibility: OfferVisibility<'_>) -> Raw {
    let mut rest = String::new();
    if let OfferVisibility::Live(exposed) | OfferVisibility::Offered { known: Some(exposed), .. } =
        visibility
    {
        let all = exposed.names_for_model();
        let names: Vec<String> =
            all.iter().take(MAX_NAMED_TOOLS).map(|name| sanitized(name, 64)).collect();
        let more = if all.len() > MAX_NAMED_TOOLS { ", …" } else { "" };
        let count = counted(all.len(), "tool");
        rest.push_str(&format!(" Loads {count}: {}{more}", names.join(", ")));
    }
    if let OfferVisibility::Offered { trouble: Some(trouble), .. } = visibility {
        rest.push_str(&format!(" ({})", sanitized(trouble, 500)));
    }
    let description = with_about(view, offer, &rest);
    definition::meta_tool(
        view,
        json!({
            "name": format!("{ACTIVATE_PREFIX}{}", offer.parts.own),
            "description": description,
            "inputSchema": {"type": "object", "properties": {}},
        }),
    )
}

/// Returns the description of an `activate_` tool. The server's own description is shortened to fit
/// the budget.
fn with_about(view: View<'_>, offer: &Offer, rest: &str) -> String {
    let name = sanitized(&offer.name, 64);
    let begin = match (offer.id.is_whole(), offer.is_divided()) {
        (true, false) => format!("Activate the {name} MCP server."),
        (true, true) => format!("Activate all of the {name} MCP server; prefer its toolsets."),
        (false, _) => format!("Activate the toolset {name}."),
    };
    let about = offer.description.as_deref().unwrap_or_default();
    let budget = view.snapshot.settings.lists.description_budget.unwrap_or(usize::MAX);
    let lengths = [1000, 500, 250, 120, 60, 30].map(|longest| sanitized(about, longest));
    let composed = lengths.into_iter().filter(|about| !about.is_empty());
    let composed = composed.map(|about| format!("{begin} {about}{rest}"));
    let whole = composed.chain([format!("{begin}{rest}")]).find(|text| text.len() <= budget);
    whole.unwrap_or(begin)
}

/// Handles a call of an `activate_` tool. Returns `None` if `name` is not the name of such a tool.
pub(super) fn activate(view: View<'_>, name: &str) -> Option<Action> {
    let part = name.strip_prefix(ACTIVATE_PREFIX)?;
    let is_named = |offer: &std::sync::Arc<Offer>| offer.parts.own == part;
    let position = view.snapshot.offers.iter().position(is_named)?;
    let offer = &view.snapshot.offers[position];
    Some(match &offer.presence {
        Presence::Live { exposed, .. } => report(view, position, offer, exposed),
        Presence::Offered { .. } => view.load(position),
        Presence::Evicted | Presence::Disabled => load::unknown_server(view, &offer.name),
    })
}

/// Returns the contents of an activated server, and the names that can be called now.
fn report(view: View<'_>, position: usize, offer: &Offer, exposed: &ExposedCatalog) -> Action {
    let catalog = &exposed.catalog;
    let mut about = json!({
        "activated": true,
        "server": offer.name,
        "toolCount": exposed.for_model.len(),
        "promptCount": catalog.prompts.len(),
        "resourceCount": catalog.resources.len(),
        "resourceTemplateCount": catalog.templates.len(),
    });
    if let Some(instructions) = load::instructions(catalog) {
        about["instructions"] = json!(instructions);
    }
    // The names are grouped by the server's own names, because all listed names begin alike.
    let names = exposed.names_for_model();
    let mut sections = vec![Section::new(names, DetailLevel::Named, |at, _| {
        Raw::encode(&exposed.listed_names[exposed.for_model[at]])
    })];
    if view.snapshot.settings.lists.listing == Listing::Stable {
        // In stable lists the tools themselves never appear.
        sections.push(load::tools_section(view, position, exposed));
    }
    let about = Raw::encode(&about);
    section::fit(&mut sections, about.len());
    let written: Vec<Raw> = sections.iter().map(Section::write).collect();
    let members: Vec<(&str, &Raw)> = ["tools", "definitions"].into_iter().zip(&written).collect();
    let note = section::note(view, Some(&offer.name), &sections);
    let note = toolsets::with_siblings(view, position, exposed, note);
    Action::Answer(answered(&edit::set_each(&about, &members), note.as_deref()))
}
