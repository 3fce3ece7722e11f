//! The tools and instructions that a host sees: pure functions from a snapshot, a view and a
//! request to a list or an action (see `docs/design/surfaces.md`).
//!
//! This module does not know how a server is reached, nor which host makes the request.

mod activate;
mod budget;
mod definition;
mod direct;
mod discover;
mod groups;
mod load;
mod mcp_apps;
mod own_tools;
mod section;
mod text;

pub(crate) use mcp_apps::Apps;
pub(crate) use text::{counted, one_line, shortened};

use crate::{
    base::is_hidden,
    catalog::{OfferId, Presence, ServerId, Snapshot, ToolRef, ToolResolution, WithheldReason},
    config::Surface,
    wire::{Raw, edit},
};

/// A snapshot, and the way in which a host sees it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub surface: Surface,
    /// The state of MCP Apps, if the host can show the interfaces of tools.
    pub apps: Option<Apps>,
}

/// The way to proceed with a `tools/call`.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// A complete result, which dormouse composed itself.
    Answer(Raw),
    /// A load of this offer, after which the request is evaluated again.
    Load { offer: OfferId },
    /// A read of the stored catalogs of servers that are not loaded, after which the request is
    /// evaluated again.
    Recall,
    /// The creation of the search index, which takes a while, after which the request is evaluated
    /// again on the same snapshot.
    Index,
    /// A check whether this tool, withheld because its definition has changed, has been approved
    /// since. If so, the request is evaluated again; otherwise `result` is returned.
    Reexamine { server: ServerId, result: Raw },
    /// A `tools/call` of this server with `params`. Its result is returned unchanged.
    Forward { server: ServerId, params: Raw },
}

impl View<'_> {
    /// Returns the `tools` of `tools/list`.
    pub(crate) fn tools(self) -> Vec<Raw> {
        match self.surface {
            Surface::Discover => discover::tools(self),
            Surface::Activate => activate::tools(self),
            Surface::Groups => groups::tools(self),
            Surface::Direct => direct::tools(self),
        }
    }

    /// Returns the `instructions` for the handshake: the usage of this surface, and the servers.
    pub(crate) fn instructions(self) -> String {
        match self.surface {
            Surface::Discover => discover::instructions(self),
            Surface::Activate => activate::instructions(self),
            Surface::Groups => groups::instructions(self),
            Surface::Direct => direct::instructions(self),
        }
    }

    /// Returns the instructions of the only server, if it is live.
    fn own_instructions(self) -> Option<String> {
        let mut live = self.snapshot.live();
        live.find_map(|(_, _, exposed)| exposed.catalog.greeting.instructions.clone())
    }

    /// Evaluates the `params` of a `tools/call`.
    ///
    /// Every surface accepts the names that any surface lists, since a host may call a tool that it
    /// remembers from an earlier list.
    pub(crate) fn call(self, params: &Raw) -> Action {
        let [name, arguments] = edit::get_each(params, ["name", "arguments"]);
        let Some(name) = name.and_then(|name| name.read::<String>().ok()) else {
            return failure("tools/call needs the name of a tool");
        };
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        if let (Surface::Direct, Some(offer)) = (self.surface, self.snapshot.sole) {
            return self.call_of_sole(offer, &name, params);
        }
        if self.lists_tools() && self.snapshot.tools().listed(&name).is_some() {
            // A wrapped server may have a tool with the name of one of dormouse's tools.
            return self.call_directly(&name, params);
        }
        let own = match name.as_str() {
            own_tools::DISCOVER_TOOL => Some(discover::discover_tool(self, &arguments)),
            own_tools::USE_TOOL => Some(discover::use_tool(self, params, &arguments)),
            own_tools::USE_READONLY_TOOL if self.snapshot.settings.lists.split_calls => {
                Some(discover::use_readonly_tool(self, params, &arguments))
            }
            own_tools::LOAD_MCP if self.snapshot.sole.is_none() => {
                Some(load::load_mcp(self, &arguments))
            }
            own_tools::GET_DYNAMIC_TOOLS => Some(groups::get_dynamic_tools(self, &arguments)),
            own_tools::CALL_DYNAMIC_TOOL => {
                Some(groups::call_dynamic_tool(self, params, &arguments))
            }
            _ => activate::activate(self, &name),
        };
        own.unwrap_or_else(|| self.call_directly(&name, params))
    }

    /// Returns the server of the offer at this position.
    fn server(self, offer: usize) -> ServerId {
        self.snapshot.offers[offer].server()
    }

    /// Returns the action that loads the offer at this position.
    fn load(self, offer: usize) -> Action {
        Action::Load { offer: self.snapshot.offers[offer].id }
    }

    /// Returns whether the list contains tools of servers under their own names.
    fn lists_tools(self) -> bool {
        matches!(self.surface, Surface::Activate | Surface::Direct)
    }

    /// Returns whether the lists contain known tools of servers that are not loaded.
    pub(crate) fn shows_known(self) -> bool {
        self.lists_tools()
    }

    /// Handles a call in front of a single server. dormouse has no tools of its own here, so the
    /// server itself must reject a name that it does not list.
    fn call_of_sole(self, sole: usize, name: &str, params: &Raw) -> Action {
        let offer = &self.snapshot.offers[sole];
        match self.snapshot.tools().resolve_in(sole, name) {
            ToolResolution::Withheld { tool, why, .. } => self.withheld(sole, &tool, why),
            _ => match &offer.presence {
                Presence::Live { .. } => {
                    Action::Forward { server: offer.server(), params: params.clone() }
                }
                Presence::Offered { .. } => self.load(sole),
                Presence::Evicted | Presence::Disabled => {
                    failure(format!("server {:?} is not available", offer.name))
                }
            },
        }
    }

    fn call_directly(self, name: &str, params: &Raw) -> Action {
        match self.resolve(name) {
            Ok(at) => {
                let (_, tool) = self.snapshot.tools().tool(at);
                let params = if tool.name == name {
                    params.clone()
                } else {
                    edit::set(params, "name", &Raw::encode(&tool.name))
                };
                Action::Forward { server: self.server(at.offer), params }
            }
            Err(action) => action,
        }
    }

    /// Forwards a call that an agent made through one of dormouse's tools.
    fn call_instead(self, at: ToolRef, params: &Raw, arguments: &Raw) -> Action {
        let (_, tool) = self.snapshot.tools().tool(at);
        let name = Raw::encode(&tool.name);
        let params = edit::set_each(params, &[("name", &name), ("arguments", arguments)]);
        Action::Forward { server: self.server(at.offer), params }
    }

    /// Returns the live tool of this name, or else the action to take.
    fn resolve(self, name: &str) -> Result<ToolRef, Action> {
        let resolved = match self.snapshot.tools().resolve_tool(name) {
            ambiguous @ ToolResolution::Ambiguous { .. } => {
                self.resolve_for_app(name).unwrap_or(ambiguous)
            }
            resolved => resolved,
        };
        self.judge(name, resolved)
    }

    /// Returns the tool of this name of the server whose app the host has shown last.
    fn resolve_for_app(self, name: &str) -> Option<ToolResolution> {
        let mut offers = self.snapshot.offers_of(self.apps?.last_read?);
        offers.find_map(|(offer, _)| {
            let own = self.snapshot.tools().resolve_in(offer, name);
            matches!(own, ToolResolution::Tool(_)).then_some(own)
        })
    }

    /// Returns the tool of this name, loaded or only known, or else the action to take.
    fn resolve_known(self, name: &str) -> Result<ToolRef, Action> {
        match self.snapshot.tools().known_tool(name) {
            Some(at) => Ok(at),
            None => self.resolve(name),
        }
    }

    fn judge(self, name: &str, resolved: ToolResolution) -> Result<ToolRef, Action> {
        match resolved {
            ToolResolution::Tool(at) => Ok(at),
            ToolResolution::NeedsLoad { offer } => Err(self.load(offer)),
            ToolResolution::Ambiguous { candidates } => Err(failure(format!(
                "The tool name {} is ambiguous. It could be: {}",
                text::repeated(name),
                section::name_list(&candidates, MAX_NAME_LIST_BYTES)
            ))),
            ToolResolution::Withheld { offer, tool, why } => Err(self.withheld(offer, &tool, why)),
            ToolResolution::Unknown => Err(self.recall_or(failure(self.unknown_tool(name)))),
        }
    }

    /// Returns `action`, unless the stored catalogs of unloaded servers may change the outcome.
    fn recall_or(self, action: Action) -> Action {
        if self.snapshot.is_recalled { action } else { Action::Recall }
    }

    fn withheld(self, offer: usize, tool: &str, why: WithheldReason) -> Action {
        let name = &self.snapshot.offers[offer].name;
        match why {
            WithheldReason::SwitchedOff => failure(format!(
                "The tool {tool:?} of server {name:?} is disabled in the config of dormouse"
            )),
            WithheldReason::Changed => {
                Action::Reexamine { server: self.server(offer), result: blocked(name, tool) }
            }
        }
    }

    fn unknown_tool(self, name: &str) -> String {
        let name = &text::repeated(name);
        let names =
            self.snapshot.tools().known_tools().map(|at| self.snapshot.tools().qualified(at));
        let near = text::near_misses(name, names);
        let unloaded = self.snapshot.loadable();
        match (near.is_empty(), unloaded.is_empty()) {
            (false, _) => format!("Unknown tool: {name}. Did you mean: {}?", near.join(", ")),
            (true, false) => format!(
                "Unknown tool: {name}. These servers are not loaded yet and may have it: {}",
                section::name_list(&unloaded, MAX_NAME_LIST_BYTES)
            ),
            (true, true) => format!("Unknown tool: {name}"),
        }
    }
}

/// Returns whether the `params` of a `tools/call` name a tool of dormouse that calls a server's
/// tool.
pub(crate) fn calls_another(params: &Raw) -> bool {
    let calling = [own_tools::USE_TOOL, own_tools::USE_READONLY_TOOL, own_tools::CALL_DYNAMIC_TOOL];
    edit::get_str(params, "name").is_some_and(|name| calling.contains(&name.as_str()))
}

/// Maximum length of a list of names in an error, in bytes.
const MAX_NAME_LIST_BYTES: usize = 4000;

/// Returns a tool result that reports an error.
fn failure(message: impl AsRef<str>) -> Action {
    Action::Answer(failed(message))
}

/// Returns the result of a `tools/call` that failed before it reached the server.
pub(crate) fn failed(message: impl AsRef<str>) -> Raw {
    Raw::encode(&serde_json::json!({
        "content": [{"type": "text", "text": message.as_ref()}],
        "isError": true,
    }))
}

/// Returns the result of a call of a changed tool that has to be approved first.
pub(crate) fn blocked(server: &str, tool: &str) -> Raw {
    failed(format!(
        "The tool {tool:?} of server {server:?} is blocked: its definition has changed since it \
         was first seen, or cannot be compared. The user has to review it and run: dormouse \
         approve {server} {tool}"
    ))
}

/// Returns the result of a `tools/call` with JSON as its text, and a note on how to see what the
/// text omits.
fn answered(json: &Raw, note: Option<&str>) -> Raw {
    let json = edit::escaped(json, is_hidden).to_string();
    let texts = std::iter::once(json.as_str()).chain(note);
    let content: Vec<_> =
        texts.map(|text| serde_json::json!({"type": "text", "text": text})).collect();
    Raw::encode(&serde_json::json!({"content": content}))
}
