//! The outcome of a policy for one call.

use std::fmt;

use super::RulePlace;
use crate::config::{UserCommands, Verdict};

/// The verdict on a call, with the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) by: Decider,
    /// The reason that the rule gives.
    pub(crate) reason: Option<String>,
    /// The rules of other lists that do not allow the call either.
    pub(crate) others: Vec<RulePlace>,
}

/// The origin of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decider {
    /// No rule matches.
    Default,
    /// A rule of the config.
    Rule(RulePlace),
    /// The rule that `"splitCalls": true` adds: `use_readonly_tool` calls read-only tools only.
    SplitCalls,
    /// The rule that `"pin": "block"` adds: a changed tool has to be approved first. The rules of
    /// a config do not enforce it: the view of a host does, and the check of the connection.
    Pin,
}

impl Decider {
    /// Returns the message to the agent about a call that a setting denies; `None` for rules of the
    /// config, which give a reason of their own.
    pub(crate) fn message(
        &self,
        server: &str,
        tool: &str,
        commands: &UserCommands,
    ) -> Option<String> {
        match self {
            Self::Default | Self::Rule(_) => None,
            Self::SplitCalls => {
                let name = format!("{server}/{tool}");
                Some(format!("The tool {name:?} is not marked as read-only; call it with use_tool"))
            }
            Self::Pin => Some(changed_tool_message(server, tool, commands)),
        }
    }
}

impl Decision {
    /// Returns the decision about a call that no rule matches.
    pub(super) fn by_default() -> Self {
        let others = Vec::new();
        Self { verdict: Verdict::Allow, by: Decider::Default, reason: None, others }
    }

    /// Returns the decision about a call that a setting denies, whatever the rules say.
    pub(crate) fn denied_by(by: Decider) -> Self {
        Self { verdict: Verdict::Deny, by, reason: None, others: Vec::new() }
    }

    /// Returns the places of all rules that keep the call from being allowed.
    pub(crate) fn places(&self) -> impl Iterator<Item = &RulePlace> {
        let place = self.place().filter(|_| self.verdict != Verdict::Allow);
        place.into_iter().chain(&self.others)
    }

    /// Returns the place of the rule that decided, if it is a rule of the config.
    pub(crate) fn place(&self) -> Option<&RulePlace> {
        match &self.by {
            Decider::Rule(place) => Some(place),
            Decider::Default | Decider::SplitCalls | Decider::Pin => None,
        }
    }
}

/// Returns the message to the agent about a tool that differs from what the user has approved.
pub(crate) fn changed_tool_message(server: &str, tool: &str, commands: &UserCommands) -> String {
    let command = commands.approve(server, Some(tool));
    format!(
        "The tool {tool:?} of server {server:?} is blocked: its definition has changed since it \
            was first seen, or cannot be compared. The user has to review it and run: {command}"
    )
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("no rule matches"),
            Self::Rule(place) => place.fmt(f),
            Self::SplitCalls => f.write_str("\"splitCalls\": true"),
            Self::Pin => f.write_str("\"pin\": \"block\""),
        }
    }
}
