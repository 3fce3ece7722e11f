//! What the host sees: from (snapshot, view, request) to a listing or an action (DESIGN.md section 3).
//!
//! Pure. It must not know how a server is reached, nor which host asks.

mod activate;
mod answer;
mod apps;
mod budget;
mod definition;
mod direct;
mod discover;
mod groups;
mod load;
mod text;

pub use apps::Apps;
pub use text::{counted, one_line, shortened};

use crate::{
    catalog::{Presence, Resolved, ServerId, Snapshot, ToolRef, Withheld},
    config::{Surface, is_hidden},
    wire::{Raw, edit},
};

/// The snapshot to draw from, and how to draw it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub surface: Surface,
    /// Where the host can show the interfaces of tools (MCP Apps).
    pub apps: Option<Apps>,
}

/// What a `tools/call` comes to.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// A complete result of our own.
    Answer(Raw),
    /// Load this server, and look at the request once more.
    Load { server: ServerId },
    /// Read what is known of the servers that are not loaded, and look once more.
    Recall,
    /// Index what is known, which takes a while, and look at the same snapshot once more.
    Index,
    /// This tool is withheld because it has changed. Where it has been approved meanwhile, look once more;
    /// else `result` is the answer.
    Reexamine { server: ServerId, result: Raw },
    /// Pass `params` on to this server's `tools/call`, and its result back unchanged.
    Forward { server: ServerId, params: Raw },
}

impl View<'_> {
    /// The `tools` of `tools/list`.
    pub fn tools(self) -> Vec<Raw> {
        match self.surface {
            Surface::Discover => discover::tools(self),
            Surface::Activate => activate::tools(self),
            Surface::Groups => groups::tools(self),
            Surface::Direct => direct::tools(self),
        }
    }

    /// The `instructions` for the handshake: how to use this surface, and which servers there are.
    pub fn instructions(self) -> String {
        match self.surface {
            Surface::Discover => discover::instructions(self),
            Surface::Activate => activate::instructions(self),
            Surface::Groups => groups::instructions(self),
            Surface::Direct => direct::instructions(self),
        }
    }

    /// What the only server says of itself.
    fn own_instructions(self) -> Option<String> {
        let mut live = self.snapshot.live();
        live.find_map(|(_, _, exposed)| exposed.catalog.greeting.instructions.clone())
    }

    /// Evaluates the `params` of a `tools/call`.
    ///
    /// Every name that any surface lists is understood in all of them: a host may call what it
    /// remembers from before.
    pub fn call(self, params: &Raw) -> Action {
        let [name, arguments] = edit::get_each(params, ["name", "arguments"]);
        let Some(name) = name.and_then(|name| name.read::<String>().ok()) else {
            return failure("tools/call needs the name of a tool");
        };
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        if let (Surface::Direct, Some(server)) = (self.surface, self.snapshot.sole) {
            return self.call_of_sole(server, &name, params);
        }
        if self.lists_tools() && self.snapshot.listed(&name).is_some() {
            // A wrapped server may have a tool of a name that is ours elsewhere.
            return self.call_directly(&name, params);
        }
        let own = match name.as_str() {
            discover::DISCOVER_TOOL => Some(discover::discover_tool(self, &arguments)),
            discover::USE_TOOL => Some(discover::use_tool(self, params, &arguments)),
            discover::USE_READONLY_TOOL if self.snapshot.settings.split_calls => {
                Some(discover::use_readonly_tool(self, params, &arguments))
            }
            load::LOAD_MCP if self.snapshot.sole.is_none() => {
                Some(load::load_mcp(self, &arguments))
            }
            groups::GET_DYNAMIC_TOOLS => Some(groups::get_dynamic_tools(self, &arguments)),
            groups::CALL_DYNAMIC_TOOL => Some(groups::call_dynamic_tool(self, params, &arguments)),
            _ => activate::activate(self, &name),
        };
        own.unwrap_or_else(|| self.call_directly(&name, params))
    }

    /// Of the server at this position.
    fn id(self, server: usize) -> ServerId {
        self.snapshot.servers[server].id
    }

    /// Whether tools of servers stand in the list under their own names.
    fn lists_tools(self) -> bool {
        matches!(self.surface, Surface::Activate | Surface::Direct)
    }

    /// Whether what is known of servers that are not loaded shows in the lists.
    pub fn shows_known(self) -> bool {
        self.lists_tools()
    }

    /// Nothing here is ours: a name that the server does not list is its own to refuse.
    fn call_of_sole(self, server: usize, name: &str, params: &Raw) -> Action {
        let shown = &self.snapshot.servers[server];
        match self.snapshot.resolve_in(server, name) {
            Resolved::Withheld { tool, why, .. } => self.withheld(server, &tool, why),
            _ => match &shown.presence {
                Presence::Live { .. } => {
                    Action::Forward { server: shown.id, params: params.clone() }
                }
                Presence::Offered { .. } => Action::Load { server: shown.id },
                Presence::Evicted | Presence::Disabled => {
                    failure(format!("server {:?} is not available", shown.name))
                }
            },
        }
    }

    fn call_directly(self, name: &str, params: &Raw) -> Action {
        match self.resolve(name) {
            Ok(at) => {
                let (_, tool) = self.snapshot.tool(at);
                let params = if tool.name == name {
                    params.clone()
                } else {
                    edit::set(params, "name", &Raw::encode(&tool.name))
                };
                Action::Forward { server: self.id(at.server), params }
            }
            Err(action) => action,
        }
    }

    /// The call that one of our tools was asked to make in its stead.
    fn call_instead(self, at: ToolRef, params: &Raw, arguments: &Raw) -> Action {
        let (_, tool) = self.snapshot.tool(at);
        let name = Raw::encode(&tool.name);
        let params = edit::set_each(params, &[("name", &name), ("arguments", arguments)]);
        Action::Forward { server: self.id(at.server), params }
    }

    /// The live tool of this name, or what to do instead.
    fn resolve(self, name: &str) -> Result<ToolRef, Action> {
        match (self.snapshot.resolve_tool(name), self.last_app()) {
            (Resolved::Ambiguous { candidates }, Some(app)) => {
                let own = self.snapshot.resolve_in(app, name);
                let is_own = matches!(own, Resolved::Tool(_));
                self.judge(name, if is_own { own } else { Resolved::Ambiguous { candidates } })
            }
            (resolved, _) => self.judge(name, resolved),
        }
    }

    /// Where the server stands whose app the host has shown last.
    fn last_app(self) -> Option<usize> {
        self.snapshot.position(self.apps?.last_read?)
    }

    /// The tool of this name, whether its server is loaded or only known, or what to do instead.
    fn resolve_known(self, name: &str) -> Result<ToolRef, Action> {
        match self.snapshot.known_tool(name) {
            Some(at) => Ok(at),
            None => self.resolve(name),
        }
    }

    fn judge(self, name: &str, resolved: Resolved) -> Result<ToolRef, Action> {
        match resolved {
            Resolved::Tool(at) => Ok(at),
            Resolved::NeedsLoad { server } => Err(Action::Load { server: self.id(server) }),
            Resolved::Ambiguous { candidates } => Err(failure(format!(
                "The tool name {} is ambiguous. It could be: {}",
                text::repeated(name),
                answer::listed(&candidates, ROOM_FOR_NAMES)
            ))),
            Resolved::Withheld { server, tool, why } => Err(self.withheld(server, &tool, why)),
            Resolved::Unknown => Err(self.recall_or(failure(self.unknown_tool(name)))),
        }
    }

    /// `action`, unless what is known of servers that are not loaded may say more.
    fn recall_or(self, action: Action) -> Action {
        if self.snapshot.is_recalled { action } else { Action::Recall }
    }

    fn withheld(self, server: usize, tool: &str, why: Withheld) -> Action {
        let name = &self.snapshot.servers[server].name;
        match why {
            Withheld::SwitchedOff => failure(format!(
                "The tool {tool:?} of server {name:?} is switched off by the config of dormouse"
            )),
            Withheld::Changed => {
                Action::Reexamine { server: self.id(server), result: blocked(name, tool) }
            }
        }
    }

    fn unknown_tool(self, name: &str) -> String {
        let name = &text::repeated(name);
        let names = self.snapshot.known_tools().map(|at| self.snapshot.qualified(at));
        let near = text::near_misses(name, names);
        let unloaded = self.snapshot.loadable();
        match (near.is_empty(), unloaded.is_empty()) {
            (false, _) => format!("Unknown tool: {name}. Did you mean: {}?", near.join(", ")),
            (true, false) => format!(
                "Unknown tool: {name}. These servers are not loaded yet, and may have it: {}",
                answer::listed(&unloaded, ROOM_FOR_NAMES)
            ),
            (true, true) => format!("Unknown tool: {name}"),
        }
    }
}

/// Whether the `params` of a `tools/call` are of a tool of ours that calls a server's.
pub fn calls_another(params: &Raw) -> bool {
    let calling = [discover::USE_TOOL, discover::USE_READONLY_TOOL, groups::CALL_DYNAMIC_TOOL];
    edit::get_str(params, "name").is_some_and(|name| calling.contains(&name.as_str()))
}

/// Bytes of an error that may list names.
const ROOM_FOR_NAMES: usize = 4000;

/// A tool result that says what went wrong.
fn failure(message: impl AsRef<str>) -> Action {
    Action::Answer(failed(message))
}

/// The result of a `tools/call` that failed on our side of the server (DESIGN.md section 3).
pub fn failed(message: impl AsRef<str>) -> Raw {
    Raw::encode(&serde_json::json!({
        "content": [{"type": "text", "text": message.as_ref()}],
        "isError": true,
    }))
}

/// The result of a call of a tool that has changed, where that has to be approved.
pub fn blocked(server: &str, tool: &str) -> Raw {
    failed(format!(
        "The tool {tool:?} of server {server:?} is blocked: its definition is not what it was when it was first seen, or what it was is not known any more. Its owner has to look at it and run: dormouse approve {server} {tool}"
    ))
}

/// The result of a `tools/call` with JSON as its text, and a sentence on how to see what it leaves out.
fn answered(json: &Raw, note: Option<&str>) -> Raw {
    let json = edit::escaped(json, is_hidden).to_string();
    let texts = std::iter::once(json.as_str()).chain(note);
    let content: Vec<_> =
        texts.map(|text| serde_json::json!({"type": "text", "text": text})).collect();
    Raw::encode(&serde_json::json!({"content": content}))
}
