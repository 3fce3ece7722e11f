//! The record of a script: what it has called and logged, and the result of its tool.

use serde_json::json;

use super::made_call::{CallOutcome, MadeCall};
use crate::{
    base::shortened,
    script::Place,
    surface::failed,
    wire::{Raw, edit},
};

/// Maximum number of calls that a report names.
const MAX_NAMED_CALLS: usize = 50;
/// Maximum length of a line of the script, and of an error, in characters.
const MAX_LINE_CHARS: usize = 200;
const MAX_ERROR_CHARS: usize = 4000;

pub(super) struct ScriptRecord {
    code: String,
    /// Maximum size of the value and of the log, in bytes. The worker has counted characters.
    max_output: usize,
    made: Vec<MadeCall>,
    /// The lines of the log, each after a line break.
    log: String,
}

impl ScriptRecord {
    /// `max_output`: the maximum number of characters of the value, and of the log.
    pub(super) fn new(code: String, max_output: usize) -> Self {
        // A character has up to six bytes of JSON.
        let max_output = max_output.saturating_mul(6);
        Self { code, max_output, made: Vec::new(), log: String::new() }
    }

    /// Returns the number of calls.
    pub(super) fn calls(&self) -> usize {
        self.made.len()
    }

    pub(super) fn add_call(&mut self, name: &str) {
        self.made.push(MadeCall::new(name, CallOutcome::Open));
    }

    /// Notes the end of the call at this position. Returns it in words.
    pub(super) fn end_call(&mut self, position: usize, name: &str, outcome: CallOutcome) -> String {
        self.made[position] = MadeCall::new(name, outcome);
        self.made[position].to_string()
    }

    pub(super) fn add_log(&mut self, text: &str) {
        if self.log.len() + text.len() < self.max_output {
            self.log.push('\n');
            self.log.push_str(text);
        }
    }

    /// Returns the result of a script that has returned this JSON, or nothing.
    pub(super) fn result(&self, value: Option<&str>) -> Raw {
        if value.is_some_and(|value| value.len() > self.max_output) {
            return self.failed("the value of the script is too long", None);
        }
        let value = value.and_then(|text| Raw::parse(text.to_owned()).ok());
        let value = value.unwrap_or_else(|| Raw::encode(&()));
        let text_block = |text: &str| Raw::encode(&json!({"type": "text", "text": text}));
        let mut blocks = content_of(&value).unwrap_or_else(|| {
            vec![text_block(&value.lossy_text().unwrap_or_else(|| value.to_string()))]
        });
        blocks.extend(self.report().map(|report| text_block(&report)));
        edit::set(&Raw::empty_object(), "content", &Raw::array(&blocks))
    }

    /// Returns the result of a script that has failed.
    pub(super) fn failed(&self, message: &str, place: Option<Place>) -> Raw {
        let mut text = format!("The script has failed: {}", shortened(message, MAX_ERROR_CHARS));
        if let Some(Place { line, column }) = place {
            text.push_str(&format!("\nat line {line}, column {column}"));
            if let Some(written) = self.code.lines().nth(line.saturating_sub(1)) {
                text.push_str(&format!(": {}", shortened(written.trim(), MAX_LINE_CHARS)));
            }
        }
        text.push('\n');
        let has_called = !self.made.is_empty();
        let made = if has_called { self.made_calls() } else { "It had made no calls.".to_owned() };
        text.push_str(&made);
        if let Some(log) = self.logged() {
            text.push('\n');
            text.push_str(&log);
        }
        failed(text)
    }

    /// Returns what a script that has ended well has called and logged; `None` if all calls went
    /// well and nothing was logged.
    fn report(&self) -> Option<String> {
        let went_well = self.made.iter().all(MadeCall::is_done);
        let calls = (!went_well).then(|| self.made_calls());
        let lines: Vec<String> = calls.into_iter().chain(self.logged()).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn logged(&self) -> Option<String> {
        (!self.log.is_empty()).then(|| format!("[log]{}", self.log))
    }

    fn made_calls(&self) -> String {
        let named: Vec<String> =
            self.made.iter().take(MAX_NAMED_CALLS).map(MadeCall::to_string).collect();
        let more = match self.made.len().saturating_sub(MAX_NAMED_CALLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("[calls] {}{more}", named.join(", "))
    }
}

/// Returns the content blocks of `{ content: […] }`.
fn content_of(value: &Raw) -> Option<Vec<Raw>> {
    let members = edit::entries(value);
    let [(key, content)] = members.as_slice() else { return None };
    let blocks = edit::elements(content).filter(|_| key == "content")?;
    (!blocks.is_empty() && blocks.iter().all(is_block)).then_some(blocks)
}

/// Returns whether a value is a content block with the members that its type requires (MCP, tools).
fn is_block(block: &Raw) -> bool {
    let has_texts = |keys: &[&str]| keys.iter().all(|key| edit::get_str(block, key).is_some());
    match edit::get_str(block, "type").as_deref() {
        Some("text") => has_texts(&["text"]),
        Some("image" | "audio") => has_texts(&["data", "mimeType"]),
        Some("resource_link") => has_texts(&["uri", "name"]),
        Some("resource") => edit::get(block, "resource").is_some_and(|it| it.is_object()),
        _ => false,
    }
}
