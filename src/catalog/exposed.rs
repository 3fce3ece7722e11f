//! What hosts may see of a server's catalog, and under which names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use super::{Documents, ServerCatalog, names};
use crate::config::ServerConfig;

/// The part of a catalog that the config lets through.
#[derive(Debug)]
pub struct Exposed {
    pub catalog: Arc<ServerCatalog>,
    /// All that the server has.
    pub whole: Arc<ServerCatalog>,
    /// The name under which each tool is listed directly, in the order of the catalog.
    pub listed_names: Vec<String>,
    /// The places of the tools that an agent may be shown.
    pub for_model: Vec<usize>,
    /// The server's tools that are not for use, by their own names.
    pub withheld: BTreeMap<String, Withheld>,
    /// What its tools are found by; made when somebody searches.
    pub(super) documents: OnceLock<Arc<Documents>>,
}

/// Why a tool of a server is not for use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// By `tools` or `features` in the config.
    SwitchedOff,
    /// It is not what it was when it was approved, and the config says `"pin": "block"`.
    Changed,
}

/// How a server's tools are named.
#[derive(Clone, Copy, Debug)]
pub enum Naming<'a> {
    /// As the server names them.
    Bare,
    /// `<part>__<tool>`
    Long { part: &'a str, server: &'a str },
}

impl Withheld {
    /// Whether and why a tool is not for use. `changed`: those that are to be withheld for that.
    pub(super) fn of(
        tool: &str,
        config: &ServerConfig,
        changed: &BTreeSet<String>,
    ) -> Option<Self> {
        if !config.features.tools || !config.tools.allow(tool) {
            return Some(Self::SwitchedOff);
        }
        changed.contains(tool).then_some(Self::Changed)
    }
}

impl Exposed {
    /// `changed`: the tools that are to be withheld because they are not what they were.
    pub fn new(
        catalog: &Arc<ServerCatalog>,
        config: &ServerConfig,
        changed: &BTreeSet<String>,
        naming: Naming<'_>,
    ) -> Self {
        let judge = |name: &String| Some((name.clone(), Withheld::of(name, config, changed)?));
        let withheld: BTreeMap<String, Withheld> =
            catalog.tools.iter().filter_map(|tool| judge(&tool.name)).collect();
        let features = config.features;
        let is_whole = withheld.is_empty() && features.resources && features.prompts;
        let whole = catalog.clone();
        let catalog = if is_whole {
            whole.clone()
        } else {
            let mut visible = ServerCatalog::clone(&whole);
            visible.tools.retain(|tool| !withheld.contains_key(&tool.name));
            if !features.resources {
                visible.resources.clear();
                visible.templates.clear();
            }
            if !features.prompts {
                visible.prompts.clear();
            }
            Arc::new(visible)
        };
        let listed_names = naming.names(&catalog);
        let tools = catalog.tools.iter().enumerate();
        let for_model =
            tools.filter(|(_, tool)| tool.is_for_model()).map(|(place, _)| place).collect();
        Self { catalog, whole, listed_names, for_model, withheld, documents: OnceLock::new() }
    }

    /// The names of the tools that an agent may be shown, in the order of `for_model`.
    pub fn names_for_model(&self) -> Vec<&str> {
        self.for_model.iter().map(|place| self.catalog.tools[*place].name.as_str()).collect()
    }

    /// The same under the server's own names.
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
            Self::Long { part, server } => names::tool_names(part, server, &tools),
        }
    }
}
