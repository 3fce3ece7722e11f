//! Rules that allow what other rules ask about or deny.

use super::{RuleList, RulePlace, ToolCall};
use crate::config::{ConfigEdit, NamePattern, PolicyRule, RuleException};

/// A rule that allows one tool, before another rule and under its conditions.
#[derive(Clone, Debug)]
pub(crate) struct RuleAddition {
    pub(super) before: RulePlace,
    pub(super) rule: PolicyRule,
    /// The name of the tool in the list.
    pub(super) tools: String,
}

/// The reason that no rule can be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAddition {
    #[error("the config has no rule {0} for this server")]
    NoRule(RulePlace),
    #[error("the rule {0} is not about this tool")]
    OtherTool(RulePlace),
    #[error("a rule for the tool would match other tools too: edit {0} by hand")]
    Ambiguous(RulePlace),
}

impl RuleAddition {
    /// Returns the rule that it precedes.
    pub(crate) fn before(&self) -> &RulePlace {
        &self.before
    }

    /// Returns the edit of the config that makes the addition.
    pub(crate) fn edit(self) -> ConfigEdit {
        let Self { before: RulePlace { list, position }, rule, tools } = self;
        let list = list.path().into_iter().map(str::to_owned).collect();
        ConfigEdit::AddRule(Box::new(RuleException { list, position, rule, tools }))
    }
}

impl ToolCall {
    /// Returns the name of the tool in a list, if it is no name of other tools.
    pub(super) fn name_in(&self, list: &RuleList) -> Option<&str> {
        let (name, is_clear) = match list {
            RuleList::Server(_) => (self.tool(), true),
            // `a/b/c` may be a tool of the server `a`, or one of `a/b`.
            RuleList::All | RuleList::Profile(_) => {
                (self.full_name(), self.full_name().matches('/').count() == 1)
            }
        };
        (is_clear && !NamePattern::new(name).is_glob()).then_some(name)
    }
}
