//! The lists of rules that apply to the calls of one host to one server.

use super::{Decider, Decision, MalformedCall, RuleList, RulePlace, ToolCall};
use crate::config::{
    PolicyRule, ProfileName, RuleException, ServerConfig, Settings, Toolset, Verdict,
};

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

    /// Returns whether a verdict may depend on what a server declares about its tools.
    pub(crate) fn depend_on_hints(&self) -> bool {
        let of_profile = self.profile.as_ref().map_or(&[][..], |(_, rules)| rules);
        let (_, own) = self.server;
        self.all.iter().chain(of_profile).chain(own).any(|rule| !rule.when.are_any())
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

    /// Returns the exception that allows the tool of a call under the conditions of a rule.
    ///
    /// # Errors
    /// If there is no such rule, or the exception would allow other tools too.
    pub(crate) fn exception(
        &self,
        call: &ToolCall,
        place: &RulePlace,
    ) -> Result<RuleException, NoException> {
        let rule = self.rule(place).ok_or_else(|| NoException::NoRule(place.clone()))?;
        let tool = NamedTool::of(call, self.toolsets);
        let is_named = match place.list {
            RuleList::Server(_) => tool.is_named_in_entry(rule),
            RuleList::All | RuleList::Profile(_) => tool.is_named(rule),
        };
        if !is_named {
            return Err(NoException::OtherTool(place.clone()));
        }
        let tools = call.name_in(&place.list);
        let tools = tools.ok_or_else(|| NoException::Ambiguous(place.clone()))?.to_owned();
        let list = place.list.path().into_iter().map(str::to_owned).collect();
        Ok(RuleException { list, position: place.position, rule: rule.clone(), tools })
    }

    /// Returns the verdict on a call.
    ///
    /// # Errors
    /// If servers may read an argument that a rule names in another way than dormouse.
    pub(crate) fn decide(&self, call: &ToolCall) -> Result<Decision, MalformedCall> {
        if call.lacks_read_only() {
            return Ok(Decision::denied_by(Decider::SplitCalls));
        }
        let tool = NamedTool::of(call, self.toolsets);
        let of_profile = match &self.profile {
            Some((name, rules)) => {
                let list = || RuleList::Profile(name.as_str().to_owned());
                first(call, rules, list, |rule| tool.is_named(rule))?
            }
            None => None,
        };
        let (server, rules) = self.server;
        let list = || RuleList::Server(server.to_owned());
        let of_server = first(call, rules, list, |rule| tool.is_named_in_entry(rule))?;
        let of_all = first(call, self.all, || RuleList::All, |rule| tool.is_named(rule))?;
        let mut decisions: Vec<Decision> =
            [of_profile, of_server, of_all].into_iter().flatten().collect();
        // The last of equally strict ones counts, which is the most general.
        decisions.sort_by_key(|decision| decision.verdict);
        let Some(strictest) = decisions.pop() else { return Ok(Decision::by_default()) };
        let others = decisions.iter().filter(|other| other.verdict != Verdict::Allow);
        let others = others.filter_map(Decision::place).cloned().collect();
        Ok(Decision { others, ..strictest })
    }
}

/// The reason that a rule can have no exception.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoException {
    #[error("the config has no rule {0} for this server")]
    NoRule(RulePlace),
    #[error("the tool's name has characters that cannot be seen")]
    Invisible,
    #[error("the rule {0} is not about this tool")]
    OtherTool(RulePlace),
    #[error("a rule for the tool would match other tools too: edit {0} by hand")]
    Ambiguous(RulePlace),
}

/// A tool with all names that rules may have for it.
struct NamedTool<'a> {
    /// The server's own name.
    own: &'a str,
    /// `server/tool`
    full: &'a str,
    /// Number of bytes of `server/`.
    server: usize,
    /// `server/toolset/tool`, by each toolset that has the tool.
    by_toolset: Vec<String>,
}

impl<'a> NamedTool<'a> {
    fn of(call: &'a ToolCall, toolsets: &[Toolset]) -> Self {
        let (server, own, full) = (call.server(), call.tool(), call.full_name());
        let toolsets = toolsets.iter().filter(|toolset| toolset.contains(own));
        let by_toolset = toolsets.map(|it| format!("{}/{own}", it.full_name(server))).collect();
        Self { own, full, server: server.len() + 1, by_toolset }
    }

    /// Returns whether a rule of a list for all servers is about the tool.
    fn is_named(&self, rule: &PolicyRule) -> bool {
        if !rule.has_full_name() {
            return rule.tools.matches(self.own);
        }
        rule.tools.matches(self.full) || self.by_toolset.iter().any(|it| rule.tools.matches(it))
    }

    /// Returns whether a rule in the entry of the server is about the tool.
    fn is_named_in_entry(&self, rule: &PolicyRule) -> bool {
        let mut by_toolset = self.by_toolset.iter().map(|name| &name[self.server..]);
        rule.tools.matches(self.own)
            || rule.tools.has_slash() && by_toolset.any(|name| rule.tools.matches(name))
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::{prelude::*, sample::select};
    use serde_json::json;

    use super::*;
    use crate::{
        config::{Config, Environment},
        wire::Raw,
    };

    /// `a/b` may be a server, or the beginning of a tool's name.
    const SERVERS: [&str; 2] = ["a", "a/b"];
    const TOOLS: [&str; 5] = ["x", "y", "list_x", "x/y", "b/x"];
    /// Patterns for lists that are for all servers.
    const PATTERNS: [&str; 14] = [
        "*", "x", "*x", "a/*", "a/x", "a/b/x", "a/t/x", "a/t/*", "a/x/y", "*/x", "a/b/t/*", "z/x",
        "t/x", "*/t/x",
    ];
    /// Patterns for the entry of a server.
    const OWN_PATTERNS: [&str; 8] = ["*", "x", "l*", "x/y", "t/x", "t/*", "*/y", "z/x"];

    /// The tools and verdicts of the rules in one list.
    type List = Vec<(String, Verdict)>;

    /// The rules of the file, of the profile `p`, and of the entries of both servers.
    type Lists = [List; 3];

    /// The positions of the lists in [`Lists`], from the most general.
    const BY_GENERALITY: [usize; 3] = [0, 2, 1];

    fn any_list(patterns: &'static [&'static str]) -> impl Strategy<Value = List> {
        let tools = select(patterns).prop_map(str::to_owned);
        let verdict = select(&[Verdict::Allow, Verdict::Ask, Verdict::Deny]);
        proptest::collection::vec((tools, verdict), 0..3)
    }

    fn any_lists() -> impl Strategy<Value = Lists> {
        let (all, profile) = (any_list(&PATTERNS), any_list(&PATTERNS));
        (all, profile, any_list(&OWN_PATTERNS)).prop_map(Lists::from)
    }

    /// Each server has the toolsets `t`, of `x` and `list_x`, and `x`, of `y`.
    fn config([all, profile, own]: &Lists) -> Config {
        let rules = |rules: &List| {
            let rules = rules.iter().map(|(tools, then)| json!({"tools": tools, "then": then}));
            rules.collect::<Vec<_>>()
        };
        let toolsets = json!({"t": {"tools": ["x", "l*"]}, "x": {"tools": ["y"]}});
        let entry = json!({"command": "c", "toolsets": toolsets, "policy": rules(own)});
        let text = json!({
            "policy": rules(all),
            "profiles": {"p": {"policy": rules(profile)}},
            "mcpServers": {SERVERS[0]: entry, SERVERS[1]: entry},
        });
        let path = Path::new("/etc/d/dormouse.json");
        crate::config::parse(&text.to_string(), path, &Environment::default()).unwrap().config
    }

    fn lists(config: &Config, server: usize) -> RuleLists<'_> {
        let profile = config.settings.profiles.named("p").unwrap();
        RuleLists::of(&config.settings, &config.servers[server], Some(&profile))
    }

    fn call(server: &str, tool: &str) -> ToolCall {
        ToolCall::read(server, &Raw::encode(&json!({"name": tool}))).unwrap()
    }

    fn decision(config: &Config, server: usize, tool: &str) -> Decision {
        lists(config, server).decide(&call(SERVERS[server], tool)).unwrap()
    }

    /// Returns one of the lists without the others.
    fn only(lists: &Lists, kept: usize) -> Lists {
        let mut only = Lists::default();
        only[kept].clone_from(&lists[kept]);
        only
    }

    proptest! {
        #[test]
        fn strictest_list_decides_and_of_equal_ones_the_most_general(
            all in any_lists(),
            server in 0..SERVERS.len(),
            tool in select(&TOOLS),
        ) {
            let found = decision(&config(&all), server, tool);
            let alone = BY_GENERALITY.map(|kept| {
                let config = config(&only(&all, kept));
                decision(&config, server, tool)
            });
            let strictest = alone.iter().map(|it| it.verdict).max().unwrap();
            let matching = alone.iter().filter(|it| it.by != Decider::Default);
            let expected = matching.clone().find(|it| it.verdict == strictest);
            prop_assert_eq!(found.verdict, strictest);
            prop_assert_eq!(&found.by, expected.map_or(&Decider::Default, |it| &it.by));
            let refusing = matching.filter(|it| it.verdict != Verdict::Allow).count();
            prop_assert_eq!(found.places().count(), refusing);
        }

        #[test]
        fn no_rule_matches_where_none_concerns_the_server(
            all in any_lists(),
            server in 0..SERVERS.len(),
            tool in select(&TOOLS),
        ) {
            let config = config(&all);
            if !lists(&config, server).concern_server() {
                prop_assert_eq!(decision(&config, server, tool), Decision::by_default());
            }
        }

        #[test]
        fn exception_allows_its_tool_in_its_list_and_changes_no_other_verdict(
            all in any_lists(),
            server in 0..SERVERS.len(),
            tool in select(&TOOLS),
        ) {
            let before = config(&all);
            let lists_before = lists(&before, server);
            let call = call(SERVERS[server], tool);
            for place in lists_before.decide(&call).unwrap().places() {
                let Ok(exception) = lists_before.exception(&call, place) else { continue };
                let list = match place.list {
                    RuleList::All => 0,
                    RuleList::Profile(_) => 1,
                    RuleList::Server(_) => 2,
                };
                let mut after = all.clone();
                after[list].insert(exception.position, (exception.tools, Verdict::Allow));
                let alone = decision(&config(&only(&after, list)), server, tool);
                prop_assert_eq!(alone.verdict, Verdict::Allow);
                let after = config(&after);
                for (at, other) in (0..SERVERS.len()).flat_map(|at| TOOLS.map(|it| (at, it))) {
                    // Both servers have the same entry here.
                    let is_it = other == tool && (at == server || list == 2);
                    let [before, after] = [&before, &after].map(|it| decision(it, at, other));
                    prop_assert!(is_it || before.verdict == after.verdict, "{at} {other}");
                }
            }
        }
    }
}
