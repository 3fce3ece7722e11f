//! The `discover` surface: `discover_tool`, `use_tool`, and `load_mcp` when any server is lazy.

use serde_json::{Value, json};

use super::{
    Action, View,
    answer::{self, Form, ROOM, Section},
    answered, apps, budget, definition, failure,
    load::{self, MAX_SENTENCE, sentence},
    text::{near_misses, one_line, repeated, shortened},
};
use crate::{
    catalog::{Exposed, Found, Match, ServerView, Shown, ToolRef},
    config::is_hidden,
    wire::{Raw, edit},
};

pub(super) const DISCOVER_TOOL: &str = "discover_tool";
pub(super) const USE_TOOL: &str = "use_tool";
pub(super) const USE_READONLY_TOOL: &str = "use_readonly_tool";

const USAGE: &str = "Find tools with discover_tool, call them with use_tool.";

const FINDING: &str = "Find tools of the MCP servers behind this one. Search with `query`, then call a tool with use_tool.";

/// What helps a query (docs/search.md).
pub(super) const QUERY: &str =
    "What the tool does, in words of its name, and its server if known; finds unloaded servers too";

/// Answers to a query.
const BEST: usize = 10;

/// Bytes around a member of an object besides its key and value.
const PUNCTUATION: usize = 4;

/// Bytes of whole definitions in the answer to a query that does not say how much is wanted.
const MAX_DEFINITIONS: usize = 4000;

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![discover_tool_definition(view)];
    tools.extend(calling_tools(view));
    if has_lazy(view) {
        tools.push(load::definition(view));
    }
    tools.extend(apps::tools(view));
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

/// What lists that never change have on every surface, so that what a load brings can be found and called.
pub(super) fn stable_tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![finder_definition(view, FINDING)];
    tools.extend(calling_tools(view));
    tools
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
    let mut preamble = FINDING.to_owned();
    if has_lazy(view) && has_offered(view) {
        preamble.push_str("\nServers in <mcp_servers> are not loaded: call load_mcp with a server's name when a task needs it.");
    }
    finder_definition(view, &budget::compose(view, &preamble, true))
}

fn finder_definition(view: View<'_>, description: &str) -> Raw {
    definition::meta_tool(
        view,
        json!({
            "name": DISCOVER_TOOL,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {
                    "tool_name": {"type": "string", "description": "Get this tool's full definition"},
                    "query": {"type": "string", "description": QUERY},
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

/// What `detail` asks for; `None` where it is absent.
///
/// # Errors
/// The answer to a `detail` that does not exist.
pub(super) fn read_detail(detail: Option<&str>) -> Result<Option<Form>, Action> {
    match detail {
        None => Ok(None),
        Some("name") => Ok(Some(Form::Named)),
        Some("brief") => Ok(Some(Form::Brief)),
        Some("full") => Ok(Some(Form::Full)),
        Some(other) => Err(failure(format!(
            "Unknown detail: {}. It is one of: name, brief, full",
            repeated(other)
        ))),
    }
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
    let detail = match read_detail(detail.as_deref()) {
        Ok(detail) => detail,
        Err(action) => return action,
    };
    if let Some(name) = tool_name {
        return match view.resolve_known(&name) {
            Ok(at) => Action::Answer(answered(&full(view, at), None)),
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
        (None, Some(server)) => all_of(view, server, detail.unwrap_or(Form::Brief)),
        (None, None) => everything(view, detail.unwrap_or(Form::Brief)),
    }
}

pub(super) fn find_server(view: View<'_>, name: &str) -> Result<usize, String> {
    view.snapshot.find(name).ok_or_else(|| {
        let known = view.snapshot.servers.iter().filter(|server| server.is_known());
        let near = near_misses(name, known.map(|server| server.name.clone()));
        if near.is_empty() {
            format!("Unknown MCP server: {}", repeated(name))
        } else {
            format!("Unknown MCP server: {}. Did you mean: {}?", repeated(name), near.join(", "))
        }
    })
}

/// The best answers to a query. `detail`: how much is said of each; without it the best have their whole
/// definitions, so that they can be called at once, as far as these take up to `MAX_DEFINITIONS` bytes.
pub(super) fn found(
    view: View<'_>,
    query: &str,
    within: Option<usize>,
    detail: Option<Form>,
) -> Action {
    if !view.snapshot.is_recalled {
        return Action::Recall;
    }
    if !view.snapshot.is_indexed() {
        return Action::Index;
    }
    let found = view.snapshot.search(query, within, BEST);
    let form = detail.unwrap_or(Form::Brief);
    let short = if form == Form::Full { Form::Brief } else { form };
    // Escapes take more room than what they stand for.
    let written = |line: Raw| edit::escaped(&line, is_hidden);
    let lines = found.iter().map(|found| written(found_line(view, found, short)));
    let mut lines: Vec<Raw> = lines.collect();
    let left = ROOM.saturating_sub(lines.iter().map(|line| line.len() + 1).sum());
    let mut room = match detail {
        None => MAX_DEFINITIONS.min(left),
        Some(Form::Full) => left,
        Some(_) => 0,
    };
    for (line, found) in lines.iter_mut().zip(&found) {
        let whole = match detail {
            None => found_line(view, found, Form::Full),
            Some(_) => explained(&found_line(view, found, Form::Full), found),
        };
        let whole = written(whole);
        if whole.len() <= room {
            room -= whole.len();
            *line = whole;
        }
    }
    // Names may be long as well.
    let mut size = 0;
    let fitting = lines.iter().take_while(|line| {
        size += line.len() + 1;
        size <= ROOM
    });
    let fitting = fitting.count();
    let note = (fitting < lines.len()).then(|| answer::way_on(view, None));
    Action::Answer(answered(&Raw::array(&lines[..fitting]), note.as_deref()))
}

fn found_line(view: View<'_>, found: &Found, form: Form) -> Raw {
    match found.what {
        Match::Tool(at) => line(view, at, form),
        Match::Server(server) => {
            let server = &view.snapshot.servers[server];
            Raw::encode(&json!({
                "mcp_server": server.name,
                "description": server.description.as_deref().map(|text| shortened(text, MAX_SENTENCE)),
                "hint": "not loaded; load this server to see its tools",
            }))
        }
    }
}

/// The line with why it was found.
fn explained(line: &Raw, found: &Found) -> Raw {
    let why = json!({"score": found.score, "reasons": found.reasons});
    edit::set_within(line, "_meta", &[("dormouse/match", &Raw::encode(&why))])
}

fn all_of(view: View<'_>, server: usize, form: Form) -> Action {
    let Some(exposed) = view.snapshot.servers[server].exposed() else {
        return view.recall_or(Action::Load { server: view.id(server) });
    };
    let mut sections = [tools_of(view, server, exposed, form)];
    answer::fit(&mut sections, 0);
    let note = answer::note(view, Some(&view.snapshot.servers[server].name), &sections);
    Action::Answer(answered(&sections[0].write(), note.as_deref()))
}

fn tools_of<'a>(view: View<'a>, server: usize, exposed: &'a Exposed, form: Form) -> Section<'a> {
    Section::new(exposed.names_for_model(), form, move |at, form| {
        line(view, ToolRef { server, tool: exposed.for_model[at] }, form)
    })
}

/// What the description says, without its budget.
fn everything(view: View<'_>, form: Form) -> Action {
    let mut offered = Vec::new();
    let mut names = Vec::new();
    let mut live = Vec::new();
    for (index, server) in view.snapshot.servers.iter().enumerate() {
        match server.shown(view.snapshot.settings.listing) {
            Shown::Nothing => {}
            Shown::Offered { trouble, .. } => offered.push((server, trouble)),
            Shown::Live(exposed) => {
                names.push(server.name.as_str());
                live.push(tools_of(view, index, exposed, form).down_to_a_number());
            }
        }
    }
    let servers = offered.iter().map(|(server, _)| server.name.as_str()).collect();
    let servers = Section::new(servers, form.max(Form::Described), |at, form| {
        let (server, trouble) = offered[at];
        server_line(server, trouble, form)
    });
    let mut sections = vec![servers.down_to_a_number()];
    sections.append(&mut live);
    answer::fit(&mut sections, names.iter().map(|name| name.len() + PUNCTUATION).sum());
    let servers = sections[0].write();
    let room = answer::ROOM.saturating_sub(servers.len());
    let (tools, left_out) = together(&names, &sections[1..], room);
    let members = [("mcp_servers", &servers), ("tools", &tools)];
    let mut all = edit::set_each(&Raw::empty_object(), &members);
    if left_out > 0 {
        all = edit::set(&all, "more_servers", &Raw::encode(&left_out));
    }
    let note = answer::note(view, None, &sections);
    Action::Answer(answered(&all, note.as_deref()))
}

/// An object of the sections under their names, as many as fit into `room` bytes, and the number of those that
/// do not.
fn together(names: &[&str], sections: &[Section<'_>], mut room: usize) -> (Raw, usize) {
    let written: Vec<Raw> = sections.iter().map(Section::write).collect();
    let all = names.iter().copied().zip(&written);
    let fitting: Vec<(&str, &Raw)> = all
        .take_while(|(name, text)| {
            let left = room.checked_sub(name.len() + text.len() + PUNCTUATION);
            room = left.unwrap_or(0);
            left.is_some()
        })
        .collect();
    (edit::set_each(&Raw::empty_object(), &fitting), names.len() - fitting.len())
}

fn server_line(server: &ServerView, trouble: Option<&str>, form: Form) -> Raw {
    let description = server.description.as_deref().unwrap_or_default();
    let description = match form {
        Form::Full | Form::Described => one_line(description),
        Form::Brief => sentence(description),
        Form::Named | Form::Kinds | Form::Counted => return Raw::encode(&server.name),
    };
    Raw::encode(&json!({"name": server.name, "description": description, "trouble": trouble}))
}

fn line(view: View<'_>, at: ToolRef, form: Form) -> Raw {
    match form {
        Form::Full => full(view, at),
        _ => load::tool_line(view, at, &view.snapshot.qualified(at), form),
    }
}

fn full(view: View<'_>, at: ToolRef) -> Raw {
    let (_, tool) = view.snapshot.tool(at);
    edit::set(&tool.raw, "name", &Raw::encode(&view.snapshot.qualified(at)))
}
