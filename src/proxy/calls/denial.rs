//! The reasons that a call is not permitted, as models read them.

use std::fmt;

use crate::{
    policy::{Decision, MalformedCall},
    proxy::events::PolicyEffect,
};

/// A tool that a user has to be asked about.
#[derive(Clone, Debug)]
pub(in crate::proxy) struct AskedTool {
    /// `server/tool`
    pub(super) tool: String,
    /// The decision that demands it.
    pub(super) decision: Decision,
}

/// The reason that a call is not permitted. `tool` is `server/tool`.
#[derive(Clone, Debug)]
pub(in crate::proxy) enum Denial {
    /// A rule denies the call.
    Rule { tool: String, decision: Decision },
    /// A rule demands that a user is asked, and none can be.
    CannotAsk(AskedTool),
    /// The host has not given the user's answer.
    NotAnswered(AskedTool),
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
            Self::Rule { .. } | Self::Unlisted { .. } | Self::Malformed { .. } => {
                PolicyEffect::Denied
            }
            Self::CannotAsk(_) | Self::NotAnswered(_) => PolicyEffect::Unapproved,
            Self::Declined { .. } => PolicyEffect::Declined,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { tool, decision } => match decision.message() {
                Some(message) => f.write_str(message),
                None => write!(
                    f,
                    "The user's policy denies calls of the tool {tool:?}{}. Do not try to reach it \
                        in another way. (rule: {})",
                    Reason(decision),
                    decision.by
                ),
            },
            Self::CannotAsk(AskedTool { tool, decision }) => write!(
                f,
                "The tool {tool:?} needs the user's approval{}, and this host cannot ask for it. \
                    The user can run `dormouse policy allow {}{}` to allow it. (rule: {})",
                Reason(decision),
                Quoted(tool),
                RuleOptions(decision),
                decision.by
            ),
            Self::NotAnswered(AskedTool { tool, decision }) => write!(
                f,
                "The tool {tool:?} needs the user's approval{}, and the user has not answered. \
                    Nothing was called. (rule: {})",
                Reason(decision),
                decision.by
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

/// The options of `policy allow` that name the rules.
struct RuleOptions<'a>(&'a Decision);

impl fmt::Display for RuleOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.places().try_for_each(|place| write!(f, " --rule {}", Quoted(&place.to_string())))
    }
}

/// A word of a command line, quoted if a shell needs that.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match shlex::try_quote(self.0) {
            Ok(quoted) => f.write_str(&quoted),
            Err(_) => f.write_str(self.0),
        }
    }
}
