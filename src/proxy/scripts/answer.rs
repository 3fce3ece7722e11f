//! The results of tools as values of a script.

use super::script_call::CallKind;
use crate::{
    protocol::is_error_result,
    proxy::asking::HostQuestion,
    wire::{Outcome, Raw, edit},
};

/// The answer to a call of a script.
pub(super) enum Answered {
    Value(Raw),
    /// The message of the error that the script gets.
    Refusal(String),
    /// What the user of a modern host is asked before the call can be made.
    Asks {
        state: Option<Raw>,
        questions: Vec<(String, HostQuestion)>,
    },
}

/// Reads the outcome of a call.
pub(super) fn read_answer(kind: CallKind, outcome: Outcome) -> Answered {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            let message = edit::get_str(&error, "message");
            return Answered::Refusal(message.unwrap_or_else(|| error.to_string()));
        }
    };
    if edit::get_str(&result, "resultType").as_deref() == Some("input_required") {
        return asks(&result);
    }
    let [structured, content] = edit::get_each(&result, ["structuredContent", "content"]);
    let blocks = content.as_ref().and_then(edit::elements).unwrap_or_default();
    let texts: Option<Vec<String>> = blocks.iter().map(text_of).collect();
    if is_error_result(&result) {
        let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
        let text = Some(texts.join("\n")).filter(|text| !text.trim().is_empty());
        return Answered::Refusal(text.unwrap_or_else(|| "it failed without a text".to_owned()));
    }
    if let Some(structured) = structured.filter(|structured| structured.as_bytes() != b"null") {
        return Answered::Value(structured);
    }
    Answered::Value(match (kind, texts) {
        // Notes of dormouse follow the JSON.
        (CallKind::Search | CallKind::Describe, Some(texts)) => {
            as_value(texts.first().map_or("", String::as_str))
        }
        (CallKind::Tool, Some(texts)) if content.is_some() => as_value(&texts.join("\n")),
        _ => content.unwrap_or(result),
    })
}

fn text_of(block: &Raw) -> Option<String> {
    let is_text = edit::get_str(block, "type").as_deref() == Some("text");
    edit::get_str(block, "text").filter(|_| is_text)
}

/// Returns a text as the object or the array that it is, or else as a string.
fn as_value(text: &str) -> Raw {
    let is_container = text.trim_start().starts_with(['{', '[']);
    let parsed = is_container.then(|| Raw::parse(text.trim().to_owned()).ok()).flatten();
    parsed.unwrap_or_else(|| Raw::encode(text))
}

fn asks(result: &Raw) -> Answered {
    let [state, requests] = edit::get_each(result, ["requestState", "inputRequests"]);
    let requests = requests.map(|requests| edit::entries(&requests)).unwrap_or_default();
    let question = |(key, request): (String, Raw)| {
        let method = edit::get_str(&request, "method").unwrap_or_default();
        (key, HostQuestion { method, params: edit::get(&request, "params") })
    };
    Answered::Asks { state, questions: requests.into_iter().map(question).collect() }
}
