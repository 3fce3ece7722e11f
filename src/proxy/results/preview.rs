//! The result that a host gets in place of a longer one: its beginning, a note on how to read the
//! rest, and its end.

use serde_json::json;

use super::{content::Content, json_shape::shape, pages::page_count};
use crate::{
    surface::ReadForm,
    wire::{Raw, edit},
};

/// Maximum length of a preview without images and audio, in bytes of JSON.
pub(super) const MAX_PREVIEW_BYTES: usize = 3900;
/// Maximum length of a `structuredContent` that is passed on, in bytes.
const MAX_STRUCTURED_BYTES: usize = 1200;
/// Number of bytes of JSON around the texts of a preview.
const FRAME_BYTES: usize = 200;

/// A text as long as the ids of kept results.
const LIKE_AN_ID: &str = "abcdefghijkl";

/// The prefix of the resources that are kept results.
pub(in crate::proxy) const URI_PREFIX: &str = "dormouse://results/";

/// The rules for the preview of one result.
#[derive(Clone, Debug)]
pub(in crate::proxy) struct PreviewRules {
    /// The number of bytes above which a result is cut.
    pub(in crate::proxy) limit: usize,
    pub(in crate::proxy) form: ReadForm,
    /// True if the host rejects a result without the `structuredContent` that the tool declares.
    pub(in crate::proxy) must_be_structured: bool,
}

impl PreviewRules {
    /// Composes the preview. `id` is that of the kept result; `None` if it cannot be kept.
    pub(super) fn compose(&self, content: &Content, id: Option<&str>) -> Raw {
        let max_structured = MAX_STRUCTURED_BYTES.min(self.limit);
        let structured = content.structured().filter(|it| it.text().len() <= max_structured);
        let structured = structured.and_then(|it| Raw::parse(it.text().to_owned()).ok());
        let must_be_error =
            self.must_be_structured && content.structured().is_some() && structured.is_none();
        let note = self.note(content, id, structured.is_some(), must_be_error);
        let taken = FRAME_BYTES
            + content
                .passed_on_members
                .iter()
                .map(|(key, value)| written_bytes(key) + value.len() + 8)
                .sum::<usize>()
            + structured.as_ref().map_or(0, Raw::len)
            + written_bytes(&note);
        let room = MAX_PREVIEW_BYTES.saturating_sub(taken).min(self.limit);
        let (begin, end) = ends(&content.text, room);
        let texts = [begin, note.as_str(), end].into_iter().filter(|text| !text.is_empty());
        let mut blocks: Vec<Raw> =
            texts.map(|text| Raw::encode(&json!({"type": "text", "text": text}))).collect();
        blocks.extend(content.media.iter().cloned());
        let mut result = edit::set(&Raw::empty_object(), "content", &Raw::array(&blocks));
        if let Some(structured) = structured {
            result = edit::set(&result, "structuredContent", &structured);
        }
        if must_be_error {
            result = edit::set(&result, "isError", &Raw::encode(&true));
        }
        let members: Vec<(&str, &Raw)> =
            content.passed_on_members.iter().map(|(key, value)| (key.as_str(), value)).collect();
        edit::set_each(&result, &members)
    }

    /// Returns whether the preview of a content is not shorter than the content.
    pub(super) fn saves_nothing(&self, content: &Content) -> bool {
        if content.size > MAX_PREVIEW_BYTES {
            return false;
        }
        let media: usize = content.media.iter().map(Raw::len).sum();
        let preview = self.compose(content, Some(LIKE_AN_ID));
        preview.len().saturating_sub(media) >= content.size
    }

    fn note(
        &self,
        content: &Content,
        id: Option<&str>,
        has_structured: bool,
        must_be_error: bool,
    ) -> String {
        let mut note = String::from("[dormouse: ");
        if must_be_error {
            note.push_str(
                "the tool was executed; this is an error only because its structuredContent is \
                    too long for this answer, so do not call the tool again; ",
            );
        }
        let (size, limit) = (content.size, self.limit);
        let blocks = match content.blocks {
            0 | 1 => String::new(),
            blocks => format!(" in {blocks} blocks"),
        };
        note.push_str(&format!(
            "the result has {size} bytes{blocks}, above maxResultBytes ({limit}). The text before \
                this note is its beginning, the text after it its end.",
        ));
        if content.structured.is_some() && !has_structured {
            note.push_str(" structuredContent is left out.");
        }
        if let Some(json) = content.json() {
            note.push_str(&format!(" Shape of its JSON: {}.", shape(json)));
        }
        note.push(' ');
        note.push_str(&match id {
            Some(id) => self.reading(id, page_count(content.text.len())),
            None if must_be_error => "It cannot be kept.".into(),
            None => "It cannot be kept: call the tool so that it returns less.".into(),
        });
        note.push_str(" ]");
        note
    }

    /// Returns how the rest is read.
    fn reading(&self, id: &str, pages: usize) -> String {
        let uri = format!("{URI_PREFIX}{id}");
        match self.form.first_call(id) {
            None => format!(
                "All of it is kept for up to an hour as the resource {uri} (?page=1 to \
                    ?page={pages})"
            ),
            Some(call) => format!(
                "All of it is kept for up to an hour. Read it without calling the tool again: \
                    {call} (pages 1 to {pages}); instead of \"page\", \"grep\" takes a regular \
                    expression and \"jsonpath\" a path like $.items[0]. It is also the resource \
                    {uri}"
            ),
        }
    }
}

/// Returns the beginning and the end of a text, which take at most `room` bytes of JSON together.
fn ends(text: &str, room: usize) -> (&str, &str) {
    let begin = fitting(text.chars(), room - room / 3);
    let (begin, rest) = text.split_at(begin);
    let end = fitting(rest.chars().rev(), room / 3);
    (begin, &rest[rest.len() - end..])
}

/// Returns the length of the first characters that take at most `room` bytes in a JSON string.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> usize {
    let (mut length, mut written) = (0, 0);
    for c in chars {
        written += written_length(c);
        if written > room {
            break;
        }
        length += c.len_utf8();
    }
    length
}

/// Returns the length of a text in a JSON string.
fn written_bytes(text: &str) -> usize {
    text.chars().map(written_length).sum()
}

fn written_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn preview(
        limit: usize,
        form: ReadForm,
        must_be_structured: bool,
        result: &Value,
    ) -> Option<Value> {
        let rules = PreviewRules { limit, form, must_be_structured };
        let content = Content::above(limit, &Raw::encode(result))?;
        Some(rules.compose(&content, Some(LIKE_AN_ID)).to_value())
    }

    fn any_block() -> impl Strategy<Value = Value> {
        let text =
            ("[\\PC\0-\u{1f}\"\\\\]{0,30}", 1..400_usize).prop_map(|(text, n)| text.repeat(n));
        (text, 0..4_u8).prop_map(|(text, kind)| match kind {
            0 => json!({"type": "text", "text": text}),
            1 => json!({"type": "resource", "resource": {"uri": "r://1", "text": text}}),
            2 => json!({"type": "resource", "resource": {"uri": "r://1", "blob": text}}),
            _ => json!({"type": "new", "with": [text]}),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn preview_is_bounded_for_any_result(
            blocks in proptest::collection::vec(any_block(), 0..5),
            structured in proptest::option::of(any_block()),
            meta in "\\PC{0,900}",
            limit in prop_oneof![Just(1_usize), Just(100), Just(10_000)],
            must_be_structured in any::<bool>(),
        ) {
            let meta = json!({"m": meta});
            let mut result = json!({"content": blocks, "_meta": meta, "resultType": "complete"});
            if let Some(structured) = structured {
                result["structuredContent"] = structured;
            }
            let used = ReadForm::Used("use_tool".to_owned());
            for form in [used, ReadForm::Grouped, ReadForm::Listed] {
                let Some(cut) = preview(limit, form, must_be_structured, &result) else { continue };
                let size = cut.to_string().len();
                prop_assert!(size <= MAX_PREVIEW_BYTES, "{size}");
                prop_assert_eq!(&cut["resultType"], "complete");
                if cut["isError"].is_null() && must_be_structured {
                    prop_assert_eq!(&cut["structuredContent"], &result["structuredContent"]);
                }
            }
        }
    }

    #[test]
    fn result_that_a_preview_would_make_longer_is_not_cut() {
        let rules = PreviewRules { limit: 300, form: ReadForm::Listed, must_be_structured: false };
        let content = |length: usize| {
            let media = json!({"type": "image", "data": "x".repeat(9000)});
            let text = json!({"type": "text", "text": "x".repeat(length)});
            Content::above(300, &Raw::encode(&json!({"content": [text, media]}))).unwrap()
        };
        assert!(rules.saves_nothing(&content(400)));
        assert!(!rules.saves_nothing(&content(3000)));
    }

    #[test]
    fn notes_say_how_to_read_the_rest() {
        let text = json!({"items": vec![1; 100]}).to_string();
        let result = json!({"content": [{"type": "text", "text": text}]});
        let forms = [
            ReadForm::Listed,
            ReadForm::Used("use_tool".to_owned()),
            ReadForm::Grouped,
            ReadForm::Resource,
        ];
        let mut notes: Vec<String> = forms
            .into_iter()
            .map(|form| {
                let cut = preview(100, form, false, &result).unwrap();
                cut["content"][1]["text"].as_str().unwrap().to_owned()
            })
            .collect();
        let structured = json!({"content": [], "structuredContent": {"a": "x".repeat(200)}});
        let cut = preview(100, ReadForm::Listed, true, &structured).unwrap();
        assert_eq!((&cut["isError"], &cut["structuredContent"]), (&json!(true), &Value::Null));
        notes.push(cut["content"][1]["text"].as_str().unwrap().to_owned());
        let content = Content::above(100, &Raw::encode(&result)).unwrap();
        let lost = PreviewRules { limit: 100, form: ReadForm::Listed, must_be_structured: false };
        notes.push(lost.note(&content, None, false, false));
        insta::assert_snapshot!(notes.join("\n\n"));
    }
}
