//! The lists and calls of all surfaces.

use super::{
    View,
    action::{Action, failure},
    activate, direct, discover, groups, load, own_tools, read_result, run_script, saved_scripts,
};
use crate::{
    catalog::{Presence, ToolResolution},
    config::Surface,
    wire::{Raw, edit},
};

impl View<'_> {
    /// Returns the `tools` of `tools/list`.
    pub(crate) fn tools(self) -> Vec<Raw> {
        let mut tools = match self.surface {
            Surface::Discover => discover::tools(self),
            Surface::Activate => activate::tools(self),
            Surface::Groups => groups::tools(self),
            Surface::Direct => direct::tools(self),
        };
        tools.extend(run_script::listed(self));
        tools.extend(saved_scripts::listed(self));
        tools
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
            own_tools::USE_TOOL => Some(discover::use_tool(self, &name, params, &arguments)),
            own_tools::USE_READONLY_TOOL if self.snapshot.settings.lists.split_calls => {
                let action = discover::use_tool(self, &name, params, &arguments);
                Some(action.requiring_read_only())
            }
            own_tools::LOAD_MCP if self.snapshot.sole.is_none() => {
                Some(load::load_mcp(self, &arguments))
            }
            own_tools::GET_DYNAMIC_TOOLS => Some(groups::get_dynamic_tools(self, &arguments)),
            own_tools::CALL_DYNAMIC_TOOL => {
                Some(groups::call_dynamic_tool(self, params, &arguments))
            }
            own_tools::RUN_SCRIPT => run_script::run_script(self, &arguments),
            own_tools::READ_RESULT => Some(read_result::read_result(&arguments)),
            _ => saved_scripts::run(self, &name, &arguments)
                .or_else(|| activate::activate(self, &name)),
        };
        own.unwrap_or_else(|| self.call_directly(&name, params))
    }

    /// Handles a call in front of a single server. dormouse has no tools of its own here, so the
    /// server itself must reject a name that it does not list.
    fn call_of_sole(self, sole: usize, name: &str, params: &Raw) -> Action {
        let offer = &self.snapshot.offers[sole];
        match self.snapshot.tools().resolve_in(sole, name) {
            ToolResolution::Withheld { tool, why, .. } => self.withheld(sole, &tool, why),
            _ => match &offer.presence {
                Presence::Live { .. } => Action::forward(offer.server(), params.clone()),
                Presence::Offered { .. } => self.load(sole),
                Presence::Evicted => failure(format!(
                    "server {:?} failed to load three times: the user can run `{}`, or restart \
                        dormouse",
                    offer.name,
                    self.commands().reset(&offer.name)
                )),
                Presence::Disabled => failure(format!(
                    "server {:?} is disabled: the user can run `{}`",
                    offer.name,
                    self.commands().enable(&offer.name)
                )),
            },
        }
    }
}
