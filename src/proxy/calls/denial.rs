//! The reasons that a call is not permitted, as models read them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    base::shell_command,
    policy::{Decision, MalformedCall, NoException, ToolCall},
    proxy::events::PolicyEffect,
};

/// A tool whose call was judged.
#[derive(Clone, Debug)]
pub(in crate::proxy) struct JudgedTool {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) decision: Decision,
}

impl JudgedTool {
    pub(super) fn of(call: &ToolCall, decision: Decision) -> Self {
        Self { server: call.server().to_owned(), tool: call.tool().to_owned(), decision }
    }

    /// Returns `server/tool`.
    fn full_name(&self) -> String {
        format!("{}/{}", self.server, self.tool)
    }
}

/// The reason that a call is not permitted. `tool` is `server/tool`.
#[derive(Clone, Debug)]
pub(in crate::proxy) enum Denial {
    /// A rule or a setting denies the call.
    Rule(JudgedTool),
    /// A rule demands that a user is asked, and none can be.
    CannotAsk {
        judged: JudgedTool,
        /// The reason that no command can add an exception to the rule.
        by_hand: Option<NoException>,
        /// The config, if the command finds it only by its path.
        config: Option<PathBuf>,
    },
    /// The host has not given the user's answer.
    NotAnswered(JudgedTool),
    /// The consents that the user gave were no longer in force, since the server was replaced.
    ConsentsLost(JudgedTool),
    /// The user does not want the call.
    Declined { tool: String },
    /// The server does not list the tool, so that its properties are not known.
    Unlisted { tool: String },
    /// The server may read another call than the rules do.
    Malformed { server: String, cause: MalformedCall },
}

impl Denial {
    /// Returns the effect of the policy, as it is recorded.
    pub(super) fn effect(&self) -> PolicyEffect {
        match self {
            Self::Rule(_) | Self::Unlisted { .. } | Self::Malformed { .. } => PolicyEffect::Denied,
            Self::CannotAsk { .. } | Self::NotAnswered(_) | Self::ConsentsLost(_) => {
                PolicyEffect::Unapproved
            }
            Self::Declined { .. } => PolicyEffect::Declined,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(JudgedTool { server, tool, decision })
                if let Some(message) = decision.by.message(server, tool) =>
            {
                f.write_str(&message)
            }
            Self::Rule(judged) => write!(
                f,
                "The user's policy denies calls of the tool {:?}{}. Do not try to reach it in \
                    another way. (rule: {})",
                judged.full_name(),
                Reason(&judged.decision),
                judged.decision.by
            ),
            Self::CannotAsk { judged, by_hand, config } => {
                let needs = NeedsApproval(judged);
                write!(f, "{needs}, and this host cannot ask for it. ")?;
                match by_hand {
                    None => {
                        let command = allow_command(judged, config.as_deref());
                        write!(f, "The user can run `{command}` to allow it.")?;
                    }
                    Some(why) => write!(f, "The user can allow it in the config ({why}).")?,
                }
                write!(f, " (rule: {})", judged.decision.by)
            }
            Self::NotAnswered(judged) => write!(
                f,
                "{}, and the user has not answered. Nothing was called. (rule: {})",
                NeedsApproval(judged),
                judged.decision.by
            ),
            Self::ConsentsLost(judged) => write!(
                f,
                "{}, and its server was replaced each time that the user gave it. Nothing was \
                    called. (rule: {})",
                NeedsApproval(judged),
                judged.decision.by
            ),
            Self::Declined { tool } => write!(
                f,
                "The user has declined this call of the tool {tool:?}. Nothing was called. Ask \
                    the user how to go on."
            ),
            Self::Unlisted { tool } => write!(
                f,
                "The tool {tool:?} is not in the list of its server, and the user's policy permits \
                    only tools that are"
            ),
            Self::Malformed { server, cause } => write!(
                f,
                "The user's policy cannot be applied to this call of server {server:?}: {cause}"
            ),
        }
    }
}

/// The beginning of a sentence about a call that a rule asks about.
struct NeedsApproval<'a>(&'a JudgedTool);

impl fmt::Display for NeedsApproval<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, reason) = (self.0.full_name(), Reason(&self.0.decision));
        write!(f, "The tool {tool:?} needs the user's approval{reason}")
    }
}

/// The reason that a rule gives, in parentheses.
struct Reason<'a>(&'a Decision);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.reason {
            Some(reason) => write!(f, " ({})", reason.trim_end_matches('.')),
            None => Ok(()),
        }
    }
}

/// Returns the command that allows a tool in spite of the rules that ask about it.
fn allow_command(judged: &JudgedTool, config: Option<&Path>) -> String {
    let mut words = ["dormouse", "policy", "allow"].map(str::to_owned).to_vec();
    words.push(judged.full_name());
    for place in judged.decision.places() {
        words.extend(["--rule".to_owned(), place.to_string()]);
    }
    if let Some(path) = config {
        words.extend(["--config".to_owned(), path.display().to_string()]);
    }
    shell_command(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Verdict,
        policy::{Decider, RulePlace},
    };

    #[test]
    fn every_denial_says_what_the_agent_can_do() {
        let place = |text: &str| text.parse::<RulePlace>().unwrap();
        let judged = |by: Decider, reason: Option<&str>| JudgedTool {
            server: "a".to_owned(),
            tool: "two words".to_owned(),
            decision: Decision {
                verdict: Verdict::Ask,
                by,
                reason: reason.map(str::to_owned),
                others: vec![place("profiles.p.policy[0]")],
            },
        };
        let rule = || Decider::Rule(place("policy[1]"));
        let tool = || "a/two words".to_owned();
        let denials = [
            Denial::Rule(judged(rule(), None)),
            Denial::Rule(judged(rule(), Some("Not today."))),
            Denial::Rule(judged(Decider::SplitCalls, None)),
            Denial::Rule(judged(Decider::Pin, None)),
            Denial::CannotAsk {
                judged: judged(rule(), Some("It costs money.")),
                by_hand: None,
                config: Some("/a b/dormouse.json".into()),
            },
            Denial::CannotAsk {
                judged: judged(rule(), None),
                by_hand: Some(NoException::Ambiguous(place("policy[1]"))),
                config: None,
            },
            Denial::NotAnswered(judged(rule(), None)),
            Denial::ConsentsLost(judged(rule(), None)),
            Denial::Declined { tool: tool() },
            Denial::Unlisted { tool: tool() },
            Denial::Malformed { server: "a".to_owned(), cause: MalformedCall::Unnamed },
        ];
        let texts = denials.map(|denial| format!("{:?}: {denial}", denial.effect()));
        insta::assert_snapshot!(texts.join("\n"));
    }
}
