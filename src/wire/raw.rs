//! A JSON value in its original text.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{json_node::JsonNode, raw_key::RawKey};

/// One complete JSON value as UTF-8 text, usually a slice of the line that contained it. A parser
/// has checked it, or dormouse has written it.
///
/// Clones are cheap. Values pass between two peers without being encoded again, so that unknown
/// members, the order of keys and the spelling of numbers are preserved (docs/design/fidelity.md).
///
/// Deliberately not `Serialize`: a `Value` cannot hold every JSON text (`1e400`, a lone surrogate
/// escape, 200 levels of nesting), so that `json!` with a `Raw` inside would panic on input from
/// outside. [`Raw::array`] and [`wire::edit`](super::edit) combine raw texts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

impl Raw {
    /// Checks that `text` is one JSON value, and wraps it.
    ///
    /// # Errors
    /// If `text` is not JSON.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, serde_json::Error> {
        let bytes = text.into();
        let trimmed = serde_json::from_slice::<&RawValue>(&bytes)?.get();
        Ok(Self(bytes.slice_ref(trimmed.as_bytes())))
    }

    /// Encodes a value of dormouse.
    ///
    /// # Panics
    /// If `value` cannot be JSON, for example a map whose keys are not strings: a mistake in this
    /// program.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(serde_json::to_vec(value).expect("our own values are JSON").into())
    }

    /// Joins the texts into one JSON array.
    pub fn array<'a>(items: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut text = BytesMut::from(&b"["[..]);
        for (position, item) in items.into_iter().enumerate() {
            if position > 0 {
                text.put_u8(b',');
            }
            text.put_slice(&item.0);
        }
        text.put_u8(b']');
        Self(text.freeze())
    }

    /// Returns `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Wraps a part of `line` that is one JSON value.
    ///
    /// # Panics
    /// If `part` is not a part of `line`.
    pub(super) fn part_of(line: &Bytes, part: &str) -> Self {
        Self(line.slice_ref(part.as_bytes()))
    }

    /// Wraps text that is JSON by construction.
    pub(super) fn trusted(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a parser has checked it, or dormouse has written it")
    }

    /// Returns the value as a node, whose children are found without a parser.
    pub(crate) fn node(&self) -> JsonNode<'_> {
        JsonNode::new(self.text())
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    pub fn is_string(&self) -> bool {
        self.0.first() == Some(&b'"')
    }

    /// Returns a copy that does not keep the whole line alive, for values that are stored for long.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Reads a typed view of the text. Members that the view lacks are ignored.
    ///
    /// # Errors
    /// If the text has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// Returns the content of a string, in which U+FFFD stands for a lone surrogate; `None` if the
    /// value is not a string.
    pub(crate) fn lossy_text(&self) -> Option<String> {
        let text: Option<RawKey<'_>> = serde_json::from_slice(&self.0).ok();
        text.filter(|_| self.is_string()).map(|text| text.to_text())
    }

    /// Returns the text as a `Value`, or `null` if a `Value` cannot hold it (for example a lone
    /// surrogate escape).
    pub fn to_value(&self) -> serde_json::Value {
        self.read().unwrap_or_default()
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_number_spelling_and_key_order() {
        let text = r#"{"z":1e2,"a":123456789012345678901234567890,"m":1.10,"u":"\ud800"}"#;
        assert_eq!(Raw::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn trims_white_space_around_the_value_only() {
        assert_eq!(Raw::parse(" [1, 2]\t").unwrap().to_string(), "[1, 2]");
    }

    #[test]
    fn rejects_invalid_json() {
        assert!(Raw::parse("{").is_err());
        assert!(Raw::parse("1 2").is_err());
    }

    #[test]
    fn array_keeps_items_verbatim() {
        let items = [r#"{"n":1e400}"#, r#""\ud800""#].map(|text| Raw::parse(text).unwrap());
        assert_eq!(Raw::array(&items).to_string(), r#"[{"n":1e400},"\ud800"]"#);
        assert_eq!(Raw::array([]).to_string(), "[]");
    }
}
