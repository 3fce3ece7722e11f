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

/// The circumstances under which a catalog was fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The time from the start of the server to its last list.
    pub took: Duration,
    /// The names of the capabilities that dormouse declared; the lists of a server may depend on
    /// them.
    pub declared: Vec<String>,
    /// The time for which the catalog stays fresh, if the server says so (2026-07-28,
    /// server/utilities/caching, `ttlMs`).
    pub fresh_for: Option<Duration>,
    pub spoken: ProtocolSupport,
}

/// The protocol features that a server has been seen to support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolSupport {
    pub legacy: Option<bool>,
    pub modern: Option<bool>,
    /// The way in which messages travel over HTTP, if the server rejected the first choice.
    pub framing: Option<Framing>,
    /// `true` if `modern` is false only because the server did not answer.
    pub is_guessed: bool,
}

impl ProtocolSupport {
    /// Returns the part that also holds for later runs of the server: a guess is dropped.
    #[must_use]
    pub fn certain(self) -> Self {
        let modern = self.modern.filter(|_| !self.is_guessed);
        Self { modern, is_guessed: false, ..self }
    }
}

impl ServerCatalog {
    /// Returns whether another catalog shows the same to hosts, however it was fetched.
    pub fn lists_the_same_as(&self, other: &Self) -> bool {
        let Self { greeting, discovery: _, tools, resources, templates, prompts } = other;
        self.greeting == *greeting
            && self.tools == *tools
            && self.resources == *resources
            && self.templates == *templates
            && self.prompts == *prompts
    }

    /// Returns the catalog of a server that has answered the handshake but has listed nothing yet.
    pub fn empty(greeting: Greeting) -> Self {
        let (discovery, tools, resources, templates, prompts) = Default::default();
        Self { greeting, discovery, tools, resources, templates, prompts }
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn unknown() -> Self {
        Self::empty(Greeting {
            era: crate::protocol::Era::Legacy,
            version: "2025-11-25".to_owned(),
            capabilities: Raw::empty_object(),
            instructions: None,
            about: None,
            answer: None,
        })
    }

    /// Returns how the tools differ from those that the config names.
    pub fn tool_changes(&self, config: &ServerConfig) -> ToolChanges {
        if !config.offer.features.tools {
            return ToolChanges::default();
        }
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        ToolChanges::between(&config.offer.tools, &tools)
    }

    /// Returns the lists that differ from those of `before`.
    pub fn changes_since(&self, before: &Self) -> Changes {
        Changes {
            tools: self.tools != before.tools
                || self.greeting.instructions != before.greeting.instructions,
            resources: self.resources != before.resources || self.templates != before.templates,
            prompts: self.prompts != before.prompts,
        }
    }

    /// Returns the lists that change when this catalog is loaded.
    pub fn brings(&self) -> Changes {
        Changes {
            tools: true,
            resources: !self.resources.is_empty() || !self.templates.is_empty(),
            prompts: !self.prompts.is_empty(),
        }
    }
}

/// The lists that have changed.
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

    /// Returns the lists that either value names.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            resources: self.resources || other.resources,
            prompts: self.prompts || other.prompts,
        }
    }
}

/// Maximum length of one definition, in bytes. A larger one would fill most of a model's context.
const MAX_DEFINITION_BYTES: usize = 1024 * 1024;

/// Reads the items of one list. Returns them with the number of dropped items: malformed, too large
/// or repeated ones.
pub(crate) fn read_items<I: Item>(raw_items: &[Raw]) -> (Vec<I>, usize) {
    let mut seen = std::collections::HashSet::new();
    let items: Vec<I> = raw_items
        .iter()
        .filter(|raw| raw.len() <= MAX_DEFINITION_BYTES)
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
    fn only_malformed_items_are_dropped() {
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
