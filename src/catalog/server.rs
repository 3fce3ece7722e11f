//! The catalog of one server.

use std::time::Duration;

use super::{Prompt, Resource, Template, Tool, item::Item};
use crate::{
    config::{Framing, ServerConfig, ToolChanges},
    protocol::Greeting,
    wire::Raw,
};

#[derive(Clone, Debug, PartialEq)]
pub struct ServerCatalog {
    pub greeting: Greeting,
    pub discovery: Discovery,
    pub tools: Vec<Tool>,
    pub resources: Vec<Resource>,
    pub templates: Vec<Template>,
    pub prompts: Vec<Prompt>,
}

/// How a catalog was learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// From the start of the server to its last list.
    pub took: Duration,
    /// Names of the capabilities that it was declared: what a server lists may depend on them.
    pub declared: Vec<String>,
    /// How long it is good for, where the server says so (2026-07-28, server/utilities/caching, `ttlMs`).
    pub fresh_for: Option<Duration>,
    pub spoken: Spoken,
}

/// What a server has been seen to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    pub legacy: Option<bool>,
    pub modern: Option<bool>,
    /// How messages travel over HTTP, where the first choice was refused.
    pub framing: Option<Framing>,
    /// Whether it is only its silence that speaks against `modern`.
    pub is_guessed: bool,
}

impl Spoken {
    /// What can be relied on in another run (DESIGN.md section 5).
    #[must_use]
    pub fn certain(self) -> Self {
        let modern = self.modern.filter(|_| !self.is_guessed);
        Self { modern, is_guessed: false, ..self }
    }
}

impl ServerCatalog {
    /// The catalog of a server that has said who it is and lists nothing yet.
    pub fn empty(greeting: Greeting) -> Self {
        let (discovery, tools, resources, templates, prompts) = Default::default();
        Self { greeting, discovery, tools, resources, templates, prompts }
    }

    #[cfg(test)]
    pub(crate) fn unknown() -> Self {
        Self::empty(Greeting {
            era: crate::protocol::Era::Legacy,
            version: "2025-11-25".to_owned(),
            capabilities: Raw::empty_object(),
            instructions: None,
            about: None,
            said: None,
        })
    }

    /// How the tools differ from those that the config names.
    pub fn tool_changes(&self, config: &ServerConfig) -> ToolChanges {
        if !config.features.tools {
            return ToolChanges::default();
        }
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        ToolChanges::between(&config.tools, &tools)
    }

    /// What tells `self` from `before`.
    pub fn changes_since(&self, before: &Self) -> Changes {
        Changes {
            tools: self.tools != before.tools
                || self.greeting.instructions != before.greeting.instructions,
            resources: self.resources != before.resources || self.templates != before.templates,
            prompts: self.prompts != before.prompts,
        }
    }

    /// What a load of this catalog brings.
    pub fn brings(&self) -> Changes {
        Changes {
            tools: true,
            resources: !self.resources.is_empty() || !self.templates.is_empty(),
            prompts: !self.prompts.is_empty(),
        }
    }
}

/// Which lists are not what they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
}

impl Changes {
    pub fn any(self) -> bool {
        self.tools || self.resources || self.prompts
    }
}

/// The most bytes of one definition: a larger one would be most of a model's context.
const MAX_DEFINITION: usize = 1024 * 1024;

/// Reads the items of one list; what is malformed, too large or repeated is left out, and counted.
pub fn read_items<I: Item>(raw_items: &[Raw]) -> (Vec<I>, usize) {
    let mut seen = std::collections::HashSet::new();
    let items: Vec<I> = raw_items
        .iter()
        .filter(|raw| raw.len() <= MAX_DEFINITION)
        .filter_map(I::read)
        .filter(|item| seen.insert(item.key().to_owned()))
        .collect();
    let dropped = raw_items.len() - items.len();
    (items, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raws(items: &[&str]) -> Vec<Raw> {
        items.iter().map(|item| Raw::parse((*item).to_owned()).unwrap()).collect()
    }

    #[test]
    fn a_malformed_tool_costs_that_tool() {
        let (tools, dropped) = read_items::<Tool>(&raws(&[
            r#"{"name":"good","inputSchema":{"z":1,"a":1e2},"new":true}"#,
            r#"{"name":"no schema"}"#,
            r#"{"name":7,"inputSchema":{}}"#,
            r#"{"name":"","inputSchema":{}}"#,
            r#"{"name":"good","inputSchema":{}}"#,
            "3",
            r#"{"name":"odd text","description":"\ud800","inputSchema":{}}"#,
        ]));
        assert_eq!(dropped, 5);
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "odd text"]);
        assert_eq!(
            tools[0].raw.to_string(),
            r#"{"name":"good","inputSchema":{"z":1,"a":1e2},"new":true}"#
        );
    }
}
