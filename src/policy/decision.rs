//! The outcome of a policy for one call.

use std::fmt;

use crate::config::Verdict;

/// The verdict on a call, with the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) by: Decider,
    /// The reason that the rule gives.
    pub(crate) reason: Option<String>,
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
}

/// The place of a rule in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RulePlace {
    pub(crate) list: RuleList,
    /// The position in the list, from 0.
    pub(crate) position: usize,
}

impl Decision {
    /// Returns the place of the rule that decided, if it is a rule of the config.
    pub(crate) fn place(&self) -> Option<&RulePlace> {
        match &self.by {
            Decider::Rule(place) => Some(place),
            Decider::Default | Decider::SplitCalls => None,
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
        }
    }
}
