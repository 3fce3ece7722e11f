//! A JSON value inside a text, and its children, found without building a tree of values: a text of
//! 30 MB may have millions of them. A parser has checked the text before. Walking it allocates
//! nothing, to any depth; only decoding a string or an escaped key does.

use memchr::memchr2;

use super::raw_key::RawKey;

/// A JSON value. The text around it has been checked by a parser; in any other text the children
/// are wrong, but nothing panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonNode<'a>(&'a str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

/// A member of an object or an element of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child<'a> {
    /// The key as it is written, with its quotes; `None` for an element.
    key: Option<&'a str>,
    pub(crate) node: JsonNode<'a>,
}

/// The children of a value in their order.
#[derive(Clone, Debug)]
pub(crate) struct Children<'a> {
    text: &'a str,
    at: usize,
    is_object: bool,
}

impl<'a> JsonNode<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text.trim_ascii())
    }

    pub(crate) fn text(self) -> &'a str {
        self.0
    }

    pub(crate) fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// Returns the members of an object or the elements of an array; other values have none.
    pub(crate) fn children(self) -> Children<'a> {
        let kind = self.kind();
        let has_children = matches!(kind, JsonKind::Object | JsonKind::Array);
        let text = if has_children { self.0 } else { "" };
        Children { text, at: 1, is_object: kind == JsonKind::Object }
    }

    /// Returns the value of the member `key`. The last of several equal keys counts.
    pub(crate) fn member(self, key: &str) -> Option<Self> {
        let found = self.children().filter(|child| child.has_key(key)).last();
        found.map(|child| child.node)
    }

    /// Returns the text of a string; `None` for other values, and for a string that is not Unicode.
    pub(crate) fn string(self) -> Option<String> {
        if self.kind() != JsonKind::String {
            return None;
        }
        serde_json::from_str(self.0).ok()
    }
}

impl<'a> Child<'a> {
    /// Returns the key as it is written, without its quotes; empty for an element.
    pub(crate) fn written_key(&self) -> &'a str {
        let key = self.key.unwrap_or_default();
        key.get(1..key.len().saturating_sub(1)).unwrap_or_default()
    }

    /// Returns the key without escapes; empty for an element. U+FFFD stands for a lone surrogate.
    pub(super) fn key_text(&self) -> String {
        let key = self.key.and_then(|key| serde_json::from_str::<RawKey<'_>>(key).ok());
        key.map(|key| key.to_text()).unwrap_or_default()
    }

    pub(crate) fn has_key(&self, key: &str) -> bool {
        let Some(quoted) = self.key else { return false };
        let written = self.written_key();
        let has_escapes = || written.contains('\\');
        // Every escape is longer than its character.
        if written.len() <= key.len() {
            return written == key && !has_escapes();
        }
        has_escapes() && serde_json::from_str::<String>(quoted).is_ok_and(|own| own == key)
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = Child<'a>;

    fn next(&mut self) -> Option<Child<'a>> {
        let bytes = self.text.as_bytes();
        let mut at = skip_space(bytes, self.at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        let mut key = None;
        if self.is_object {
            let end = end_of_value(bytes, at);
            key = Some(self.text.get(at..end).filter(|key| !key.is_empty())?);
            at = skip_space(bytes, end);
            at = skip_space(bytes, at + usize::from(bytes.get(at) == Some(&b':')));
        }
        let end = end_of_value(bytes, at);
        let value = self.text.get(at..end).filter(|value| !value.is_empty())?;
        self.at = end;
        Some(Child { key, node: JsonNode(value) })
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns the position after the value that begins at `at`.
fn end_of_value(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => end_of_string(bytes, at),
        Some(b'{' | b'[') => end_of_container(bytes, at),
        _ => {
            let rest = bytes.get(at..).unwrap_or_default();
            let is_end = |byte: &u8| b",:]}".contains(byte) || byte.is_ascii_whitespace();
            at + rest.iter().position(is_end).unwrap_or(rest.len())
        }
    }
}

/// Number of bytes that are compared one by one. `memchr2` is faster only in longer texts.
const MAX_BYTEWISE: usize = 16;

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at += quote_or_backslash(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(_) => at += 2,
            None => return bytes.len(),
        }
    }
}

/// Returns the position of the first quote or backslash, or the length of the text.
fn quote_or_backslash(text: &[u8]) -> usize {
    let is_found = |byte: &u8| matches!(byte, b'"' | b'\\');
    let found = text[..text.len().min(MAX_BYTEWISE)].iter().position(is_found);
    found.or_else(|| memchr2(b'"', b'\\', text)).unwrap_or(text.len())
}

fn end_of_container(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the value that the nodes of a text have.
    fn rebuilt(node: JsonNode<'_>) -> Value {
        let children = node.children();
        match node.kind() {
            JsonKind::Array => children.map(|child| rebuilt(child.node)).collect(),
            JsonKind::Object => {
                let key = |child: &Child<'_>| serde_json::from_str(child.key.unwrap()).unwrap();
                let members = children.map(|child| (key(&child), rebuilt(child.node)));
                Value::Object(members.collect())
            }
            _ => serde_json::from_str(node.text()).unwrap(),
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[\\PC\"\\\\{}\\[\\],:\n]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec(("[\\PC\"\\\\]{0,24}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn children_are_those_of_the_parsed_value(value in any_json()) {
            for text in [value.to_string(), format!(" {value:#}\n")] {
                prop_assert_eq!(&rebuilt(JsonNode::new(&text)), &value);
            }
        }

        #[test]
        fn no_text_makes_the_children_panic(text in "[\\PC\"\\\\{}\\[\\],:\\s]{0,40}") {
            let mut open = vec![JsonNode::new(&text)];
            while let Some(node) = open.pop() {
                let inside = node.children().map(|child| child.node);
                open.extend(inside.filter(|child| child.text().len() < node.text().len()));
            }
        }
    }

    #[test]
    fn strings_of_any_length_end_at_their_own_quote() {
        for length in 0..40 {
            for end in ["", "\"", "\\", "\\\"", "\u{1}", "é"] {
                let string = format!("{}{end}", "x".repeat(length));
                let text = json!({"a": &string, &string: 1}).to_string();
                let node = JsonNode::new(&text);
                assert_eq!(node.member("a").and_then(JsonNode::string).as_ref(), Some(&string));
                assert_eq!(node.member(&string).map(JsonNode::text), Some("1"));
            }
        }
    }

    #[test]
    fn escaped_key_and_the_last_of_equal_keys_are_found() {
        let node = JsonNode::new(r#"{"a":1, "\u0061" : [2], "b":{}, "c\b": 3}"#);
        assert_eq!(node.member("a").unwrap().text(), "[2]");
        assert_eq!(node.member("c"), None);
        assert_eq!(node.member(r"c\b"), None);
        assert_eq!(node.member("c\u{8}").unwrap().text(), "3");
        assert_eq!(json!("x\"y").to_string(), JsonNode::new(r#" "x\"y" "#).text());
    }
}
