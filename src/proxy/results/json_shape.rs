//! The shape of a JSON value: its keys and types, in a bounded text.

use crate::wire::{Child, JsonKind, JsonNode};

/// Maximum length of a shape, in bytes.
pub(super) const MAX_SHAPE_BYTES: usize = 500;
/// Maximum number of members of an object that a shape names.
const MAX_MEMBERS: usize = 12;
/// Maximum length of a key in a shape, in bytes.
const MAX_KEY_BYTES: usize = 32;
/// Depth to which a shape describes values.
const MAX_DEPTH: usize = 3;

/// Describes a value, such as `{"items": array of 90 of {"id": number}, "next": string}`. The first
/// element of an array stands for all.
pub(super) fn shape(node: JsonNode<'_>) -> String {
    let mut text = String::new();
    describe(node, 0, &mut text);
    if text.len() > MAX_SHAPE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_SHAPE_BYTES - '…'.len_utf8()));
        text.push('…');
    }
    text
}

fn describe(node: JsonNode<'_>, depth: usize, text: &mut String) {
    if text.len() > MAX_SHAPE_BYTES {
        return;
    }
    match node.kind() {
        JsonKind::Object => describe_object(node, depth, text),
        JsonKind::Array => describe_array(node, depth, text),
        JsonKind::String => text.push_str("string"),
        JsonKind::Number => text.push_str("number"),
        JsonKind::Boolean => text.push_str("boolean"),
        JsonKind::Null => text.push_str("null"),
    }
}

fn describe_object(node: JsonNode<'_>, depth: usize, text: &mut String) {
    if depth >= MAX_DEPTH {
        text.push_str("object");
        return;
    }
    text.push('{');
    let mut children = node.children();
    for (position, child) in children.by_ref().take(MAX_MEMBERS).enumerate() {
        if position > 0 {
            text.push_str(", ");
        }
        push_key(&child, text);
        describe(child.node, depth + 1, text);
    }
    let more = children.count();
    if more > 0 {
        text.push_str(&format!(", and {more} more"));
    }
    text.push('}');
}

fn describe_array(node: JsonNode<'_>, depth: usize, text: &mut String) {
    let mut children = node.children();
    let first = children.next();
    let count = usize::from(first.is_some()) + children.count();
    text.push_str(&format!("array of {count}"));
    if let Some(first) = first.filter(|_| depth < MAX_DEPTH) {
        text.push_str(" of ");
        describe(first.node, depth + 1, text);
    }
}

fn push_key(child: &Child<'_>, text: &mut String) {
    let key = child.written_key();
    let shown = &key[..key.floor_char_boundary(MAX_KEY_BYTES)];
    let rest = if shown.len() < key.len() { "…" } else { "" };
    text.push_str(&format!("\"{shown}{rest}\": "));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shape_has_keys_types_and_counts() {
        let text = concat!(
            r#"{"items": [{"id": 1, "tags": ["x"]}, {}], "next": null, "#,
            r#""deep": {"a": {"b": {"c": 1}}}, "ok": true}"#
        );
        assert_eq!(
            shape(JsonNode::new(text)),
            concat!(
                r#"{"items": array of 2 of {"id": number, "tags": array of 1}, "next": null, "#,
                r#""deep": {"a": {"b": object}}, "ok": boolean}"#
            )
        );
        assert_eq!(shape(JsonNode::new("[]")), "array of 0");
    }

    proptest! {
        #[test]
        fn shape_is_bounded(keys in proptest::collection::vec("\\PC{0,60}", 0..40)) {
            let members = keys.iter().map(|key| (key.clone(), serde_json::json!({"a": [key]})));
            let text = serde_json::Value::Object(members.collect()).to_string();
            prop_assert!(shape(JsonNode::new(&text)).len() <= MAX_SHAPE_BYTES);
        }
    }
}
