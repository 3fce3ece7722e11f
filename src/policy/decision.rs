//! The outcome of a policy for one call.

use std::{fmt, str::FromStr};

use crate::config::Verdict;

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
    /// The rule that `"pin": "block"` adds: a changed tool has to be approved first.
    Pin,
}

/// The place of a rule in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RulePlace {
    pub(crate) list: RuleList,
    /// The position in the list, from 0.
    pub(crate) position: usize,
}

impl Decision {
    /// Returns the decision about a call that no rule matches.
    pub(super) fn by_default() -> Self {
        let others = Vec::new();
        Self { verdict: Verdict::Allow, by: Decider::Default, reason: None, others }
    }

    /// Returns the decision about a tool without the annotation that the agent has asked for.
    /// `tool` is `server/tool`.
    pub(super) fn by_split_calls(tool: &str) -> Self {
        Self::denied_by(
            Decider::SplitCalls,
            format!("The tool {tool:?} is not marked as read-only; call it with use_tool"),
        )
    }

    /// Returns the decision about a tool that differs from what the user has approved.
    pub(crate) fn by_pin(server: &str, tool: &str) -> Self {
        Self::denied_by(
            Decider::Pin,
            format!(
                "The tool {tool:?} of server {server:?} is blocked: its definition has changed \
                    since it was first seen, or cannot be compared. The user has to review it and \
                    run: dormouse approve {server} {tool}"
            ),
        )
    }

    fn denied_by(by: Decider, message: String) -> Self {
        Self { verdict: Verdict::Deny, by, reason: Some(message), others: Vec::new() }
    }

    /// Returns the message to the agent, if the rule is one that a setting adds: its reason says
    /// everything.
    pub(crate) fn message(&self) -> Option<&str> {
        let is_added = matches!(self.by, Decider::SplitCalls | Decider::Pin);
        self.reason.as_deref().filter(|_| is_added)
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

/// A list of rules in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleList {
    /// `policy` of the file.
    All,
    /// `policy` of a server's entry.
    Server(String),
    /// `policy` of a profile.
    Profile(String),
}

impl RuleList {
    /// Returns the path of the list in a config.
    pub(crate) fn path(&self) -> Vec<&str> {
        match self {
            Self::All => vec!["policy"],
            Self::Server(name) => vec!["mcpServers", name, "policy"],
            Self::Profile(name) => vec!["profiles", name, "policy"],
        }
    }
}

/// The text names no place of a rule.
#[derive(Debug, thiserror::Error)]
#[error(
    "a rule is named as in refusals: policy[0], mcpServers.NAME.policy[0], or \
    profiles.NAME.policy[0]"
)]
pub(crate) struct NoRulePlace;

impl FromStr for RulePlace {
    type Err = NoRulePlace;

    fn from_str(text: &str) -> Result<Self, NoRulePlace> {
        let (list, position) =
            text.strip_suffix(']').and_then(|it| it.rsplit_once('[')).ok_or(NoRulePlace)?;
        let position = position.parse().map_err(|_| NoRulePlace)?;
        let name = |outer: &str| {
            let name = list.strip_prefix(outer)?.strip_suffix(".policy")?;
            Some(name.to_owned())
        };
        let list = if list == "policy" {
            RuleList::All
        } else if let Some(name) = name("mcpServers.") {
            RuleList::Server(name)
        } else {
            RuleList::Profile(name("profiles.").ok_or(NoRulePlace)?)
        };
        Ok(Self { list, position })
    }
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.list.path().join("."), self.position)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_read_as_it_is_shown() {
        let lists = [
            RuleList::All,
            RuleList::Server("a.b".to_owned()),
            RuleList::Profile("policy[1]".to_owned()),
        ];
        for list in lists {
            let place = RulePlace { list, position: 12 };
            assert_eq!(place.to_string().parse::<RulePlace>().ok(), Some(place));
        }
        for wrong in
            ["policy", "policy[]", "policy[-1]", "[0]", "servers.a.policy[0]", "policy[0]x"]
        {
            assert!(wrong.parse::<RulePlace>().is_err(), "{wrong}");
        }
    }
}
