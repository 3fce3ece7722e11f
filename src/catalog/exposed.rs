//! The part of a server's catalog that hosts may see, and the names under which they see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use super::{ServerCatalog, ServerDocuments, tool_names};
use crate::config::OfferRules;

/// The part of a catalog that the config lets through.
#[derive(Debug)]
pub struct ExposedCatalog {
    pub catalog: Arc<ServerCatalog>,
    /// The complete catalog of the server.
    pub whole: Arc<ServerCatalog>,
    /// The name under which each tool is listed directly, in the order of the catalog.
    pub listed_names: Vec<String>,
    /// The positions of the tools that an agent may see.
    pub for_model: Vec<usize>,
    /// The tools that the offer has and that must not be called, by the server's own names.
    pub withheld: BTreeMap<String, WithheldReason>,
    /// The searchable text of the tools, created by the first search.
    pub(super) documents: OnceLock<Arc<ServerDocuments>>,
}

/// The reason why a tool must not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithheldReason {
    /// The config excludes the tool with `tools` or `features`.
    SwitchedOff,
    /// The definition differs from the approved one, and the config has `"pin": "block"`.
    Changed,
}

/// The way in which the tools of an offer are named in lists.
#[derive(Clone, Copy, Debug)]
pub(super) enum Naming<'a> {
    /// The server's own names.
    Bare,
    /// Names of the form `<part>__<tool>`.
    Long { part: &'a str, server: &'a str },
}

impl WithheldReason {
    /// Returns the reason why a tool is withheld, if it is. `changed` holds the tools to withhold
    /// because their definitions have changed.
    pub(super) fn of(tool: &str, rules: &OfferRules, changed: &BTreeSet<String>) -> Option<Self> {
        if !rules.allow_tool(tool) {
            return Some(Self::SwitchedOff);
        }
        changed.contains(tool).then_some(Self::Changed)
    }
}

impl ExposedCatalog {
    /// Creates the view of a catalog. `changed` holds the tools to withhold because their
    /// definitions have changed.
    pub(super) fn new(
        catalog: &Arc<ServerCatalog>,
        rules: &OfferRules,
        changed: &BTreeSet<String>,
        naming: Naming<'_>,
    ) -> Self {
        let mut withheld = BTreeMap::new();
        let mut listed_names = Vec::new();
        let mut tools = Vec::new();
        for (tool, listed_name) in catalog.tools.iter().zip(naming.names(catalog)) {
            if !rules.extent.contains(&tool.name) {
                continue;
            }
            if let Some(why) = WithheldReason::of(&tool.name, rules, changed) {
                withheld.insert(tool.name.clone(), why);
            } else {
                listed_names.push(listed_name);
                tools.push(tool);
            }
        }
        let features = rules.features;
        let is_whole = tools.len() == catalog.tools.len() && features.resources && features.prompts;
        let whole = catalog.clone();
        let catalog = if is_whole {
            whole.clone()
        } else {
            let mut visible = ServerCatalog::clone(&whole);
            visible.tools = tools.into_iter().cloned().collect();
            if !features.resources {
                visible.resources.clear();
                visible.templates.clear();
            }
            if !features.prompts {
                visible.prompts.clear();
            }
            Arc::new(visible)
        };
        let tools = catalog.tools.iter().enumerate();
        let for_model =
            tools.filter(|(_, tool)| tool.is_for_model()).map(|(place, _)| place).collect();
        Self { catalog, whole, listed_names, for_model, withheld, documents: OnceLock::new() }
    }

    /// Returns the names of the tools that an agent may see, in the order of `for_model`.
    pub fn names_for_model(&self) -> Vec<&str> {
        self.for_model.iter().map(|place| self.catalog.tools[*place].name.as_str()).collect()
    }

    /// Returns the part of the catalog that narrower rules let through.
    #[must_use]
    pub(super) fn narrowed(&self, rules: &OfferRules, naming: Naming<'_>) -> Self {
        let withheld = self.withheld.iter();
        let changed = withheld.filter(|(_, why)| **why == WithheldReason::Changed);
        let changed = changed.map(|(tool, _)| tool.clone()).collect();
        Self::new(&self.whole, rules, &changed, naming)
    }

    /// Returns a copy in which tools have the server's own names.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self {
            catalog: self.catalog.clone(),
            whole: self.whole.clone(),
            listed_names: Naming::Bare.names(&self.catalog),
            for_model: self.for_model.clone(),
            withheld: self.withheld.clone(),
            documents: OnceLock::new(),
        }
    }
}

impl Naming<'_> {
    fn names(self, catalog: &ServerCatalog) -> Vec<String> {
        let tools: Vec<&str> = catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
        match self {
            Self::Bare => tools.into_iter().map(str::to_owned).collect(),
            Self::Long { part, server } => tool_names::tool_names(part, server, &tools),
        }
    }
}
