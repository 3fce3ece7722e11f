//! The reasons that a call is not permitted, as models read them.

use std::fmt;

use crate::policy::{Decider, Decision, MalformedCall};

/// The reason that a call is not permitted. `tool` is `server/tool`.
#[derive(Clone, Debug)]
pub(in crate::proxy) enum Denial {
    /// A rule denies the call.
    Rule { tool: String, decision: Decision },
    /// A rule demands that a user is asked, and none can be.
    CannotAsk { tool: String, decision: Decision },
    /// The host has not given the user's answer.
    NotAnswered { tool: String, decision: Decision },
    /// The user does not want the call.
    Declined { tool: String },
    /// The server does not list the tool, so that its properties are not known.
    Unlisted { tool: String },
    /// The server may read another call than the rules do.
    Malformed { server: String, cause: MalformedCall },
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { decision, .. } if decision.by == Decider::SplitCalls => {
                f.write_str(decision.reason.as_deref().unwrap_or_default())
            }
            Self::Rule { tool, decision } => write!(
                f,
                "The user's policy denies calls of the tool {tool:?}{}. Do not try to reach it in \
                    another way. (rule: {})",
                Reason(decision),
                decision.by
            ),
            Self::CannotAsk { tool, decision } => write!(
                f,
                "The tool {tool:?} needs the user's approval{}, and this host cannot ask for it. \
                    The user can run `dormouse policy allow {}` to allow it. (rule: {})",
                Reason(decision),
                Quoted(tool),
                decision.by
            ),
            Self::NotAnswered { tool, decision } => write!(
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
