//! The lists of rules that apply to the calls of one host to one server.

use super::{
    Decider, Decision, MalformedCall, NoAddition, RuleAddition, RuleList, RulePlace, ToolCall,
};
use crate::config::{PolicyRule, ProfileName, ServerConfig, Settings, Toolset, Verdict};

/// The lists of rules that apply to the calls of one host to one server. Each list decides by its
/// first rule that matches, and the strictest of their verdicts holds: no list can permit what
/// another one denies.
pub(crate) struct RuleLists<'a> {
    all: &'a [PolicyRule],
    server: (&'a str, &'a [PolicyRule]),
    toolsets: &'a [Toolset],
    profile: Option<(ProfileName, &'a [PolicyRule])>,
}

impl<'a> RuleLists<'a> {
    pub(crate) fn of(
        settings: &'a Settings,
        server: &'a ServerConfig,
        profile: Option<&ProfileName>,
    ) -> Self {
        let of_profile = |name: &ProfileName| {
            Some((name.clone(), settings.profiles.get(name)?.policy.as_slice()))
        };
        Self {
            all: &settings.policy,
            server: (&server.name, &server.policy),
            toolsets: server.offer.extent.toolsets(),
            profile: profile.and_then(of_profile),
        }
    }

    /// Returns whether a rule can be about a tool of the server.
    pub(crate) fn concern_server(&self) -> bool {
        let (server, own) = self.server;
        let start = format!("{server}/");
        let of_profile = self.profile.as_ref().map_or(&[][..], |(_, rules)| rules);
        let mut general = self.all.iter().chain(of_profile);
        !own.is_empty()
            || general.any(|rule| !rule.has_full_name() || rule.tools.may_begin_with(&start))
    }

    /// Returns the rule at a place.
    pub(crate) fn rule(&self, place: &RulePlace) -> Option<&'a PolicyRule> {
        let rules = match &place.list {
            RuleList::All => Some(self.all),
            RuleList::Server(name) => Some(self.server.1).filter(|_| name == self.server.0),
            RuleList::Profile(name) => {
                let (profile, rules) = self.profile.as_ref()?;
                Some(*rules).filter(|_| name == profile.as_str())
            }
        };
        rules?.get(place.position)
    }

    /// Returns the rule that allows the tool of a call under the conditions of a rule.
    ///
    /// # Errors
    /// If there is no such rule, or the added one would allow other tools too.
    pub(crate) fn addition(
        &self,
        call: &ToolCall,
        place: &RulePlace,
    ) -> Result<RuleAddition, NoAddition> {
        let rule = self.rule(place).ok_or_else(|| NoAddition::NoRule(place.clone()))?;
        let is_named = match place.list {
            RuleList::Server(_) => call.is_named_in_entry(rule),
            RuleList::All | RuleList::Profile(_) => is_about(call, rule, &self.longer_names(call)),
        };
        if !is_named {
            return Err(NoAddition::OtherTool(place.clone()));
        }
        let tools = call.name_in(&place.list);
        let tools = tools.ok_or_else(|| NoAddition::Ambiguous(place.clone()))?.to_owned();
        Ok(RuleAddition { before: place.clone(), rule: rule.clone(), tools })
    }

    /// Returns the verdict on a call.
    ///
    /// # Errors
    /// If servers may read an argument that a rule names in another way than dormouse.
    pub(crate) fn decide(&self, call: &ToolCall) -> Result<Decision, MalformedCall> {
        if call.has_changed() {
            return Ok(Decision::by_pin(call.server(), call.tool()));
        }
        if call.lacks_read_only() {
            return Ok(Decision::by_split_calls(call.full_name()));
        }
        let longer_names = self.longer_names(call);
        let of_profile = match &self.profile {
            Some((name, rules)) => {
                let list = || RuleList::Profile(name.as_str().to_owned());
                first(call, rules, list, |rule| is_about(call, rule, &longer_names))?
            }
            None => None,
        };
        let (server, rules) = self.server;
        let list = || RuleList::Server(server.to_owned());
        let of_server = first(call, rules, list, |rule| call.is_named_in_entry(rule))?;
        let is_about = |rule: &PolicyRule| is_about(call, rule, &longer_names);
        let of_all = first(call, self.all, || RuleList::All, is_about)?;
        let mut decisions: Vec<Decision> =
            [of_profile, of_server, of_all].into_iter().flatten().collect();
        // The last of equally strict ones counts, which is the most general.
        decisions.sort_by_key(|decision| decision.verdict);
        let Some(strictest) = decisions.pop() else { return Ok(Decision::by_default()) };
        let others = decisions.iter().filter(|other| other.verdict != Verdict::Allow);
        let others = others.filter_map(Decision::place).cloned().collect();
        Ok(Decision { others, ..strictest })
    }

    /// Returns the names of the tool in the toolsets that have it: `server/toolset/tool`.
    fn longer_names(&self, call: &ToolCall) -> Vec<String> {
        let toolsets = self.toolsets.iter().filter(|toolset| toolset.contains(call.tool()));
        let names = toolsets.map(|it| format!("{}/{}", it.full_name(call.server()), call.tool()));
        names.collect()
    }
}

/// Returns whether a rule of a list for all servers is about the tool, by one of its full names or
/// by its own name.
fn is_about(call: &ToolCall, rule: &PolicyRule, longer_names: &[String]) -> bool {
    call.is_named(rule)
        || rule.has_full_name() && longer_names.iter().any(|name| rule.tools.matches(name))
}

/// Returns the verdict of the first rule that matches.
fn first(
    call: &ToolCall,
    rules: &[PolicyRule],
    list: impl FnOnce() -> RuleList,
    is_named: impl Fn(&PolicyRule) -> bool,
) -> Result<Option<Decision>, MalformedCall> {
    for (position, rule) in rules.iter().enumerate() {
        if is_named(rule) && call.meets(rule)? {
            return Ok(Some(Decision {
                verdict: rule.then,
                by: Decider::Rule(RulePlace { list: list(), position }),
                reason: rule.reason.clone(),
                others: Vec::new(),
            }));
        }
    }
    Ok(None)
}
