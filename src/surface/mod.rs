//! What the host sees: from (snapshot, view, request) to a listing or an action (DESIGN.md section 3).
//!
//! Pure. It must not know how a server is reached, nor which host asks.

mod activate;
mod budget;
mod definition;
mod direct;
mod discover;
mod load;
mod text;

use crate::{
    catalog::{Presence, Resolved, Snapshot, ToolRef},
    config::{Settings, Surface},
    wire::{Raw, edit},
};

/// The snapshot to draw from, and how to draw it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub settings: &'a Settings,
    pub surface: Surface,
}

/// What a `tools/call` comes to.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// A complete result of our own.
    Answer(Raw),
    /// Load this server, and look at the request once more.
    Load { server: usize },
    /// Pass `params` on to this server's `tools/call`, and its result back unchanged.
    Forward { server: usize, params: Raw },
}

impl View<'_> {
    /// The `tools` of `tools/list`.
    pub fn tools(self) -> Vec<Raw> {
        match self.surface {
            Surface::Discover => discover::tools(self),
            Surface::Activate => activate::tools(self),
            Surface::Direct => direct::tools(self),
        }
    }

    /// The `instructions` for the handshake: how to use this surface, and which servers there are.
    pub fn instructions(self) -> String {
        match self.surface {
            Surface::Discover => discover::instructions(self),
            Surface::Activate => activate::instructions(self),
            Surface::Direct => direct::instructions(self),
        }
    }

    /// What the only server says of itself.
    fn own_instructions(self) -> Option<String> {
        self.snapshot.live().find_map(|(_, _, catalog)| catalog.greeting.instructions.clone())
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
            return self.call_of_sole(server, params);
        }
        if self.surface != Surface::Discover && self.snapshot.is_listed(&name) {
            // A wrapped server may have a tool of a name that is ours elsewhere.
            return self.call_directly(&name, params);
        }
        let own = match name.as_str() {
            discover::DISCOVER_TOOL => Some(discover::discover_tool(self, &arguments)),
            discover::USE_TOOL => Some(discover::use_tool(self, params, &arguments)),
            load::LOAD_MCP if self.snapshot.sole.is_none() => {
                Some(load::load_mcp(self, &arguments))
            }
            _ => activate::activate(self, &name),
        };
        own.unwrap_or_else(|| self.call_directly(&name, params))
    }

    /// Nothing here is ours: a name that the server does not list is its own to refuse.
    fn call_of_sole(self, server: usize, params: &Raw) -> Action {
        match &self.snapshot.servers[server].presence {
            Presence::Live { .. } => Action::Forward { server, params: params.clone() },
            Presence::Offered { .. } => Action::Load { server },
            Presence::Evicted | Presence::Disabled => {
                let name = &self.snapshot.servers[server].name;
                failure(format!("server {name:?} is not available"))
            }
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
                Action::Forward { server: at.server, params }
            }
            Err(action) => action,
        }
    }

    /// The live tool of this name, or what to do instead.
    fn resolve(self, name: &str) -> Result<ToolRef, Action> {
        match self.snapshot.resolve_tool(name) {
            Resolved::Tool(at) => Ok(at),
            Resolved::NeedsLoad { server } => Err(Action::Load { server }),
            Resolved::Ambiguous { candidates } => Err(failure(format!(
                "The tool name {name:?} is ambiguous. It could be: {}",
                candidates.join(", ")
            ))),
            Resolved::Unknown => Err(failure(self.unknown_tool(name))),
        }
    }

    fn unknown_tool(self, name: &str) -> String {
        let known = self.snapshot.live().flat_map(|(server, _, catalog)| {
            (0..catalog.tools.len()).map(move |tool| ToolRef { server, tool })
        });
        let names = known.map(|at| self.snapshot.qualified(at));
        let near = text::near_misses(name, names);
        let unloaded = self.snapshot.loadable();
        match (near.is_empty(), unloaded.is_empty()) {
            (false, _) => format!("Unknown tool: {name:?}. Did you mean: {}?", near.join(", ")),
            (true, false) => format!(
                "Unknown tool: {name:?}. These servers are not loaded yet, and may have it: {}",
                unloaded.join(", ")
            ),
            (true, true) => format!("Unknown tool: {name:?}"),
        }
    }
}

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

/// The result of a `tools/call` with one text.
fn answered(text: &str) -> Raw {
    Raw::encode(&serde_json::json!({"content": [{"type": "text", "text": text}]}))
}
