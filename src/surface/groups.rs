//! The `groups` surface: `get_dynamic_tools` and `call_dynamic_tool`, with each server as a group.

use serde_json::json;

use super::{
    Action, View,
    action::{answered, failure},
    budget::{self, OfferLine},
    definition, discover, load,
    own_tools::{CALL_DYNAMIC_TOOL, GET_DYNAMIC_TOOLS},
    read_result,
    section::{self, DetailLevel, Section},
    toolsets,
};
use crate::{
    catalog::{ListedOffer, OfferVisibility, Presence, ToolRef},
    config::Listing,
    wire::{Raw, edit},
};

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let get = json!({
        "name": GET_DYNAMIC_TOOLS,
        "description": described(
            view,
            "Get the tools of a group with their schemas, or find tools of any group with `query`; \
             call them with call_dynamic_tool.",
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "group": {"type": "string", "description": "The group's name"},
                "query": {"type": "string", "description": discover::QUERY_DESCRIPTION},
                "detail": {"type": "string", "enum": ["name", "brief", "full"]},
            },
        },
        "annotations": {"readOnlyHint": true},
    });
    let call = json!({
        "name": CALL_DYNAMIC_TOOL,
        "description": described(view, "Call a tool of a group. Returns the tool's result \
            unchanged."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "group": {"type": "string", "description": "The group's name"},
                "name": {"type": "string", "description": "The tool's name"},
                "args": {"type": "object", "description": "The tool's arguments"},
            },
            "required": ["group", "name"],
        },
    });
    let mut tools = vec![definition::meta_tool(view, get), definition::meta_tool(view, call)];
    if view.snapshot.settings.lists.listing == Listing::Stable {
        tools.extend(discover::calling_tools(view));
    }
    tools.extend(definition::tools_with_interface(view));
    tools
}

pub(super) fn instructions(view: View<'_>) -> String {
    let preamble =
        "Get the tools of a group with get_dynamic_tools, call them with call_dynamic_tool.";
    described(view, preamble)
}

/// Returns `preamble` and the groups with their descriptions. A failed group has the cause of its
/// failure.
fn described(view: View<'_>, preamble: &str) -> String {
    let lines = view.offers().iter().filter_map(|listed| line(view, listed)).collect();
    budget::compose_groups(view, preamble, lines)
}

fn line(view: View<'_>, listed: &ListedOffer<'_>) -> Option<OfferLine> {
    let server = listed.offer;
    let about = toolsets::about(server);
    let cause = server
        .failure
        .as_deref()
        .filter(|_| view.snapshot.settings.lists.listing == Listing::Growing);
    let failure = match (listed.visibility, &server.presence) {
        (OfferVisibility::Offered { trouble: Some(trouble), .. }, _) => format!(" ({trouble})"),
        (OfferVisibility::Offered { trouble: None, .. }, _) => {
            cause.map_or_else(String::new, |cause| format!(" (failed: {cause})"))
        }
        (OfferVisibility::Hidden, Presence::Evicted) => {
            let cause = cause.unwrap_or("unknown cause");
            format!(" (failed three times and is not available: {cause})")
        }
        (OfferVisibility::Hidden, _) => return None,
        (OfferVisibility::Live(_), _) => String::new(),
    };
    Some(OfferLine::new(&server.name, &format!("{about}{failure}")))
}

/// Returns a JSON array of definitions; with a query the best matches over all groups, or within
/// one group.
pub(super) fn get_dynamic_tools(view: View<'_>, arguments: &Raw) -> Action {
    let text = |member| edit::get_str(arguments, member).filter(|text| !text.trim().is_empty());
    let group = match text("group").map(|group| discover::find_server(view, &group)) {
        None => None,
        Some(Ok(server)) => Some(server),
        Some(Err(message)) => return failure(message),
    };
    let detail = match discover::read_detail(text("detail").as_deref()) {
        Ok(detail) => detail.unwrap_or(DetailLevel::Full),
        Err(action) => return action,
    };
    match (text("query"), group) {
        (Some(query), within) => discover::search_results(view, &query, within, Some(detail)),
        (None, None) => {
            failure("get_dynamic_tools needs \"group\", the name of a group, or \"query\"")
        }
        (None, Some(server)) => match view.snapshot.offers[server].exposed() {
            None => view.recall_or(view.load(server)),
            Some(exposed) => {
                let names = exposed.names_for_model();
                let mut sections = [Section::new(names, detail, |at, level| {
                    let tool = exposed.for_model[at];
                    let name = &exposed.catalog.tools[tool].name;
                    load::tool_line(view, ToolRef { offer: server, tool }, name, level)
                })];
                section::fit(&mut sections, 0);
                let group = &view.snapshot.offers[server].name;
                let note = section::note(view, Some(group), &sections);
                let note = toolsets::with_siblings(view, server, exposed, note);
                Action::Answer(answered(&sections[0].write(), note.as_deref()))
            }
        },
    }
}

/// Forwards the call with the tool's own name and arguments.
pub(super) fn call_dynamic_tool(view: View<'_>, params: &Raw, arguments: &Raw) -> Action {
    let [group, name, args] = edit::get_each(arguments, ["group", "name", "args"]);
    let text = |value: Option<Raw>| value.and_then(|value| value.read::<String>().ok());
    let (Some(group), Some(name)) = (text(group), text(name)) else {
        return failure("call_dynamic_tool needs \"group\" and \"name\"");
    };
    // Some models send null for members that they omit.
    let args = args.filter(|args| args.as_bytes() != b"null").unwrap_or_else(Raw::empty_object);
    if !args.is_object() {
        return failure("\"args\" must be an object: the tool's arguments");
    }
    if read_result::is_in_group(view, &group, &name) {
        return read_result::read_result(&args);
    }
    let server = match discover::find_server(view, &group) {
        Ok(server) => server,
        Err(message) => return failure(message),
    };
    // A search returns the name with its server before it.
    let server_name = view.snapshot.offers[server].server_name();
    let own_name = [group.as_str(), server_name]
        .iter()
        .find_map(|start| name.strip_prefix(start)?.strip_prefix('/'));
    let resolved = view.snapshot.tools().resolve_in(server, own_name.unwrap_or(&name));
    match view.judge(&format!("{group}/{}", own_name.unwrap_or(&name)), resolved) {
        Ok(at) => view.call_instead(at, params, &args),
        Err(action) => action,
    }
}
