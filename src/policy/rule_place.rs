//! The places of rules in a config, as refusals and commands name them.

use std::{fmt, str::FromStr};

/// The place of a rule in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RulePlace {
    pub(crate) list: RuleList,
    /// The position in the list, from 0.
    pub(crate) position: usize,
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
