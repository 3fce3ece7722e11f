//! The question that asks a user to approve a call (MCP 2025-11-25, client/elicitation, form mode).

use serde_json::json;

use super::shown_value::{shown_text, shown_value};
use crate::{
    base::{one_line, shortened, visible},
    policy::{Decision, ToolCall},
    protocol::method,
    proxy::asking::HostQuestion,
    wire::{Raw, edit},
};

/// Maximum length of the arguments in a question, in characters, without the notes on cuts.
const MAX_ARGUMENTS_CHARS: usize = 4000;
/// Maximum length of the name of a tool or server, in characters.
const MAX_NAME_CHARS: usize = 128;
/// Maximum length of the reason of a rule, in characters.
const MAX_REASON_CHARS: usize = 500;

/// The question that asks a user to approve a call.
pub(super) struct PermissionQuestion {
    message: String,
}

/// The answer of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserAnswer {
    Once,
    ForSession,
    Always,
    No,
}

const ONCE: &str = "once";
const FOR_SESSION: &str = "session";
const ALWAYS: &str = "always";
const NO: &str = "no";

impl PermissionQuestion {
    pub(super) fn of(call: &ToolCall, decision: &Decision) -> Self {
        let reason = match &decision.reason {
            Some(reason) => {
                let reason = shortened(&one_line(&visible(reason)), MAX_REASON_CHARS);
                format!("\nReason of the rule: {reason}")
            }
            None => String::new(),
        };
        let message = format!(
            "Allow a call of the tool {} of the server {}?{reason}\nArguments: {}",
            shown_text(call.tool(), MAX_NAME_CHARS),
            shown_text(call.server(), MAX_NAME_CHARS),
            shown_value(call.arguments(), MAX_ARGUMENTS_CHARS)
        );
        Self { message }
    }

    /// Returns the question for a host.
    pub(super) fn question(&self) -> HostQuestion {
        let params = json!({
            "message": self.message,
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "decision": {
                        "type": "string",
                        "title": "Decision",
                        "enum": [ONCE, FOR_SESSION, ALWAYS, NO],
                        // Hosts show these in place of the values. Claude Code cuts descriptions
                        // after a line.
                        "enumNames": [
                            "Allow this call",
                            "Allow the tool in this session",
                            "Allow the tool always, by a rule",
                            "Refuse this call",
                        ],
                    },
                },
                "required": ["decision"],
            },
        });
        let method = method::ELICITATION_CREATE.to_owned();
        HostQuestion { method, params: Some(Raw::encode(&params)) }
    }
}

impl UserAnswer {
    /// Reads an `ElicitResult`. Anything but a clear consent is a refusal.
    pub(super) fn read(answer: &Raw) -> Self {
        if edit::get_str(answer, "action").as_deref() != Some("accept") {
            return Self::No;
        }
        let content = edit::get(answer, "content");
        let decision = content.and_then(|content| edit::get_str(&content, "decision"));
        match decision.as_deref() {
            Some(ONCE) => Self::Once,
            Some(FOR_SESSION) => Self::ForSession,
            Some(ALWAYS) => Self::Always,
            Some(_) | None => Self::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_a_clear_consent_is_a_refusal() {
        let read = |answer: serde_json::Value| UserAnswer::read(&Raw::encode(&answer));
        let accepted =
            |decision: &str| read(json!({"action": "accept", "content": {"decision": decision}}));
        assert_eq!(accepted("once"), UserAnswer::Once);
        assert_eq!(accepted("session"), UserAnswer::ForSession);
        assert_eq!(accepted("always"), UserAnswer::Always);
        assert_eq!(accepted("no"), UserAnswer::No);
        assert_eq!(accepted("ALWAYS"), UserAnswer::No);
        assert_eq!(read(json!({"action": "accept"})), UserAnswer::No);
        for content in [json!(null), json!("once"), json!({}), json!({"decision": 1})] {
            assert_eq!(read(json!({"action": "accept", "content": content})), UserAnswer::No);
        }
        for action in ["decline", "cancel", "Accept"] {
            let content = json!({"decision": "always"});
            assert_eq!(read(json!({"action": action, "content": content})), UserAnswer::No);
        }
        assert_eq!(read(json!(null)), UserAnswer::No);
    }
}
