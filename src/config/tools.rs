//! The tools of a server that are switched on (docs/design/config.md).

use std::{borrow::Cow, collections::HashMap, fmt};

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, value::MapAccessDeserializer},
};

use super::NamePattern;

/// The `tools` of an entry as written, in order.
pub(super) type ToolSwitches = IndexMap<String, ToolSwitch>;

/// `true`, `false`, or `{"enabled": …, "stale": …}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToolSwitch {
    enabled: bool,
    stale: bool,
}

/// The long form of a switch.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LongSwitch {
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    stale: bool,
}

fn yes() -> bool {
    true
}

impl<'de> Deserialize<'de> for ToolSwitch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SwitchVisitor)
    }
}

struct SwitchVisitor;

impl<'de> de::Visitor<'de> for SwitchVisitor {
    type Value = ToolSwitch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, or an object with \"enabled\"")
    }

    fn visit_bool<E>(self, enabled: bool) -> Result<ToolSwitch, E> {
        Ok(ToolSwitch { enabled, stale: false })
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ToolSwitch, A::Error> {
        let LongSwitch { enabled, stale } =
            Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ToolSwitch { enabled, stale })
    }
}

impl JsonSchema for ToolSwitch {
    fn schema_name() -> Cow<'static, str> {
        "ToolSwitch".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Whether a tool is shown and can be called. `stale` marks a tool that \
                its server no longer has.",
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "enabled": {"type": "boolean", "default": true},
                        "stale": {"type": "boolean", "default": false},
                    },
                    "additionalProperties": false,
                },
                {"type": "boolean"},
            ],
        })
    }
}

/// The rules that switch the tools of a server. A tool without a matching rule is on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRules {
    rules: Vec<ToolRule>,
    /// The position in `rules` of each name that is not a glob; of equal ones the first.
    exact: HashMap<String, usize>,
    /// The choices of profiles: a tool that none of them has is off.
    chosen: Option<Vec<ToolChoice>>,
}

/// A profile's choice of tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolChoice {
    /// The chosen tools; `None` for all.
    pub tools: Option<Vec<NamePattern>>,
    /// The tools of the toolset of which they are chosen; `None` for the whole server.
    pub within: Option<Vec<NamePattern>>,
}

impl ToolChoice {
    fn has(&self, tool: &str) -> bool {
        let lists = [&self.tools, &self.within].into_iter().flatten();
        lists.into_iter().all(|patterns| patterns.iter().any(|pattern| pattern.matches(tool)))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct ToolRule {
    pattern: NamePattern,
    enabled: bool,
    stale: bool,
}

impl ToolRules {
    pub(super) fn new(switches: ToolSwitches) -> Self {
        let rule = |(pattern, ToolSwitch { enabled, stale }): (String, _)| ToolRule {
            pattern: NamePattern::new(&pattern),
            enabled,
            stale,
        };
        let rules: Vec<ToolRule> = switches.into_iter().map(rule).collect();
        let patterns = rules.iter().enumerate().rev();
        let exact = patterns.map(|(at, rule)| (rule.pattern.as_str().to_owned(), at)).collect();
        Self { rules, exact, chosen: None }
    }

    /// Keeps only those enabled tools that one of these choices has.
    pub(crate) fn restrict(&mut self, chosen: Vec<ToolChoice>) {
        self.chosen = Some(chosen);
    }

    /// Returns whether hosts see and may call this tool. An exact name decides before a glob, a
    /// longer glob before a shorter one, and of equals the last.
    pub fn allow(&self, tool: &str) -> bool {
        let chosen = self.chosen.as_ref();
        let is_chosen = chosen.is_none_or(|chosen| chosen.iter().any(|choice| choice.has(tool)));
        is_chosen && self.rule_for(tool).is_none_or(|rule| rule.enabled)
    }

    /// Returns whether a rule matches this tool.
    pub fn decide(&self, tool: &str) -> bool {
        self.rule_for(tool).is_some()
    }

    fn rule_for(&self, tool: &str) -> Option<&ToolRule> {
        let exact = self.exact.get(tool).map(|at| &self.rules[*at]);
        exact.or_else(|| {
            let globs = self.rules.iter().filter(|rule| rule.pattern.is_glob());
            let matching = globs.filter(|rule| rule.pattern.matches(tool));
            matching.max_by_key(|rule| rule.pattern.as_str().chars().count())
        })
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether every possible tool is on.
    pub fn allows_all(&self) -> bool {
        self.rules.is_empty() && self.chosen.is_none()
    }

    /// Returns the tools that are named, and whether each is marked as gone from its server.
    pub fn named(&self) -> impl Iterator<Item = (&str, bool)> {
        let named = self.rules.iter().filter(|rule| !rule.pattern.is_glob());
        named.map(|rule| (rule.pattern.as_str(), rule.stale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_most_exact_rule_decides() {
        let switches = json!({
            "performance_start": true, "*": false, "performance_*": {"enabled": true},
            "performance_s*": false, "read_?": {}, "gone": {"enabled": false, "stale": true},
        });
        let rules = ToolRules::new(serde_json::from_value(switches).unwrap());
        for (tool, expected) in [
            ("performance_start", true),
            ("performance_stop", false),
            ("performance_x", true),
            ("other", false),
            ("read_1", true),
            ("read_12", false),
            ("gone", false),
        ] {
            assert_eq!(rules.allow(tool), expected, "{tool}");
        }
        let named: Vec<_> = rules.named().collect();
        assert_eq!(named, [("performance_start", false), ("gone", true)]);
        assert!(ToolRules::default().allow("anything"));
    }

    #[test]
    fn of_equal_globs_the_last_decides() {
        let rules = |text| ToolRules::new(serde_json::from_str(text).unwrap());
        assert!(!rules(r#"{"a*": true, "*b": false}"#).allow("ab"));
        assert!(rules(r#"{"*b": false, "a*": true}"#).allow("ab"));
    }
}
