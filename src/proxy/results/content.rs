//! The content of a result that may be too long: its text, the parts of it that do not count, and
//! its other members.

use std::{cmp::Reverse, ops::Range};

use crate::wire::{Child, JsonKind, JsonNode, Raw};

/// A result in parts. Images and audio are passed on, and do not count.
///
/// The text of a result with a text block, a link, and `structuredContent` has three parts:
///
/// ```text
/// The first block, as it is.
/// {"type":"resource_link","uri":"file:///a","name":"a"}
/// {"total":3}
/// ```
#[derive(Debug, Default)]
pub(in crate::proxy) struct Content {
    /// The parts of the result, joined by line breaks: the texts of the blocks, then
    /// `structuredContent` if no text equals it, then an object of the members that are not passed
    /// on. A block without a text appears as JSON. If a block has a text and other members, these
    /// precede its text as an object.
    pub(super) text: String,
    /// The place of `structuredContent` in the text.
    pub(super) structured: Option<Range<usize>>,
    /// The number of blocks, without images and audio.
    pub(super) blocks: usize,
    /// The number of bytes of JSON without images and audio. Escapes in texts do not count.
    pub(super) size: usize,
    /// Blocks that are passed on.
    pub(super) media: Vec<Raw>,
    /// Members other than `content`, `structuredContent` and `isError` that are passed on.
    pub(super) passed_on_members: Vec<(String, Raw)>,
    /// The place of the JSON in the text: `structuredContent`, or else the longest text block that
    /// is an object or an array.
    pub(super) json: Option<Range<usize>>,
}

/// Maximum length of the members that are passed on, in bytes together.
const MAX_PASSED_ON_BYTES: usize = 600;

impl Content {
    /// Returns the content of a result whose size is above `limit`; `None` if the result is passed
    /// on unchanged, as every error is, and everything that is no tool's result: a new task, or a
    /// question of the server.
    pub(in crate::proxy) fn above(limit: usize, result: &Raw) -> Option<Self> {
        let result = result.node();
        if result.member("isError").is_some_and(|flag| flag.text() == "true") {
            return None;
        }
        let mut builder = ContentBuilder::default();
        let (mut has_blocks, mut structured, mut others) = (false, None, Vec::new());
        for child in result.children() {
            if child.has_key("content") {
                builder.add_blocks(child.node);
                has_blocks = true;
            } else if child.has_key("structuredContent") && child.node.kind() != JsonKind::Null {
                structured = Some(child.node);
            } else if !child.has_key("isError") {
                builder.content.size += child.written_key().len() + child.node.text().len();
                others.push(child);
            }
        }
        if !has_blocks && structured.is_none() {
            return None;
        }
        if let Some(structured) = structured {
            builder.add_structured(structured);
        }
        builder.add_others(others);
        (builder.content.size > limit).then(|| builder.finish())
    }

    /// Returns `structuredContent`.
    pub(super) fn structured(&self) -> Option<JsonNode<'_>> {
        Some(JsonNode::new(self.text.get(self.structured.clone()?)?))
    }

    /// Returns the JSON that the result has.
    pub(super) fn json(&self) -> Option<JsonNode<'_>> {
        Some(JsonNode::new(self.text.get(self.json.clone()?)?))
    }
}

/// A content to which the parts of a result are added.
#[derive(Default)]
struct ContentBuilder {
    content: Content,
    /// The places of the text blocks in the text.
    texts: Vec<Range<usize>>,
    /// True if the text has a part, which may be empty.
    has_parts: bool,
}

impl ContentBuilder {
    fn add_blocks(&mut self, blocks: JsonNode<'_>) {
        if blocks.kind() != JsonKind::Array {
            self.content.size += blocks.text().len();
            self.content.blocks = 1;
            let at = self.push(blocks.text());
            self.texts.push(at);
            return;
        }
        for block in blocks.children().map(|child| child.node) {
            let kind = block.member("type").and_then(JsonNode::string).unwrap_or_default();
            let holder = match kind.as_str() {
                "image" | "audio" => {
                    self.content.media.extend(raw(block));
                    continue;
                }
                "text" => Some(block),
                "resource" => block.member("resource"),
                _ => None,
            };
            self.content.blocks += 1;
            self.content.size += block.text().len();
            let written = holder.and_then(|holder| holder.member("text"));
            match (holder, written.and_then(JsonNode::string)) {
                (Some(holder), Some(text)) => {
                    let written = written.map_or(0, |written| written.text().len());
                    self.content.size -= written.saturating_sub(text.len());
                    self.add_text(block, holder, &text);
                }
                _ => {
                    self.push(block.text());
                }
            }
        }
    }

    /// Adds a block with a text, which is a member of `holder`: the block or a part of it.
    fn add_text(&mut self, block: JsonNode<'_>, holder: JsonNode<'_>, text: &str) {
        let is_in_block = holder == block;
        let is_plain = |child: Child<'_>| child.has_key("type") || child.has_key("text");
        if !is_in_block || !block.children().all(is_plain) {
            let others = holder.children().filter(|child| !child.has_key("text"));
            let others = object(others.map(|child| (child.written_key(), child.node.text())));
            let around = block.children().map(|child| {
                let is_holder = child.has_key("resource");
                (child.written_key(), if is_holder { &others } else { child.node.text() })
            });
            let header = if is_in_block { others.clone() } else { object(around) };
            self.push(&header);
        }
        let at = self.push(text);
        self.texts.push(at);
    }

    fn push(&mut self, part: &str) -> Range<usize> {
        if self.has_parts {
            self.content.text.push('\n');
        }
        self.has_parts = true;
        let start = self.content.text.len();
        self.content.text.push_str(part);
        start..self.content.text.len()
    }

    fn add_structured(&mut self, structured: JsonNode<'_>) {
        let given = structured.text();
        self.content.size += "structuredContent".len() + given.len();
        let is_same = |at: &&Range<usize>| self.content.text[(*at).clone()] == *given;
        if let Some(same) = self.texts.iter().find(is_same) {
            self.content.structured = Some(same.clone());
            return;
        }
        self.content.structured = Some(self.push(given));
    }

    /// Passes on the shortest of the other members, and adds the rest to the text.
    fn add_others(&mut self, mut others: Vec<Child<'_>>) {
        let size = |child: &Child<'_>| child.written_key().len() + child.node.text().len() + 4;
        others.sort_by_key(size);
        let mut room = MAX_PASSED_ON_BYTES;
        let is_passed_on = |child: &Child<'_>| {
            let left = room.checked_sub(size(child));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let (passed_on, left_out): (Vec<_>, Vec<_>) = others.into_iter().partition(is_passed_on);
        for child in passed_on {
            let key = serde_json::from_str(&format!("\"{}\"", child.written_key()));
            if let (Ok(key), Some(value)) = (key, raw(child.node)) {
                self.content.passed_on_members.push((key, value));
            }
        }
        if !left_out.is_empty() {
            let members = left_out.iter().map(|child| (child.written_key(), child.node.text()));
            self.push(&object(members));
        }
    }

    /// Returns the content, in which the place of the JSON is known.
    fn finish(self) -> Content {
        let Self { mut content, mut texts, .. } = self;
        texts.sort_by_key(|place| Reverse(place.len()));
        let longest = || texts.into_iter().find_map(|place| json_within(&content.text, place));
        content.json = content.structured.clone().or_else(longest);
        content
    }
}

/// Returns an object of members, which are given as they are written.
fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.map(|(key, value)| format!("\"{key}\":{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Returns the place of the object or array of which a part of a text consists, without a byte
/// order mark; `None` if it is anything else.
fn json_within(text: &str, place: Range<usize>) -> Option<Range<usize>> {
    let part = text.get(place.clone())?;
    let part = part.strip_prefix('\u{feff}').unwrap_or(part);
    let is_container = matches!(JsonNode::new(part).kind(), JsonKind::Object | JsonKind::Array);
    let is_json = is_container && serde_json::from_str::<serde::de::IgnoredAny>(part).is_ok();
    is_json.then(|| place.end - part.len()..place.end)
}

fn raw(node: JsonNode<'_>) -> Option<Raw> {
    Raw::parse(node.text().to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(result: &serde_json::Value) -> Option<Content> {
        Content::above(10, &Raw::encode(result))
    }

    #[test]
    fn text_has_every_block_but_images() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let link = json!({"type": "resource_link", "uri": "r://1"});
        let blob = json!({"type": "resource", "resource": {"uri": "r://2", "blob": "AAAA"}});
        let text = json!({"type": "resource", "resource": {"uri": "r://3", "text": "three"}});
        let blocks = json!([{"type": "text", "text": "one\n"}, image, link, blob, text]);
        let found = content(&json!({"content": blocks, "structuredContent": {"a": 1}})).unwrap();
        let header = r#"{"type":"resource","resource":{"uri":"r://3"}}"#;
        let text = format!("one\n\n{link}\n{blob}\n{header}\nthree\n{{\"a\":1}}");
        assert_eq!(found.text, text);
        assert_eq!(found.structured().unwrap().text(), r#"{"a":1}"#);
        assert_eq!((found.blocks, found.media.len()), (4, 1));
    }

    #[test]
    fn structured_content_that_is_also_the_text_is_there_once() {
        let text = json!({"a": "0123456789"}).to_string();
        let same = json!({"content": [{"type": "text", "text": text}],
            "structuredContent": {"a": "0123456789"}, "_meta": {"b": 1}});
        let found = content(&same).unwrap();
        assert_eq!(found.text, text);
        assert_eq!(found.structured, Some(0..text.len()));
        assert_eq!(found.passed_on_members.len(), 1);
    }

    #[test]
    fn everything_but_images_counts_and_can_be_read() {
        let notes = "n".repeat(700);
        let plain = json!({"type": "text", "text": ""});
        let marked = json!({"type": "text", "text": "[1]", "annotations": {"notes": notes}});
        for (result, expected) in [
            (json!({"content": vec![plain; 10]}), "\n".repeat(9)),
            (
                json!({"content": [marked.clone()]}),
                format!("{{\"type\":\"text\",\"annotations\":{{\"notes\":\"{notes}\"}}}}\n[1]"),
            ),
            (
                json!({"content": [], "_meta": {"notes": notes}, "short": 1}),
                format!("{{\"_meta\":{{\"notes\":\"{notes}\"}}}}"),
            ),
        ] {
            let found = Content::above(200, &Raw::encode(&result)).unwrap();
            assert_eq!(found.text, expected);
            assert!(found.passed_on_members.iter().all(|(key, _)| key == "short"));
        }
        let marked = json!({"content": [marked]});
        let found = Content::above(200, &Raw::encode(&marked)).unwrap();
        assert_eq!(found.json().unwrap().text(), "[1]");
    }

    #[test]
    fn json_is_the_longest_block_that_is_json() {
        let block = |text: &str| json!({"type": "text", "text": text});
        for (blocks, expected) in [
            (vec![block("Found these:"), block("[1, 2]"), block("{}")], Some("[1, 2]")),
            (vec![block("\u{feff}{\"a\": 1}")], Some("{\"a\": 1}")),
            (vec![block("[1, 2"), block("]")], None),
            (vec![block("\"only a string\"")], None),
        ] {
            let found = content(&json!({"content": blocks})).unwrap();
            assert_eq!(found.json().map(JsonNode::text), expected, "{blocks:?}");
        }
        let scalar = content(&json!({"content": [], "structuredContent": "a"})).unwrap();
        assert_eq!(scalar.json().map(JsonNode::text), Some("\"a\""));
    }

    #[test]
    fn content_that_is_no_list_counts_as_a_block() {
        let found = content(&json!({"content": "0123456789"})).unwrap();
        assert_eq!((found.text.as_str(), found.blocks), ("\"0123456789\"", 1));
    }

    #[test]
    fn errors_images_and_short_results_are_not_cut() {
        let long = "x".repeat(200);
        let error = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let image = json!({"content": [{"type": "image", "data": long}]});
        let short = json!({"content": [{"type": "text", "text": "short"}]});
        for whole in [error, image, short, json!({"task": {"id": long}}), json!([])] {
            assert!(Content::above(60, &Raw::encode(&whole)).is_none(), "{whole}");
        }
    }
}
