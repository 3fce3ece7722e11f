//! The reasons that a call is not permitted, as models read them.

use std::fmt;

use crate::{
    base::visible,
    config::UserCommands,
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
    /// A setting denies the call.
    Setting { message: String },
    /// A rule of the config denies the call.
    Rule(JudgedTool),
    /// A rule demands that a user is asked, and none can be.
    CannotAsk { judged: JudgedTool, remedy: Remedy },
    /// The host has not given the user's answer.
    NotAnswered(JudgedTool),
    /// The consents that the user gave were no longer in force, since the server was replaced.
    ConsentsLost(JudgedTool),
    /// The user does not want the call.
    Declined { tool: String },
    /// The server does not list the tool, so that its properties are not known.
    Unlisted { tool: String },
    /// The list of the server cannot be read, and a rule depends on it.
    ListUnread { server: String },
    /// The server may read another call than the rules do.
    Malformed { server: String, cause: MalformedCall },
}

/// The way in which a user allows a tool that a rule asks about.
#[derive(Clone, Debug)]
pub(in crate::proxy) enum Remedy {
    /// A command.
    Run(String),
    /// An edit of the config, since no command can add an exception to the rule.
    EditByHand(NoException),
}

impl Denial {
    /// Returns the reason for a tool that is denied without asking.
    pub(super) fn of(judged: JudgedTool, commands: &UserCommands) -> Self {
        let JudgedTool { server, tool, decision } = &judged;
        match decision.by.message(server, tool, commands) {
            Some(message) => Self::Setting { message },
            None => Self::Rule(judged),
        }
    }

    /// Returns the reason for a call about which no user can be asked.
    pub(super) fn cannot_ask(
        judged: JudgedTool,
        by_hand: Option<NoException>,
        commands: &UserCommands,
    ) -> Self {
        let tool = judged.full_name();
        let remedy = match by_hand {
            Some(why) => Remedy::EditByHand(why),
            None if visible(&tool) != tool || tool.contains('\n') => {
                Remedy::EditByHand(NoException::Invisible)
            }
            None => Remedy::Run(commands.allow(&tool, judged.decision.places())),
        };
        Self::CannotAsk { judged, remedy }
    }

    /// Returns the effect of the policy, as it is recorded.
    pub(super) fn effect(&self) -> PolicyEffect {
        match self {
            Self::Setting { .. }
            | Self::Rule(_)
            | Self::Unlisted { .. }
            | Self::ListUnread { .. }
            | Self::Malformed { .. } => PolicyEffect::Denied,
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
            Self::Setting { message } => f.write_str(message),
            Self::Rule(judged) => write!(
                f,
                "The user's policy denies calls of the tool {:?}{}. Do not try to reach it in \
                    another way. (rule: {})",
                judged.full_name(),
                Reason(&judged.decision),
                judged.decision.by
            ),
            Self::CannotAsk { judged, remedy } => {
                let needs = NeedsApproval(judged);
                write!(f, "{needs}, and this host cannot ask for it. ")?;
                match remedy {
                    Remedy::Run(command) => {
                        write!(f, "The user can run `{command}` to allow it.")?;
                    }
                    Remedy::EditByHand(why) => {
                        write!(f, "The user can allow it in the config ({why}).")?;
                    }
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
            Self::ListUnread { server } => write!(
                f,
                "The list of tools of server {server:?} cannot be read, and the user's policy \
                    depends on it. Nothing was called."
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
        let commands = UserCommands { config: Some("/a b/dormouse.json".into()), env_file: None };
        let denials = [
            Denial::of(judged(rule(), None), &commands),
            Denial::of(judged(rule(), Some("Not today.")), &commands),
            Denial::of(judged(Decider::SplitCalls, None), &commands),
            Denial::of(judged(Decider::Pin, None), &commands),
            Denial::cannot_ask(judged(rule(), Some("It costs money.")), None, &commands),
            Denial::cannot_ask(
                judged(rule(), None),
                Some(NoException::Ambiguous(place("policy[1]"))),
                &commands,
            ),
            Denial::NotAnswered(judged(rule(), None)),
            Denial::ConsentsLost(judged(rule(), None)),
            Denial::Declined { tool: tool() },
            Denial::Unlisted { tool: tool() },
            Denial::ListUnread { server: "a".to_owned() },
            Denial::Malformed { server: "a".to_owned(), cause: MalformedCall::Unnamed },
        ];
        let texts = denials.map(|denial| format!("{:?}: {denial}", denial.effect()));
        insta::assert_snapshot!(texts.join("\n"));
    }
}
