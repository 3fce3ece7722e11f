//! The results of tools as values of a script, and the value of a script as the result of its tool.

use serde_json::json;

use super::made_call::{CallKind, CallOutcome, MadeCall};
use crate::{
    base::shortened,
    proxy::asking::HostQuestion,
    script::Place,
    surface::failed,
    wire::{Outcome, Raw, edit},
};

/// Maximum number of calls that a report names.
const MAX_NAMED_CALLS: usize = 50;
/// Maximum length of a line of the script, and of an error, in characters.
const MAX_LINE_CHARS: usize = 200;
const MAX_ERROR_CHARS: usize = 4000;

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
    let [is_error, structured, content] =
        edit::get_each(&result, ["isError", "structuredContent", "content"]);
    let blocks = content.as_ref().and_then(edit::elements).unwrap_or_default();
    let texts: Option<Vec<String>> = blocks.iter().map(text_of).collect();
    if is_error.is_some_and(|flag| flag.as_bytes() == b"true") {
        let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
        return Answered::Refusal(texts.join("\n"));
    }
    if let Some(structured) = structured {
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

/// Returns the result of a script that has returned a JSON text, or nothing.
pub(super) fn script_result(value: Option<&str>, made: &[MadeCall], log: &str) -> Raw {
    let value = value.and_then(|text| Raw::parse(text.to_owned()).ok());
    let value = value.unwrap_or_else(|| Raw::encode(&()));
    let text_block = |text: &str| Raw::encode(&json!({"type": "text", "text": text}));
    let mut blocks = content_of(&value).unwrap_or_else(|| {
        vec![text_block(&value.lossy_text().unwrap_or_else(|| value.to_string()))]
    });
    blocks.extend(report(made, log).map(|report| text_block(&report)));
    edit::set(&Raw::empty_object(), "content", &Raw::array(&blocks))
}

/// Returns the content blocks of a value that has nothing else as its `content`.
fn content_of(value: &Raw) -> Option<Vec<Raw>> {
    const TYPES: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];
    let blocks = edit::get(value, "content").and_then(|content| edit::elements(&content))?;
    let is_block = |block: &Raw| {
        edit::get_str(block, "type").is_some_and(|kind| TYPES.contains(&kind.as_str()))
    };
    blocks.iter().all(is_block).then_some(blocks)
}

/// Returns the result of a script that has failed.
pub(super) fn failed_script(
    message: &str,
    place: Option<Place>,
    code: &str,
    made: &[MadeCall],
    log: &str,
) -> Raw {
    let mut text = format!("The script has failed: {}", shortened(message, MAX_ERROR_CHARS));
    if let Some(Place { line, column }) = place {
        text.push_str(&format!("\nat line {line}, column {column}"));
        if let Some(written) = code.lines().nth(line.saturating_sub(1)) {
            text.push_str(&format!(": {}", shortened(written.trim(), MAX_LINE_CHARS)));
        }
    }
    text.push('\n');
    text.push_str(&if made.is_empty() { "It had made no calls.".to_owned() } else { calls(made) });
    if let Some(log) = logged(log) {
        text.push('\n');
        text.push_str(&log);
    }
    failed(text)
}

/// Returns what a script that has ended well has called and logged; `None` if all calls went well
/// and nothing was logged.
fn report(made: &[MadeCall], log: &str) -> Option<String> {
    let went_well = made.iter().all(|call| call.outcome == CallOutcome::Done);
    let calls = (!went_well).then(|| calls(made));
    let lines: Vec<String> = calls.into_iter().chain(logged(log)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn logged(log: &str) -> Option<String> {
    (!log.is_empty()).then(|| format!("[log]{log}"))
}

fn calls(made: &[MadeCall]) -> String {
    let named: Vec<String> = made.iter().take(MAX_NAMED_CALLS).map(MadeCall::to_string).collect();
    let more = match made.len().saturating_sub(MAX_NAMED_CALLS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("[calls] {}{more}", named.join(", "))
}
