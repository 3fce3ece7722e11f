//! The `discover` surface: `discover_tool`, `use_tool`, and `load_mcp` if any server is lazy.

use serde_json::{Value, json};

use super::{
    Action, View,
    action::{answered, failure},
    budget, definition,
    load::{self, MAX_SENTENCE_CHARS, sentence},
    near_misses::near_misses,
    own_tools::{DISCOVER_TOOL, USE_READONLY_TOOL, USE_TOOL},
    read_result,
    section::{self, DetailLevel, MAX_SECTIONS_BYTES, Section},
    text::repeated,
    toolsets,
};
use crate::{
    base::{is_hidden, one_line, shortened},
    catalog::{ExposedCatalog, Offer, OfferVisibility, SearchHit, SearchTarget, ToolRef},
    wire::{Raw, edit},
};

const USAGE: &str = "Find tools with discover_tool, call them with use_tool.";

const FINDER_DESCRIPTION: &str = "Find tools of the MCP servers behind this one. \
    Search with `query`, then call a tool with use_tool.";

/// The description of the parameter `query`: the words that help to find a tool (see
/// `docs/reference/search.md`).
pub(super) const QUERY_DESCRIPTION: &str = concat!(
    "What the tool should do, in words of its name, and its server if known; ",
    "finds unloaded servers too",
);

/// Maximum number of results of a query.
const MAX_RESULTS: usize = 10;

/// Number of bytes around a member of an object in addition to its key and value.
const MEMBER_PUNCTUATION_BYTES: usize = 4;

/// Maximum length of whole definitions in the results of a query without `detail`, in bytes.
const MAX_DEFINITIONS_BYTES: usize = 4000;

pub(super) fn tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![discover_tool_definition(view)];
    tools.extend(calling_tools(view));
    if has_lazy(view) {
        tools.push(load::definition(view));
    }
    tools.extend(definition::tools_with_interface(view));
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

/// Returns the tools that every surface has in stable lists, so that agents can find and call the
/// tools of a loaded server.
pub(super) fn stable_tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![finder_definition(view, FINDER_DESCRIPTION)];
    tools.extend(calling_tools(view));
    tools
}

/// Returns `use_tool`, and its read-only variant if the config asks for it.
pub(super) fn calling_tools(view: View<'_>) -> Vec<Raw> {
    let mut tools = vec![use_tool_definition(view)];
    if view.snapshot.settings.lists.split_calls {
        tools.push(use_readonly_tool_definition(view));
    }
    tools
}

/// Returns whether there is a server that can be loaded.
fn has_offered(view: View<'_>) -> bool {
    view.snapshot.sole.is_none()
        && view.shows_any(|it| matches!(it.visibility, OfferVisibility::Offered { .. }))
}

fn has_lazy(view: View<'_>) -> bool {
    view.snapshot.sole.is_none() && view.shows_any(|it| it.offer.is_lazy)
}

fn discover_tool_definition(view: View<'_>) -> Raw {
    let mut preamble = FINDER_DESCRIPTION.to_owned();
    if has_lazy(view) && has_offered(view) {
        preamble.push_str(
            "\nServers in <mcp_servers> are not loaded: call load_mcp with a server's name when a \
                task needs one.",
        );
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
                    "tool_name": {
                        "type": "string",
                        "description": "Get this tool's full definition",
                    },
                    "query": {"type": "string", "description": QUERY_DESCRIPTION},
                    "server": {"type": "string", "description": "Only this server's tools"},
                    "detail": {"type": "string", "enum": ["name", "brief", "full"]},
                },
            },
            "annotations": {"readOnlyHint": true},
        }),
    )
}

fn use_tool_definition(view: View<'_>) -> Raw {
    let description = "Call a tool found with discover_tool. Returns the tool's result unchanged.";
    definition::meta_tool(view, caller_definition(USE_TOOL, description))
}

fn use_readonly_tool_definition(view: View<'_>) -> Raw {
    let description = "Like use_tool, but only for read-only tools (annotation readOnlyHint).";
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

/// Forwards the call with the tool's own name and arguments. `caller` is the name of the meta-tool.
pub(super) fn use_tool(view: View<'_>, caller: &str, params: &Raw, arguments: &Raw) -> Action {
    match named_call(view, caller, arguments) {
        Ok((at, input)) => view.call_instead(at, params, &input),
        Err(action) => action,
    }
}

/// Returns the tool of a server that `arguments` names, and the arguments for that tool.
fn named_call(view: View<'_>, caller: &str, arguments: &Raw) -> Result<(ToolRef, Raw), Action> {
    let [name, input] = edit::get_each(arguments, ["tool_name", "tool_input"]);
    let Some(name) = name.and_then(|name| name.read::<String>().ok()) else {
        return Err(failure(format!("{caller} needs \"tool_name\"")));
    };
    let input = input.filter(|input| input.as_bytes() != b"null").unwrap_or_else(Raw::empty_object);
    if !input.is_object() {
        return Err(failure("\"tool_input\" must be an object: the tool's arguments"));
    }
    if read_result::is_meant(view, &name) {
        return Err(read_result::read_result(&input));
    }
    Ok((view.resolve(&name)?, input))
}

/// Parses `detail`. Returns `None` if it is absent.
///
/// # Errors
/// Returns the answer to a `detail` that does not exist.
pub(super) fn read_detail(detail: Option<&str>) -> Result<Option<DetailLevel>, Action> {
    match detail {
        None => Ok(None),
        Some("name") => Ok(Some(DetailLevel::Named)),
        Some("brief") => Ok(Some(DetailLevel::Brief)),
        Some("full") => Ok(Some(DetailLevel::Full)),
        Some(other) => Err(failure(format!(
            "Unknown detail: {}. Use one of: name, brief, full",
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
        if read_result::is_meant(view, &name) {
            return Action::Answer(answered(&read_result::definition(view), None));
        }
        return match view.resolve_known(&name) {
            Ok(at) => Action::Answer(answered(&full_definition(view, at), None)),
            Err(action) => action,
        };
    }
    let server = match server.map(|name| find_server(view, &name)) {
        None => None,
        Some(Ok(server)) => Some(server),
        Some(Err(message)) => return failure(message),
    };
    match (query, server) {
        (Some(query), within) => search_results(view, &query, within, detail),
        (None, Some(server)) => tools_of_offer(view, server, detail.unwrap_or(DetailLevel::Brief)),
        (None, None) => all_servers(view, detail.unwrap_or(DetailLevel::Brief)),
    }
}

pub(super) fn find_server(view: View<'_>, name: &str) -> Result<usize, String> {
    view.snapshot.find(name).ok_or_else(|| {
        let known = view.snapshot.offers.iter().filter(|server| server.is_known());
        let near = near_misses(name, known.map(|server| server.name.clone()));
        if near.is_empty() {
            format!("Unknown MCP server: {}", repeated(name))
        } else {
            format!("Unknown MCP server: {}. Did you mean: {}?", repeated(name), near.join(", "))
        }
    })
}

/// Returns the best results of a query.
///
/// `detail` is the level of detail of each result. Without it the best results have whole
/// definitions, up to [`MAX_DEFINITIONS_BYTES`] together, so that an agent can call them at once.
pub(super) fn search_results(
    view: View<'_>,
    query: &str,
    within: Option<usize>,
    detail: Option<DetailLevel>,
) -> Action {
    if !view.snapshot.is_recalled {
        return Action::Recall;
    }
    if !view.snapshot.is_indexed() {
        return Action::Index;
    }
    let found = view.snapshot.search(query, within, MAX_RESULTS);
    let level = detail.unwrap_or(DetailLevel::Brief);
    let short = if level == DetailLevel::Full { DetailLevel::Brief } else { level };
    // Escapes take more room than the characters that they stand for.
    let written = |line: Raw| edit::escaped(&line, is_hidden);
    let lines = found.iter().map(|found| written(result_line(view, found, short)));
    let mut lines: Vec<Raw> = lines.collect();
    let left = MAX_SECTIONS_BYTES.saturating_sub(lines.iter().map(|line| line.len() + 1).sum());
    let mut room = match detail {
        None => MAX_DEFINITIONS_BYTES.min(left),
        Some(DetailLevel::Full) => left,
        Some(_) => 0,
    };
    for (line, found) in lines.iter_mut().zip(&found) {
        let whole = match detail {
            None => result_line(view, found, DetailLevel::Full),
            Some(_) => explained(&result_line(view, found, DetailLevel::Full), found),
        };
        let whole = written(whole);
        if whole.len() <= room {
            room -= whole.len();
            *line = whole;
        }
    }
    // Even lines with names only may be too long.
    let mut size = 0;
    let fitting = lines.iter().take_while(|line| {
        size += line.len() + 1;
        size <= MAX_SECTIONS_BYTES
    });
    let fitting = fitting.count();
    let note = (fitting < lines.len()).then(|| section::rest_note(view, None));
    Action::Answer(answered(&Raw::array(&lines[..fitting]), note.as_deref()))
}

fn result_line(view: View<'_>, found: &SearchHit, level: DetailLevel) -> Raw {
    match found.target {
        SearchTarget::Tool(at) => {
            let line = line(view, at, level);
            match view.snapshot.tools().toolset_to_load(at) {
                Some(toolset) if line.is_object() => {
                    edit::set(&line, "toolset", &Raw::encode(toolset))
                }
                _ => line,
            }
        }
        SearchTarget::Offer(offer) => {
            let server = &view.snapshot.offers[offer];
            let description = server.description.as_deref();
            Raw::encode(&json!({
                "mcp_server": server.name,
                "description": description.map(|text| shortened(text, MAX_SENTENCE_CHARS)),
                "hint": "not loaded; load this server to see its tools",
            }))
        }
    }
}

/// Adds the score and the reasons to a result.
fn explained(line: &Raw, found: &SearchHit) -> Raw {
    let why = json!({"score": found.score, "reasons": found.reasons});
    edit::set_within(line, "_meta", &[("dormouse/match", &Raw::encode(&why))])
}

fn tools_of_offer(view: View<'_>, position: usize, level: DetailLevel) -> Action {
    let Some(exposed) = view.snapshot.offers[position].exposed() else {
        return view.recall_or(view.load(position));
    };
    let mut sections = [tool_section(view, position, exposed, exposed.for_model.clone(), level)];
    section::fit(&mut sections, 0);
    let note = section::note(view, Some(&view.snapshot.offers[position].name), &sections);
    let note = toolsets::with_siblings(view, position, exposed, note);
    Action::Answer(answered(&sections[0].write(), note.as_deref()))
}

/// Writes some tools of an offer, by their positions in its catalog.
fn tool_section<'a>(
    view: View<'a>,
    position: usize,
    exposed: &'a ExposedCatalog,
    tools: Vec<usize>,
    level: DetailLevel,
) -> Section<'a> {
    let names = tools.iter().map(|tool| exposed.catalog.tools[*tool].name.as_str());
    Section::new(names.collect(), level, move |at, level| {
        line(view, ToolRef { offer: position, tool: tools[at] }, level)
    })
}

/// Returns the same servers and tools as the description of `discover_tool`, but without its
/// budget.
fn all_servers(view: View<'_>, level: DetailLevel) -> Action {
    let mut offered = Vec::new();
    let mut names = Vec::new();
    let mut live = Vec::new();
    for listed in view.offers() {
        match listed.visibility {
            OfferVisibility::Hidden => {}
            OfferVisibility::Offered { trouble, .. } => offered.push((listed.offer, trouble)),
            OfferVisibility::Live(exposed) => {
                names.push(listed.offer.name.as_str());
                let tools = tool_section(view, listed.position, exposed, listed.for_model(), level);
                live.push(tools.shrinkable_to_a_number());
            }
        }
    }
    let servers = offered.iter().map(|(offer, _)| offer.name.as_str()).collect();
    let servers = Section::new(servers, level.max(DetailLevel::Described), |at, level| {
        let (offer, trouble) = offered[at];
        offer_line(offer, trouble, level)
    });
    let mut sections = vec![servers.shrinkable_to_a_number()];
    sections.append(&mut live);
    section::fit(
        &mut sections,
        names.iter().map(|name| name.len() + MEMBER_PUNCTUATION_BYTES).sum(),
    );
    let servers = sections[0].write();
    let room = section::MAX_SECTIONS_BYTES.saturating_sub(servers.len());
    let (tools, left_out) = together(&names, &sections[1..], room);
    let members = [("mcp_servers", &servers), ("tools", &tools)];
    let mut all = edit::set_each(&Raw::empty_object(), &members);
    if left_out > 0 {
        all = edit::set(&all, "more_servers", &Raw::encode(&left_out));
    }
    let note = section::note(view, None, &sections);
    Action::Answer(answered(&all, note.as_deref()))
}

/// Writes an object of the sections under their names, as many as fit into `room` bytes. Returns it
/// with the number of omitted sections.
fn together(names: &[&str], sections: &[Section<'_>], mut room: usize) -> (Raw, usize) {
    let written: Vec<Raw> = sections.iter().map(Section::write).collect();
    let all = names.iter().copied().zip(&written);
    let fitting: Vec<(&str, &Raw)> = all
        .take_while(|(name, text)| {
            let left = room.checked_sub(name.len() + text.len() + MEMBER_PUNCTUATION_BYTES);
            room = left.unwrap_or(0);
            left.is_some()
        })
        .collect();
    (edit::set_each(&Raw::empty_object(), &fitting), names.len() - fitting.len())
}

fn offer_line(offer: &Offer, trouble: Option<&str>, level: DetailLevel) -> Raw {
    let description = toolsets::about(offer);
    let description = match level {
        DetailLevel::Full | DetailLevel::Described => one_line(&description),
        DetailLevel::Brief => sentence(&description),
        DetailLevel::Named | DetailLevel::Prefixes | DetailLevel::Counted => {
            return Raw::encode(&offer.name);
        }
    };
    Raw::encode(&json!({"name": offer.name, "description": description, "trouble": trouble}))
}

fn line(view: View<'_>, at: ToolRef, level: DetailLevel) -> Raw {
    match level {
        DetailLevel::Full => full_definition(view, at),
        _ => load::tool_line(view, at, &view.snapshot.tools().qualified(at), level),
    }
}

fn full_definition(view: View<'_>, at: ToolRef) -> Raw {
    let (_, tool) = view.snapshot.tools().tool(at);
    edit::set(&tool.raw, "name", &Raw::encode(&view.snapshot.tools().qualified(at)))
}
