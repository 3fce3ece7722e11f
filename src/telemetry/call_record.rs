//! One call as the log of calls keeps it and the API reports it.

use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::client_name::MAX_NAME_CHARS;
use crate::{
    base::shortened,
    catalog::estimated_tokens,
    config::Mask,
    identity::Person,
    proxy::{Bodies, CallFault, EndedCall, RunningScript},
    wire::{Raw, edit},
};

/// Maximum number of groups of a person in a record.
const MAX_GROUPS: usize = 50;
/// Maximum length of the text of arguments or of a result, in characters.
const MAX_TEXT_CHARS: usize = 64 * 1024;

/// A request to a server that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallRecord {
    /// The time of the host's request, in the form of RFC 3339 with milliseconds.
    pub at: String,
    pub pid: u32,
    /// The number of the host's session in that process.
    pub host: u64,
    /// The name and the version that the host gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The person behind the host, if its token has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonRecord>,
    /// The script that made the call; missing if the host made it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptRecord>,
    pub server: String,
    /// The MCP method.
    pub method: String,
    /// The tool or prompt, in the server's own words, or the URI without what may be secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Milliseconds from the host's request to the answer, including wake and login.
    pub took_ms: f64,
    /// The part of `took_ms` after the request was sent; missing if it was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ms: Option<f64>,
    /// The size of the parameters without `_meta`, in bytes.
    pub bytes_in: usize,
    /// The size of the result or of the error object, in bytes.
    pub bytes_out: usize,
    /// An estimate of the tokens that the parameters cost.
    pub tokens_in: usize,
    /// An estimate of the tokens that the result costs.
    pub tokens_out: usize,
    pub outcome: CallOutcome,
    /// The kind of the failure: `tool_error`, a code of JSON-RPC, or a word of dormouse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The effect of the policy: `approved`, `declined`, `unapproved` or `denied`; missing if no
    /// rule denies the call or asks about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The arguments, without secrets of the config; only if the config asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The result or the error object, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// A run of a script that called a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ScriptRecord {
    /// The tool that ran the script: `run_script`, or the name of a saved script.
    pub name: String,
    /// The number of the run in that process.
    pub run: u64,
}

/// The owner of an access token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PersonRecord {
    pub issuer: String,
    /// The name of the person at the issuer.
    pub subject: String,
    /// The groups that the token named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl PersonRecord {
    fn of(person: &Person) -> Self {
        let short = |text: &String| shortened(text, MAX_NAME_CHARS);
        let groups = person.groups.iter().take(MAX_GROUPS).map(short).collect();
        Self { issuer: short(&person.issuer), subject: short(&person.subject), groups }
    }
}

impl ScriptRecord {
    fn of(script: &RunningScript) -> Self {
        Self { name: script.name.to_string(), run: script.run }
    }
}

/// The way in which a request to a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CallOutcome {
    /// A result without `isError`.
    Succeeded,
    /// A result with `isError`.
    Failed,
    /// An error object.
    Refused,
    /// No answer from the server.
    Unanswered,
}

impl CallRecord {
    /// `client`: the name of the host.
    pub(crate) fn of(call: &EndedCall, client: Option<String>) -> Self {
        let (bytes_in, bytes_out) = (call.size.params - call.size.meta, call.size.answer);
        Self {
            at: timestamp(call.time.began),
            pid: std::process::id(),
            host: call.origin.host.0,
            client,
            person: call.origin.person.as_deref().map(PersonRecord::of),
            script: call.origin.script.as_ref().map(ScriptRecord::of),
            server: call.server.clone(),
            method: shortened(&call.method, MAX_NAME_CHARS),
            name: call.subject.as_deref().map(|subject| {
                let subject = without_secrets(subject);
                shortened(&subject, MAX_NAME_CHARS)
            }),
            took_ms: milliseconds(call.time.took),
            server_ms: call.sent.as_ref().map(|sent| milliseconds(sent.time.took)),
            bytes_in,
            bytes_out,
            tokens_in: estimated_tokens(bytes_in),
            tokens_out: estimated_tokens(bytes_out),
            outcome: match call.fault {
                None => CallOutcome::Succeeded,
                Some(CallFault::Tool) => CallOutcome::Failed,
                Some(CallFault::Refused(_)) => CallOutcome::Refused,
                Some(_) => CallOutcome::Unanswered,
            },
            error: call.fault.map(|fault| fault.kind().into_owned()),
            policy: call.policy.map(|effect| effect.name().to_owned()),
            arguments: None,
            result: None,
        }
    }

    /// Returns the size of the arguments and the result.
    pub(crate) fn content_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        length(&self.arguments) + length(&self.result)
    }

    /// Adds the arguments and the result, without the secrets of the server's config.
    pub(super) fn with_contents(self, bodies: Bodies) -> Self {
        let mask = Mask::of(&bodies.config);
        let text = |raw: Raw| {
            // Masked as a whole, since a secret can lie across the end of the kept part.
            shortened(&mask.masked(raw.text()), MAX_TEXT_CHARS)
        };
        let arguments = bodies.params.and_then(|params| edit::get(&params, "arguments"));
        Self { arguments: arguments.map(text), result: bodies.answer.map(text), ..self }
    }
}

impl CallOutcome {
    /// Returns the word of the log and of the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
        }
    }
}

/// Returns the time in the form of RFC 3339 with milliseconds.
pub(super) fn timestamp(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// Returns the duration in milliseconds, with three digits behind the point.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns a URI without its user, its query and its fragment, which may hold secrets. Other text
/// is returned unchanged.
pub(super) fn without_secrets(subject: &str) -> String {
    let Some(mut url) = Url::parse(subject).ok().filter(Url::has_host) else {
        return subject.split(['?', '#']).next().unwrap_or_default().to_owned();
    };
    if url.set_username("").is_err() || url.set_password(None).is_err() {
        return format!("{}:", url.scheme());
    }
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_in_a_uri_is_not_kept() {
        for (uri, kept) in [
            ("list_issues", "list_issues"),
            ("file:///a/b.txt", "file:///a/b.txt"),
            ("postgres://me:hunter2@db.local/x?token=1#2", "postgres://db.local/x"),
            ("memo:note?token=1", "memo:note"),
        ] {
            assert_eq!(without_secrets(uri), kept);
        }
    }
}
