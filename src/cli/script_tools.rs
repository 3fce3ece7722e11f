//! The tools that scripts can call, as far as they are known.

use crate::{
    catalog::{Cache, Tool, ToolState},
    config::{ServerConfig, UserCommands},
};

/// Returns the tools of a server that agents are shown; `None` if they are not known.
pub(super) fn known_tools(cache: Option<&Cache>, server: &ServerConfig) -> Option<Vec<Tool>> {
    let (record, inventory) = cache?.last(server)?;
    let is_shown = |tool: &&Tool| {
        let mut states = inventory.tools.iter();
        states.any(|it| it.name == tool.name && it.state == ToolState::Shown)
    };
    Some(record.catalog.tools.iter().filter(is_shown).cloned().collect())
}

/// Returns the message that the tools of a server are not known.
pub(super) fn unknown_tools(server: &ServerConfig, commands: &UserCommands) -> String {
    let command = commands.refresh(&server.name);
    format!("the tools of {:?} are not known yet: run `{command}`", server.name)
}
