//! Finds the tool that a command names.

use super::{UsageError, state_stores::StateStores};
use crate::{
    catalog::ToolState,
    config::{Config, ServerConfig},
    policy::{Decider, Decision, MalformedCall, RuleLists, ToolCall},
    protocol::ToolAnnotations,
};

/// A tool that a command names.
pub(super) struct WantedTool<'a> {
    pub(super) server: &'a ServerConfig,
    pub(super) tool: String,
    /// `None` if the known list of the server lacks the tool.
    pub(super) definition: Option<KnownDefinition>,
}

/// What is known of a tool.
pub(super) struct KnownDefinition {
    annotations: ToolAnnotations,
    /// True if it has changed, and has to be approved before it can be called.
    is_blocked: bool,
}

impl<'a> WantedTool<'a> {
    /// Returns the properties that the server declares, or those of a tool that declares none.
    pub(super) fn annotations(&self) -> ToolAnnotations {
        self.definition.as_ref().map(|known| known.annotations).unwrap_or_default()
    }

    /// Returns the verdict on a call of the tool.
    ///
    /// # Errors
    /// If servers may read the call in another way than dormouse.
    pub(super) fn decide(
        &self,
        lists: &RuleLists<'_>,
        call: &ToolCall,
    ) -> Result<Decision, MalformedCall> {
        match &self.definition {
            Some(known) if known.is_blocked => Ok(Decision::denied_by(Decider::Pin)),
            _ => lists.decide(call),
        }
    }

    /// Finds `server/tool`, `server__tool` or `server/toolset/tool`. The longest name of a server
    /// wins, and a tool whose definition is known.
    ///
    /// # Errors
    /// If the name has no server of the config.
    pub(super) fn find(config: &'a Config, written: &str) -> anyhow::Result<Self> {
        let cache = StateStores::of(&config.settings)?.catalogs();
        let mut candidates: Vec<(&ServerConfig, &str)> = config
            .servers
            .iter()
            .filter_map(|server| {
                let rest = written.strip_prefix(server.name.as_str())?;
                Some((server, rest.strip_prefix('/').or_else(|| rest.strip_prefix("__"))?))
            })
            .flat_map(|(server, rest)| [(server, rest), (server, within_toolset(server, rest))])
            .filter(|(_, tool)| !tool.is_empty())
            .collect();
        candidates.sort_by_key(|(_, tool)| tool.len());
        let known = candidates.iter().find_map(|(server, tool)| {
            let (record, inventory) = cache.as_ref()?.last(server)?;
            let known = record.catalog.tools.iter().find(|known| known.name == *tool)?;
            let mut tools = inventory.tools.iter();
            let is_blocked = tools.any(|it| it.name == *tool && it.state == ToolState::Blocked);
            let definition = KnownDefinition { annotations: known.annotations, is_blocked };
            Some(Self { server, tool: (*tool).to_owned(), definition: Some(definition) })
        });
        let unknown = || {
            let (server, tool) = candidates.first()?;
            Some(Self { server, tool: (*tool).to_owned(), definition: None })
        };
        known.or_else(unknown).ok_or_else(|| {
            UsageError(format!("{written:?} names no server: write SERVER/TOOL")).into()
        })
    }
}

/// Returns the tool that a name within a server means: the part after a toolset that has the tool.
fn within_toolset<'a>(server: &ServerConfig, name: &'a str) -> &'a str {
    let named = name.split_once('/').filter(|(written, tool)| {
        let mut toolsets = server.offer.extent.toolsets().iter();
        toolsets.any(|toolset| toolset.name == *written && toolset.contains(tool))
    });
    named.map_or(name, |(_, tool)| tool)
}
