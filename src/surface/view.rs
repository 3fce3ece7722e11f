//! The snapshot as a host sees it, and the resolution of tool names in it.

use super::{
    action::{Action, failed, failure},
    name_list::{MAX_NAME_LIST_BYTES, name_list},
    near_misses::near_misses,
    text,
};
use crate::{
    catalog::{
        ListedOffer, ListedTools, OfferVisibility, ServerId, Snapshot, ToolRef, ToolResolution,
        WithheldReason,
    },
    config::{Surface, UserCommands},
    policy::changed_tool_message,
    wire::{Raw, edit},
};

/// A snapshot, and the way in which a host sees it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub snapshot: &'a Snapshot,
    pub surface: Surface,
    /// The state of MCP Apps, if the host can show the interfaces of tools.
    pub apps: Option<Apps>,
    /// True if a result was cut for the host, so that it can read more of it.
    pub has_cut_results: bool,
}

/// The state of MCP Apps in a host that can show them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Apps {
    /// The server whose interface the host has read last. Calls of an MCP App are meant for this
    /// server.
    pub last_read: Option<ServerId>,
}

impl<'a> View<'a> {
    /// Returns the instructions of the only server, if it is live.
    pub(super) fn own_instructions(self) -> Option<String> {
        let mut live = self.snapshot.live();
        live.find_map(|(_, _, exposed)| exposed.catalog.greeting.instructions.clone())
    }

    /// Returns the server of the offer at this position.
    pub(super) fn server(self, offer: usize) -> ServerId {
        self.snapshot.offers[offer].server()
    }

    /// Returns the offers as the lists of the surface show them, some of them hidden.
    pub(super) fn offers(self) -> Vec<ListedOffer<'a>> {
        self.snapshot.listed(match self.surface {
            Surface::Direct => ListedTools::Known,
            Surface::Discover | Surface::Activate | Surface::Groups => ListedTools::Live,
        })
    }

    /// Returns whether a list shows an offer for which this holds.
    pub(super) fn shows_any(self, is_meant: impl Fn(&ListedOffer<'a>) -> bool) -> bool {
        let is_shown = |it: &&ListedOffer<'a>| !matches!(it.visibility, OfferVisibility::Hidden);
        self.offers().iter().filter(is_shown).any(is_meant)
    }

    /// Returns the action that loads the offer at this position.
    pub(super) fn load(self, offer: usize) -> Action {
        Action::Load { offer: self.snapshot.offers[offer].id }
    }

    /// Returns whether the list contains tools of servers under their own names.
    pub(super) fn lists_tools(self) -> bool {
        match self.surface {
            Surface::Activate | Surface::Direct => true,
            Surface::Discover | Surface::Groups => false,
        }
    }

    /// Returns whether the lists contain known tools of servers that are not loaded.
    pub(crate) fn shows_known(self) -> bool {
        self.lists_tools()
    }

    pub(super) fn call_directly(self, name: &str, params: &Raw) -> Action {
        match self.resolve(name) {
            Ok(at) => {
                let (_, tool) = self.snapshot.tools().tool(at);
                let params = if tool.name == name {
                    params.clone()
                } else {
                    edit::set(params, "name", &Raw::encode(&tool.name))
                };
                Action::forward(self.server(at.offer), params)
            }
            Err(action) => action,
        }
    }

    /// Forwards a call that an agent made through one of dormouse's tools.
    pub(super) fn call_instead(self, at: ToolRef, params: &Raw, arguments: &Raw) -> Action {
        let (_, tool) = self.snapshot.tools().tool(at);
        let name = Raw::encode(&tool.name);
        let params = edit::set_each(params, &[("name", &name), ("arguments", arguments)]);
        Action::forward(self.server(at.offer), params)
    }

    /// Returns the live tool of this name, or else the action to take.
    pub(super) fn resolve(self, name: &str) -> Result<ToolRef, Action> {
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
    pub(super) fn resolve_known(self, name: &str) -> Result<ToolRef, Action> {
        match self.snapshot.tools().known_tool(name) {
            Some(at) => Ok(at),
            None => self.resolve(name),
        }
    }

    pub(super) fn judge(self, name: &str, resolved: ToolResolution) -> Result<ToolRef, Action> {
        match resolved {
            ToolResolution::Tool(at) => Ok(at),
            ToolResolution::NeedsLoad { offer } => Err(self.load(offer)),
            ToolResolution::Ambiguous { candidates } => Err(failure(format!(
                "The tool name {} is ambiguous. It could be: {}",
                text::repeated(name),
                name_list(&candidates, MAX_NAME_LIST_BYTES)
            ))),
            ToolResolution::Withheld { offer, tool, why } => Err(self.withheld(offer, &tool, why)),
            ToolResolution::Unknown => Err(self.recall_or(failure(self.unknown_tool(name)))),
        }
    }

    /// Returns `action`, unless the stored catalogs of unloaded servers may change the outcome.
    pub(super) fn recall_or(self, action: Action) -> Action {
        if self.snapshot.is_recalled { action } else { Action::Recall }
    }

    /// Returns the commands that messages advise.
    pub(super) fn commands(self) -> &'a UserCommands {
        &self.snapshot.settings.launch.commands
    }

    pub(super) fn withheld(self, offer: usize, tool: &str, why: WithheldReason) -> Action {
        let name = self.snapshot.offers[offer].server_name();
        match why {
            WithheldReason::SwitchedOff => failure(format!(
                "The tool {tool:?} of server {name:?} is disabled in the config of dormouse, or \
                    left out by the profile"
            )),
            WithheldReason::Changed => {
                let result = failed(changed_tool_message(name, tool, self.commands()));
                Action::Reexamine { server: self.server(offer), result }
            }
        }
    }

    fn unknown_tool(self, name: &str) -> String {
        let shown = &text::repeated(name);
        let names =
            self.snapshot.tools().known_tools().map(|at| self.snapshot.tools().qualified(at));
        let near = near_misses(name, names);
        let is_of_loaded = self.snapshot.tools().names_a_loaded_server(name);
        let unloaded = if is_of_loaded { Vec::new() } else { self.snapshot.loadable() };
        match (near.is_empty(), unloaded.is_empty()) {
            (false, _) => format!("Unknown tool: {shown}. Did you mean: {}?", near.join(", ")),
            (true, false) => format!(
                "Unknown tool: {shown}. These servers are not loaded yet and may have it: {}",
                name_list(&unloaded, MAX_NAME_LIST_BYTES)
            ),
            (true, true) => format!("Unknown tool: {shown}"),
        }
    }
}
