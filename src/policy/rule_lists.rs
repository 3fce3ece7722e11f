//! The lists of rules that apply to the calls of one host to one server.

use super::{Decider, Decision, RuleList, RulePlace, ToolCall};
use crate::config::{PolicyRule, ProfileName, ServerConfig, Settings, Verdict};

/// The lists of rules that apply to the calls of one host to one server. Each list decides by its
/// first rule that matches, and the strictest of their verdicts holds: no list can permit what
/// another one denies.
pub(crate) struct RuleLists<'a> {
    all: &'a [PolicyRule],
    server: (&'a str, &'a [PolicyRule]),
    profile: Option<(&'a ProfileName, &'a [PolicyRule])>,
}

impl<'a> RuleLists<'a> {
    pub(crate) fn of(
        settings: &'a Settings,
        server: &'a ServerConfig,
        profile: Option<&'a ProfileName>,
    ) -> Self {
        let of_profile = |name| Some((name, settings.profiles.get(name)?.policy.as_slice()));
        Self {
            all: &settings.policy,
            server: (&server.name, &server.policy),
            profile: profile.and_then(of_profile),
        }
    }

    /// Returns whether every call is allowed.
    pub(crate) fn are_empty(&self) -> bool {
        self.all.is_empty()
            && self.server.1.is_empty()
            && self.profile.is_none_or(|(_, rules)| rules.is_empty())
    }

    /// Returns the rule at a place.
    pub(crate) fn rule(&self, place: &RulePlace) -> Option<&'a PolicyRule> {
        let rules = match &place.list {
            RuleList::All => self.all,
            RuleList::Server(_) => self.server.1,
            RuleList::Profile(_) => self.profile?.1,
        };
        rules.get(place.position)
    }

    /// Returns the verdict on a call.
    pub(crate) fn decide(&self, call: &ToolCall<'_>) -> Decision {
        if let Some(decision) = by_own_rules(call) {
            return decision;
        }
        let of_profile = self.profile.and_then(|(name, rules)| {
            let list = || RuleList::Profile(name.as_str().to_owned());
            first(rules, list, |rule| call.matches(rule))
        });
        let (server, rules) = self.server;
        let of_server =
            first(rules, || RuleList::Server(server.to_owned()), |rule| call.matches_own(rule));
        let of_all = first(self.all, || RuleList::All, |rule| call.matches(rule));
        let decisions = [of_profile, of_server, of_all].into_iter().flatten();
        // The last of equally strict ones counts, which is the most general.
        let strictest = decisions.max_by_key(|decision| decision.verdict);
        strictest.unwrap_or(Decision {
            verdict: Verdict::Allow,
            by: Decider::Default,
            reason: None,
        })
    }
}

/// Returns the verdict of the first rule that matches.
fn first(
    rules: &[PolicyRule],
    list: impl FnOnce() -> RuleList,
    matches: impl Fn(&PolicyRule) -> bool,
) -> Option<Decision> {
    let (position, rule) = rules.iter().enumerate().find(|(_, rule)| matches(rule))?;
    Some(Decision {
        verdict: rule.then,
        by: Decider::Rule(RulePlace { list: list(), position }),
        reason: rule.reason.clone(),
    })
}

/// Returns the verdict of the rule that the key `splitCalls` adds.
fn by_own_rules(call: &ToolCall<'_>) -> Option<Decision> {
    let name = call.full_name();
    let deny = |by, reason| Some(Decision { verdict: Verdict::Deny, by, reason: Some(reason) });
    if call.is_to_read_only && !call.annotations().read_only {
        let reason = format!("The tool {name:?} is not marked as read-only; call it with use_tool");
        return deny(Decider::SplitCalls, reason);
    }
    None
}
