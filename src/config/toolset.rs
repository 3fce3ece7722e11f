//! A named part of a server's tools (docs/reference/toolsets.md).

use serde::Serialize;

use super::{NamePattern, keys::ToolsetEntry};

/// A named part of a server's tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Toolset {
    /// Never contains a slash.
    pub name: String,
    /// The tasks for which to load it; its names and globs if the config says nothing.
    pub description: String,
    pub(super) tools: Vec<NamePattern>,
}

impl Toolset {
    pub(super) fn new(name: String, entry: ToolsetEntry) -> Self {
        let written = entry.description.filter(|text| !text.trim().is_empty());
        let names = || entry.tools.iter().map(NamePattern::as_str).collect::<Vec<_>>();
        let description = written.unwrap_or_else(|| names().join(", "));
        Self { name, description, tools: entry.tools }
    }

    /// Returns whether a tool belongs to the toolset.
    pub fn contains(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| pattern.matches(tool))
    }

    /// Returns the name under which the toolset is listed and loaded.
    pub fn full_name(&self, server: &str) -> String {
        format!("{server}/{}", self.name)
    }
}

/// A toolset as it is written into an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProposedToolset {
    #[serde(skip)]
    pub name: String,
    pub tools: Vec<String>,
    pub description: String,
}

/// The tools that an offer consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum OfferExtent {
    /// The whole server, which has these toolsets.
    Whole(Vec<Toolset>),
    Toolset(Toolset),
}

impl Default for OfferExtent {
    fn default() -> Self {
        Self::Whole(Vec::new())
    }
}

impl OfferExtent {
    /// Returns whether a tool belongs to the offer.
    pub fn contains(&self, tool: &str) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Toolset(toolset) => toolset.contains(tool),
        }
    }

    /// Returns the toolsets of a whole server.
    pub fn toolsets(&self) -> &[Toolset] {
        match self {
            Self::Whole(toolsets) => toolsets,
            Self::Toolset(_) => &[],
        }
    }
}
