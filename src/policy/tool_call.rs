//! A call of a tool as rules see it.

use std::{collections::HashSet, sync::OnceLock};

use super::{Annotations, RuleList};
use crate::{
    config::{NamePattern, PolicyRule, Verdict},
    wire::{Raw, edit},
};

/// A call of a tool by the real names of the server and of the tool.
pub(crate) struct ToolCall<'a> {
    server: &'a str,
    tool: String,
    /// `server/tool`
    full_name: String,
    arguments: Raw,
    definition: &'a Raw,
    annotations: OnceLock<Annotations>,
    /// True if the agent has asked for a tool that changes nothing, by `use_readonly_tool`.
    pub(crate) is_to_read_only: bool,
}

/// The reason that rules cannot be applied to a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MalformedCall {
    #[error("the call names no tool")]
    Unnamed,
    /// Parsers of JSON differ in which of two equal members they use.
    #[error("the call has the member {0:?} twice")]
    Repeated(String),
    #[error("\"arguments\" is not an object")]
    Arguments,
}

impl<'a> ToolCall<'a> {
    /// Reads the `params` of a `tools/call` as a server gets them. `definition` is the tool's, or
    /// an empty object if it is not known.
    ///
    /// # Errors
    /// If the server may read another tool or other arguments than the rules would.
    pub(crate) fn read(
        server: &'a str,
        params: &Raw,
        definition: &'a Raw,
    ) -> Result<Self, MalformedCall> {
        check_members(params)?;
        let tool = edit::get_str(params, "name").ok_or(MalformedCall::Unnamed)?;
        let arguments = edit::get(params, "arguments").unwrap_or_else(Raw::empty_object);
        if !arguments.is_object() && arguments.as_bytes() != b"null" {
            return Err(MalformedCall::Arguments);
        }
        check_members(&arguments)?;
        let full_name = format!("{server}/{tool}");
        Ok(Self {
            server,
            tool,
            full_name,
            arguments,
            definition,
            annotations: OnceLock::new(),
            is_to_read_only: false,
        })
    }

    pub(crate) fn server(&self) -> &str {
        self.server
    }

    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns `server/tool`.
    pub(crate) fn full_name(&self) -> &str {
        &self.full_name
    }

    pub(crate) fn arguments(&self) -> &Raw {
        &self.arguments
    }

    /// Returns the rule that allows what another rule of a list matches, for this tool alone;
    /// `None` if a rule with the name of the tool would match others.
    pub(crate) fn allowing(&self, list: &RuleList, rule: &PolicyRule) -> Option<PolicyRule> {
        let name = match list {
            RuleList::Server(_) => &self.tool,
            RuleList::All | RuleList::Profile(_) => &self.full_name,
        };
        let tools = NamePattern::new(name);
        let allowing = PolicyRule { tools, then: Verdict::Allow, reason: None, ..rule.clone() };
        // `a/b/c` may be a tool of the server `a`, or one of `a/b`.
        let is_clear = matches!(list, RuleList::Server(_)) || name.matches('/').count() == 1;
        (is_clear && !allowing.tools.is_glob()).then_some(allowing)
    }

    pub(super) fn annotations(&self) -> Annotations {
        *self.annotations.get_or_init(|| Annotations::of(self.definition))
    }

    /// Returns whether a rule of a list for all servers matches.
    pub(super) fn matches(&self, rule: &PolicyRule) -> bool {
        let is_full = rule.tools.as_str().contains('/');
        let name = if is_full { &self.full_name } else { &self.tool };
        rule.tools.matches(name) && self.meets(rule)
    }

    /// Returns whether a rule of the server's own list matches.
    pub(super) fn matches_own(&self, rule: &PolicyRule) -> bool {
        rule.tools.matches(&self.tool) && self.meets(rule)
    }

    fn meets(&self, rule: &PolicyRule) -> bool {
        (rule.when.are_any() || self.annotations().have(rule.when))
            && rule.arguments.iter().all(|(name, pattern)| {
                edit::get_str(&self.arguments, name).is_some_and(|value| pattern.matches(&value))
            })
    }
}

/// Checks that no member of an object has the name of another.
fn check_members(object: &Raw) -> Result<(), MalformedCall> {
    let mut seen = HashSet::new();
    for (name, _) in edit::entries(object) {
        if let Some(name) = seen.replace(name) {
            return Err(MalformedCall::Repeated(name));
        }
    }
    Ok(())
}
