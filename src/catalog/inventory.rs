//! A summary for the user of the items that a server has, and of their cost in a model's context.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ServerCatalog, Tool, WithheldReason, hidden_character};
use crate::config::{Pin, ServerConfig, Toolset};

/// Approximate number of bytes of a definition that make up one token of a model.
const BYTES_PER_TOKEN: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// The tools of the server, then the tools that only the config names.
    pub tools: Vec<ToolSummary>,
    pub resources: usize,
    pub resource_templates: usize,
    pub prompts: usize,
    /// The size of the listed definitions of all shown tools.
    pub bytes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolsets: Vec<ToolsetSummary>,
}

/// One toolset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsetSummary {
    pub name: String,
    /// The number of shown tools.
    pub tools: usize,
}

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSummary {
    pub name: String,
    pub description: String,
    pub state: ToolState,
    /// The definition has changed since the tool was first seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// A character of its definition that cannot be seen, as `U+200B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_character: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolState {
    Shown,
    /// Switched off by the config.
    Hidden,
    /// Named by the config, and not among the server's tools.
    Stale,
    /// The tool has changed, and cannot be called before the user approves it.
    Blocked,
}

/// The numbers of a server's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCounts {
    pub shown: usize,
    pub hidden: usize,
    pub stale: usize,
    pub blocked: usize,
    /// Tools, in any state, whose definitions have changed since they were first seen.
    pub changed: usize,
}

impl ToolCounts {
    pub fn total(self) -> usize {
        self.shown + self.hidden + self.stale + self.blocked
    }
}

impl Inventory {
    /// Creates the inventory. `changed` holds the names of the tools that differ from the pins.
    pub fn of(config: &ServerConfig, catalog: &ServerCatalog, changed: &BTreeSet<String>) -> Self {
        let none = BTreeSet::new();
        let (changed, blocked) = match config.settings.pin {
            Pin::Off => (&none, &none),
            Pin::Warn => (changed, &none),
            Pin::Block => (changed, changed),
        };
        let stock = |tool: &Tool| ToolSummary {
            name: tool.name.clone(),
            description: tool.description.clone(),
            state: match WithheldReason::of(&tool.name, &config.offer, blocked) {
                None => ToolState::Shown,
                Some(WithheldReason::SwitchedOff) => ToolState::Hidden,
                Some(WithheldReason::Changed) => ToolState::Blocked,
            },
            changed: changed.contains(&tool.name),
            hidden_character: hidden_character(tool).map(|c| format!("U+{:04X}", u32::from(c))),
        };
        let mut tools: Vec<ToolSummary> = catalog.tools.iter().map(stock).collect();
        let shown = tools.iter().zip(&catalog.tools);
        let shown = shown.filter(|(stock, _)| stock.state == ToolState::Shown);
        let bytes = shown.map(|(_, tool)| tool.raw.as_bytes().len()).sum();
        let toolsets = toolsets(config, &tools);
        tools.extend(stale(config, catalog));
        let count = |is_used: bool, all: usize| if is_used { all } else { 0 };
        Self {
            tools,
            resources: count(config.offer.features.resources, catalog.resources.len()),
            resource_templates: count(config.offer.features.resources, catalog.templates.len()),
            prompts: count(config.offer.features.prompts, catalog.prompts.len()),
            bytes,
            toolsets,
        }
    }

    pub fn count(&self, state: ToolState) -> usize {
        self.tools.iter().filter(|tool| tool.state == state).count()
    }

    pub fn counts(&self) -> ToolCounts {
        ToolCounts {
            shown: self.count(ToolState::Shown),
            hidden: self.count(ToolState::Hidden),
            stale: self.count(ToolState::Stale),
            blocked: self.count(ToolState::Blocked),
            changed: self.tools.iter().filter(|tool| tool.changed).count(),
        }
    }

    /// Returns a warning for each toolset without tools: its names and globs match none.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let empty = self.toolsets.iter().filter(|toolset| toolset.tools == 0);
        empty.map(|toolset| format!("toolset {:?} matches none of its tools", toolset.name))
    }

    /// Returns the approximate cost of the shown tools in a model's context, in tokens.
    pub fn tokens(&self) -> usize {
        estimated_tokens(self.bytes)
    }
}

/// Returns the approximate cost of so many bytes in a model's context, in tokens.
pub(crate) fn estimated_tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Counts the shown tools of each toolset.
fn toolsets(config: &ServerConfig, tools: &[ToolSummary]) -> Vec<ToolsetSummary> {
    let shown = |toolset: &Toolset| {
        let shown = tools.iter().filter(|tool| tool.state == ToolState::Shown);
        shown.filter(|tool| toolset.contains(&tool.name)).count()
    };
    let toolsets = config.offer.extent.toolsets().iter();
    toolsets
        .map(|toolset| ToolsetSummary { name: toolset.name.clone(), tools: shown(toolset) })
        .collect()
}

fn stale(config: &ServerConfig, catalog: &ServerCatalog) -> Vec<ToolSummary> {
    let gone = config.offer.tools.named().map(|(name, _)| name);
    let gone = gone.filter(|name| catalog.tools.iter().all(|tool| tool.name != *name));
    gone.map(|name| ToolSummary {
        name: name.to_owned(),
        description: String::new(),
        state: ToolState::Stale,
        changed: false,
        hidden_character: None,
    })
    .collect()
}
