//! Configs of the four systems that dormouse succeeds, as they are (DESIGN.md section 6; `docs/migrating.md` maps
//! every key). Each is translated into the tree of a config of our own, in which every value keeps the place
//! where it was written; what reads that knows nothing of other systems.

mod dynamic_mcp;
mod dynmcp;
mod mcp_proxy;
mod members;
mod multi_mcp;

use serde_json::Value;

use super::format::{Content, Member, Node};
use members::{Members, Written};

/// Whose config a file is, if it is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Dynmcp,
    DynamicMcp,
    MultiMcp,
    McpProxy,
}

/// What a file means beside its keys, as the system that it is for reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) variables: Variables,
    /// A reference to an undefined variable stays as it is written, and the server is used all the same.
    pub(super) keeps_undefined: bool,
    /// The endpoints of `/servers/<name>/` are at `/<name>/` too.
    pub(super) servers_at_root: bool,
}

/// Where `${VAR}` is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Variables {
    #[default]
    FileAndProcess,
    File,
    Process,
    /// It is no reference at all.
    Nowhere,
}

/// What a translation has to say, each at a byte of the text.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The file cannot be used.
    pub(super) problems: Vec<(usize, String)>,
    /// Something is not done, or done otherwise, and what happens instead.
    pub(super) warnings: Vec<(usize, String)>,
}

impl Notes {
    fn problem(&mut self, at: usize, message: impl Into<String>) {
        self.problems.push((at, message.into()));
    }

    fn warn(&mut self, at: usize, message: impl Into<String>) {
        self.warnings.push((at, message.into()));
    }
}

/// A config of another system as one of ours.
pub(super) struct Translated {
    pub(super) root: Node,
    pub(super) manner: Manner,
    pub(super) notes: Notes,
}

impl Dialect {
    /// By the keys that only this system has. `is_ours`: the file's name says so, and a key that both have decides
    /// nothing.
    pub(super) fn of(root: &Node, is_ours: bool) -> Option<Self> {
        let value = root.to_value();
        let any_entry = |servers: &str, is_theirs: &dyn Fn(&Value) -> bool| {
            value[servers].as_object().is_some_and(|entries| entries.values().any(is_theirs))
        };
        let has = |entry: &Value, keys: &[&str]| keys.iter().any(|key| entry.get(key).is_some());
        if value.get("mcpProxy").is_some() {
            Some(Self::McpProxy)
        } else if any_entry("mcp", &|entry| has(entry, &["transport"])) {
            Some(Self::Dynmcp)
        } else if any_entry("servers", &|entry| has(entry, &["always_on", "tools"])) {
            Some(Self::MultiMcp)
        } else if any_entry("mcpServers", &|entry| has(entry, &dynamic_mcp::OWN_KEYS))
            || !is_ours
                && any_entry("mcpServers", &|entry| has(entry, &["features"]))
                && !dynamic_mcp::has_keys_of_ours(&value)
        {
            Some(Self::DynamicMcp)
        } else {
            None
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Dynmcp => "dynmcp",
            Self::DynamicMcp => "dynamic-mcp",
            Self::MultiMcp => "multi-mcp",
            Self::McpProxy => "mcp-proxy",
        }
    }

    /// Whether its entries have a place for tools and whether each is on.
    pub(super) fn has_tools(self) -> bool {
        self == Self::MultiMcp
    }

    /// Under which key the servers are.
    pub(super) fn servers_key(self) -> &'static str {
        match self {
            Self::Dynmcp => "mcp",
            Self::MultiMcp => "servers",
            Self::DynamicMcp | Self::McpProxy => "mcpServers",
        }
    }

    pub(super) fn translate(self, root: &Node) -> Translated {
        let mut notes = Notes::default();
        let members = Members::of(root.clone(), &mut notes);
        let (written, manner) = match self {
            Self::Dynmcp => dynmcp::translate(members, &mut notes),
            Self::DynamicMcp => dynamic_mcp::translate(members, &mut notes),
            Self::MultiMcp => multi_mcp::translate(members, &mut notes),
            Self::McpProxy => mcp_proxy::translate(members, &mut notes),
        };
        Translated { root: written.node(root.at), manner, notes }
    }
}

/// Translates each server's entry, under the name that it has.
fn servers(
    servers: Option<Member>,
    notes: &mut Notes,
    mut translate: impl FnMut(&str, Members, &mut Notes) -> Written,
) -> Member {
    let at = servers.as_ref().map_or(0, |member| member.at);
    let entries = servers.map(|member| Members::of(member.node, notes).into_all());
    let translated = entries.into_iter().flatten().map(|Member { key, at, node }| {
        let node_at = node.at;
        let members = Members::of(node, notes);
        let node = translate(&key, members, notes).node(node_at);
        Member { key, at, node }
    });
    let content = Content::Mapping(translated.collect());
    Member { key: "mcpServers".to_owned(), at, node: Node { at, content } }
}

/// A text in which what looks like a variable is none.
fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${").filter(|start| rest[*start..].contains('}')) {
        escaped.push_str(&rest[..start]);
        escaped.push_str("$${");
        rest = &rest[start + 2..];
    }
    escaped.push_str(rest);
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_text_expands_to_itself() {
        for text in ["${A}", "$${A}", "a${A", "${A}${B", "${${A}}", "x"] {
            let mut value = Value::from(literal(text));
            crate::config::expand::expand(&mut value, &crate::config::Environment::default());
            assert_eq!(value, text);
        }
    }
}
