//! The rules of the key `policy`.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KeyProblem, ToolsetEntries};
use crate::config::{NamePattern, key_path::Step};

/// A rule about calls of tools. The first rule of a list that matches a call decides.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", expecting = "an object")]
#[schemars(deny_unknown_fields, extend("required" = ["then"]))]
pub(crate) struct PolicyRule {
    /// The tools, by name or glob: `server/tool`, `server/toolset/tool`, or the name of a tool of
    /// any server. In the entry of a server: `tool` or `toolset/tool`.
    #[serde(default = "any_tool", skip_serializing_if = "is_any_tool")]
    pub tools: NamePattern,
    /// Properties of the tools, as their servers declare them.
    #[serde(default, skip_serializing_if = "ToolHints::are_any")]
    pub when: ToolHints,
    /// Arguments of the call, by name or glob: each has to be a string that matches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, NamePattern>,
    /// The effect of the rule.
    // A rule without it is a problem; the default lets the file be read to its end.
    #[serde(default = "strictest")]
    #[schemars(transform = remove_default)]
    pub then: Verdict,
    /// The reason, for the agent and for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PolicyRule {
    /// Returns whether a rule of a list for all servers names tools as `server/tool`.
    pub(crate) fn has_full_name(&self) -> bool {
        self.tools.has_slash()
    }
}

/// The answer of a policy to a call, from the least strict to the strictest.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The call is made.
    Allow,
    /// The user of the host is asked first.
    Ask,
    /// The call is refused.
    Deny,
}

/// Properties of a tool by its annotations. A tool without an annotation has the default of MCP: it
/// is not read-only, destructive, not idempotent, and has an open world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ToolHints {
    /// `readOnlyHint`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `destructiveHint`, which is false for a tool that is read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// `idempotentHint`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// Returns whether every tool has the wanted properties.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn are_any(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the problems of a list of rules, with paths from the object that has it. `written` is
/// the value of the key `policy`; `server` is the one whose entry has the list, with its toolsets.
pub(in crate::config) fn problems(
    written: &Value,
    server: Option<(&str, &ToolsetEntries)>,
) -> Vec<KeyProblem> {
    let rules = written.as_array().into_iter().flatten().enumerate();
    let rules = rules.filter(|(_, rule)| rule.is_object());
    let mut problems = Vec::new();
    for (position, rule) in rules {
        let at = |key: Option<&str>| {
            let key = key.map(|key| Step::Key(key.to_owned()));
            let list = [Step::Key("policy".to_owned()), Step::Index(position)];
            list.into_iter().chain(key).collect::<Vec<_>>()
        };
        if rule["then"].is_null() {
            let message = "a rule needs \"then\": \"allow\", \"ask\" or \"deny\"";
            problems.push((at(None), message.to_owned()));
        }
        if let Some((server, toolsets)) = server
            && !toolsets.contains_key(server)
            && let Some(tools) = rule["tools"].as_str()
            && let Some(rest) = tools.strip_prefix(server).and_then(|it| it.strip_prefix('/'))
        {
            let message = format!(
                "rules in the entry of a server name its tools without the server: write {rest:?}"
            );
            problems.push((at(Some("tools")), message));
        }
    }
    problems
}

fn strictest() -> Verdict {
    Verdict::Deny
}

fn remove_default(schema: &mut Schema) {
    schema.remove("default");
}

fn any_tool() -> NamePattern {
    NamePattern::new("*")
}

fn is_any_tool(pattern: &NamePattern) -> bool {
    pattern.as_str() == "*"
}
