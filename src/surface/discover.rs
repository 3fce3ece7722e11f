//! The `discover` surface: `discover_tool`, `use_tool`, and `load_mcp` when any server is lazy.

use serde_json::{Value, json};

use super::{
    Action, View, answered, budget, definition, failure, load,
    text::{first_sentence, near_misses},
};
use crate::{
    catalog::{Found, Match, Shown, ToolRef},
    wire::{Raw, edit},
};

pub(super) const DISCOVER_TOOL: &str = "discover_tool";
pub(super) const USE_TOOL: &str = "use_tool";
pub(super) const USE_READONLY_TOOL: &str = "use_readonly_tool";

const USAGE: &str = "Find tools with discover_tool, call them with use_tool.";

/// Answers to a query.
const BEST: usize = 10;

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![discover_tool_definition(view)];
    tools.extend(calling_tools(view));
    if has_lazy(view) {
        tools.push(load::definition(view));
    }
    tools
}

pub(super) fn instructions(view: View<'_>) -> String {
    if view.snapshot.sole.is_some() {
        return view.own_instructions().unwrap_or_else(|| USAGE.to_owned());
    }
    let preamble = if has_lazy(view) && has_offered(view) {
        format!("{USAGE} These servers sleep until load_mcp:")
    } else {
        USAGE.to_owned()
    };
    budget::compose(view, &preamble, false)
}

/// `use_tool`, and the half of it that only reads where that is wanted.
pub(super) fn calling_tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![use_tool_definition(view)];
    if view.snapshot.settings.split_calls {
        tools.push(use_readonly_tool_definition(view));
    }
    tools
}

/// Whether there is a server to load.
fn has_offered(view: View<'_>) -> bool {
    let mut servers = view.snapshot.servers.iter();
    view.snapshot.sole.is_none()
        && servers.any(|server| {
            matches!(server.shown(view.snapshot.settings.listing), Shown::Offered { .. })
        })
}

fn has_lazy(view: View<'_>) -> bool {
    view.snapshot.sole.is_none()
        && view.snapshot.servers.iter().any(|server| {
            server.is_lazy
                && !matches!(server.shown(view.snapshot.settings.listing), Shown::Nothing)
        })
}

fn discover_tool_definition(view: View<'_>) -> Raw {
    let mut preamble = "Find tools of the MCP servers behind this one. `tool_name` gives a tool's full definition, `query` searches; call what you found with use_tool.".to_owned();
    if has_lazy(view) && has_offered(view) {
        preamble.push_str("\nServers in <mcp_servers> are not loaded: call load_mcp with a server's name when a task needs it.");
    }
    definition::meta_tool(
        view,
        json!({
            "name": DISCOVER_TOOL,
            "description": budget::compose(view, &preamble, true),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "tool_name": {"type": "string", "description": "Get this tool's full definition"},
                    "query": {"type": "string", "description": "Search by words"},
                    "server": {"type": "string", "description": "Only this server's tools"},
                    "detail": {"type": "string", "enum": ["name", "brief", "full"]},
                },
            },
            "annotations": {"readOnlyHint": true},
        }),
    )
}

fn use_tool_definition(view: View<'_>) -> Raw {
    let description = "Call a tool found with discover_tool. Its result comes unchanged.";
    definition::meta_tool(view, caller_definition(USE_TOOL, description))
}

fn use_readonly_tool_definition(view: View<'_>) -> Raw {
    let description =
        "As use_tool, for tools that only read: those whose annotations say readOnlyHint.";
    let mut definition = caller_definition(USE_READONLY_TOOL, description);
    definition["annotations"] = json!({"readOnlyHint": true});
    definition::meta_tool(view, definition)
}

fn caller_definition(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_name": {"type": "string"},
                "tool_input": {"type": "object", "description": "The tool's arguments"},
            },
            "required": ["tool_name"],
        },
    })
}

/// Passes the call on with the tool's own name and arguments in place of ours.
pub(super) fn use_tool(view: View<'_>, params: &Raw, arguments: &Raw) -> Action {
    match named_call(view, USE_TOOL, arguments) {
        Ok((at, input)) => view.call_instead(at, params, &input),
        Err(action) => action,
    }
}

/// As `use_tool`, for tools that say of themselves that they change nothing.
pub(super) fn use_readonly_tool(view: View<'_>, params: &Raw, arguments: &Raw) -> Action {
    match named_call(view, USE_READONLY_TOOL, arguments) {
        Ok((at, input)) if is_readonly(view, at) => view.call_instead(at, params, &input),
        Ok((at, _)) => failure(format!(
            "The tool {:?} does not say that it only reads; call it with use_tool",
            view.snapshot.qualified(at)
        )),
        Err(action) => action,
    }
}

fn is_readonly(view: View<'_>, at: ToolRef) -> bool {
    let (_, tool) = view.snapshot.tool(at);
    let hint = edit::get(&tool.raw, "annotations")
        .and_then(|annotations| edit::get(&annotations, "readOnlyHint"));
    hint.is_some_and(|hint| hint.as_bytes() == b"true")
}

/// The tool that `arguments` names, and what it is to be given.
fn named_call(view: View<'_>, caller: &str, arguments: &Raw) -> Result<(ToolRef, Raw), Action> {
    let [name, input] = edit::get_each(arguments, ["tool_name", "tool_input"]);
    let Some(name) = name.and_then(|name| name.read::<String>().ok()) else {
        return Err(failure(format!("{caller} needs \"tool_name\"")));
    };
    let input = input.filter(|input| input.as_bytes() != b"null").unwrap_or_else(Raw::empty_object);
    if !input.is_object() {
        return Err(failure("\"tool_input\" must be an object: the tool's arguments"));
    }
    Ok((view.resolve(&name)?, input))
}

#[derive(Clone, Copy)]
pub(super) enum Detail {
    Name,
    Brief,
    Full,
}

pub(super) fn discover_tool(view: View<'_>, arguments: &Raw) -> Action {
    let members = ["tool_name", "query", "server", "detail"];
    let mut texts = [const { None }; 4];
    for ((text, member), value) in
        texts.iter_mut().zip(members).zip(edit::get_each(arguments, members))
    {
        let Some(value) = value else { continue };
        let Ok(given) = value.read::<String>() else {
            return failure(format!("{member:?} must be a string"));
        };
        *text = Some(given).filter(|given| !given.trim().is_empty());
    }
    let [tool_name, query, server, detail] = texts;
    let detail = match detail.as_deref() {
        None | Some("brief") => Detail::Brief,
        Some("name") => Detail::Name,
        Some("full") => Detail::Full,
        Some(other) => {
            return failure(format!("Unknown detail: {other:?}. It is one of: name, brief, full"));
        }
    };
    if let Some(name) = tool_name {
        return match view.resolve_known(&name) {
            Ok(at) => Action::Answer(answered(&full(view, at).to_string())),
            Err(action) => action,
        };
    }
    let server = match server.map(|name| find_server(view, &name)) {
        None => None,
        Some(Ok(server)) => Some(server),
        Some(Err(message)) => return failure(message),
    };
    match (query, server) {
        (Some(query), within) => found(view, &query, within, detail),
        (None, Some(server)) => all_of(view, server, detail),
        (None, None) => Action::Answer(answered(&everything(view).to_string())),
    }
}

pub(super) fn find_server(view: View<'_>, name: &str) -> Result<usize, String> {
    view.snapshot.find(name).ok_or_else(|| {
        let known = view.snapshot.servers.iter().filter(|server| server.is_known());
        let near = near_misses(name, known.map(|server| server.name.clone()));
        if near.is_empty() {
            format!("Unknown MCP server: {name:?}")
        } else {
            format!("Unknown MCP server: {name:?}. Did you mean: {}?", near.join(", "))
        }
    })
}

pub(super) fn found(view: View<'_>, query: &str, within: Option<usize>, detail: Detail) -> Action {
    if !view.snapshot.is_recalled {
        return Action::Recall;
    }
    let found = view.snapshot.search(query, within, BEST).into_iter();
    let lines: Vec<Raw> = found.map(|found| found_line(view, &found, detail)).collect();
    Action::Answer(answered(&Raw::encode(&lines).to_string()))
}

fn found_line(view: View<'_>, found: &Found, detail: Detail) -> Raw {
    let line = match found.what {
        Match::Tool(at) => line(view, at, detail),
        Match::Server(server) => {
            let server = &view.snapshot.servers[server];
            Raw::encode(&json!({
                "mcp_server": server.name,
                "description": server.description,
                "hint": "not loaded; load this server to see its tools",
            }))
        }
    };
    match detail {
        Detail::Full => {
            let why = json!({"score": found.score, "reasons": found.reasons});
            edit::set_within(&line, "_meta", &[("dormouse/match", &Raw::encode(&why))])
        }
        Detail::Name | Detail::Brief => line,
    }
}

fn all_of(view: View<'_>, server: usize, detail: Detail) -> Action {
    let Some(exposed) = view.snapshot.servers[server].exposed() else {
        return view.recall_or(Action::Load { server: view.id(server) });
    };
    let tools = 0..exposed.catalog.tools.len();
    let lines: Vec<Raw> = tools.map(|tool| line(view, ToolRef { server, tool }, detail)).collect();
    Action::Answer(answered(&Raw::encode(&lines).to_string()))
}

/// What the description says, without its budget.
fn everything(view: View<'_>) -> Raw {
    let mut servers = Vec::new();
    let mut tools = serde_json::Map::new();
    for (index, server) in view.snapshot.servers.iter().enumerate() {
        match server.shown(view.snapshot.settings.listing) {
            Shown::Nothing => {}
            Shown::Offered { trouble, .. } => servers.push(json!({
                "name": server.name, "description": server.description, "trouble": trouble,
            })),
            Shown::Live(exposed) => {
                let lines = (0..exposed.catalog.tools.len()).map(|tool| {
                    line(view, ToolRef { server: index, tool }, Detail::Brief).to_value()
                });
                tools.insert(server.name.clone(), lines.collect());
            }
        }
    }
    Raw::encode(&json!({"mcp_servers": servers, "tools": tools}))
}

fn line(view: View<'_>, at: ToolRef, detail: Detail) -> Raw {
    let (_, tool) = view.snapshot.tool(at);
    let name = view.snapshot.qualified(at);
    match detail {
        Detail::Name => Raw::encode(&name),
        Detail::Brief => {
            Raw::encode(&json!({"name": name, "description": first_sentence(&tool.description)}))
        }
        Detail::Full => full(view, at),
    }
}

fn full(view: View<'_>, at: ToolRef) -> Raw {
    let (_, tool) = view.snapshot.tool(at);
    edit::set(&tool.raw, "name", &Raw::encode(&view.snapshot.qualified(at)))
}
