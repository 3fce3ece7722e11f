//! The question that asks a user to approve a call (MCP 2025-11-25, client/elicitation, form mode).

use serde_json::json;

use crate::{
    base::{one_line, visible},
    policy::{Decision, ToolCall},
    protocol::{ClientIdentity, method},
    proxy::asking::HostQuestion,
    wire::{Raw, edit},
};

/// Maximum length of the arguments in a question, in bytes. Of longer ones the beginning and the
/// end are shown.
const MAX_ARGUMENTS_BYTES: usize = 4000;

/// The question that asks a user to approve a call.
pub(super) struct ApprovalQuestion {
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

impl ApprovalQuestion {
    /// Returns whether a host shows forms to its user.
    pub(super) fn can_be_asked(client: &ClientIdentity) -> bool {
        let Some(declared) = edit::get(&client.capabilities, "elicitation") else { return false };
        let [form, url] = edit::get_each(&declared, ["form", "url"]);
        // An empty declaration stands for forms.
        form.is_some() || url.is_none()
    }

    pub(super) fn of(call: &ToolCall<'_>, decision: &Decision) -> Self {
        let reason = match &decision.reason {
            Some(reason) => format!("\nReason of the rule: {}", one_line(&visible(reason))),
            None => String::new(),
        };
        let message = format!(
            "Allow a call of the tool {} of the server {}?{reason}\nArguments: {}",
            one_line(&visible(call.tool())),
            one_line(&visible(call.server())),
            shown(&call.arguments().to_string()).replace(['\n', '\r'], " ")
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
                        "description": "once: this call only; session: all calls of this tool \
                            until the host ends; always: from now on, as a rule in the config of \
                            dormouse; no: not this call",
                        "enum": [ONCE, FOR_SESSION, ALWAYS, NO],
                        "default": ONCE,
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
        let content = edit::get(answer, "content").unwrap_or_else(Raw::empty_object);
        // Some hosts leave out a value that is the default.
        let Some(decision) = edit::get(&content, "decision") else { return Self::Once };
        match decision.read::<String>().as_deref() {
            Ok(ONCE) => Self::Once,
            Ok(FOR_SESSION) => Self::ForSession,
            Ok(ALWAYS) => Self::Always,
            Ok(_) | Err(_) => Self::No,
        }
    }
}

/// Returns arguments as a user may read them: without invisible characters, and not endless.
fn shown(arguments: &str) -> String {
    let (begin, end) = (MAX_ARGUMENTS_BYTES / 2, arguments.len().saturating_sub(2000));
    if arguments.len() <= MAX_ARGUMENTS_BYTES {
        return visible(arguments);
    }
    let (begin, end) = (arguments.floor_char_boundary(begin), arguments.ceil_char_boundary(end));
    format!(
        "{} [… {} bytes are not shown …] {}",
        visible(&arguments[..begin]),
        end - begin,
        visible(&arguments[end..])
    )
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
        assert_eq!(read(json!({"action": "accept"})), UserAnswer::Once);
        assert_eq!(read(json!({"action": "accept", "content": {"decision": 1}})), UserAnswer::No);
        for action in ["decline", "cancel", "Accept"] {
            let content = json!({"decision": "always"});
            assert_eq!(read(json!({"action": action, "content": content})), UserAnswer::No);
        }
        assert_eq!(read(json!(null)), UserAnswer::No);
    }

    #[test]
    fn long_arguments_are_shown_at_both_ends() {
        let arguments = format!("{{\"a\":\"{}\u{202e}end\"}}", "é".repeat(5000));
        let shown = shown(&arguments);
        assert!(shown.len() < MAX_ARGUMENTS_BYTES + 100, "{}", shown.len());
        assert!(shown.starts_with("{\"a\":\"é") && shown.ends_with("end\"}"));
        assert!(shown.contains("bytes are not shown") && !shown.contains('\u{202e}'));
    }
}
