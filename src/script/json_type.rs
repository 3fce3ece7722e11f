//! JSON schemas as types of TypeScript.

use std::{cell::Cell, collections::HashSet};

use serde_json::{Map, Value};

use super::type_text::{TypeText, literal, union};
use crate::base::{one_line, shortened};

/// Maximum depth of a type; deeper parts are `unknown`.
const MAX_DEPTH: usize = 8;
/// Maximum number of parts of a type; the others are `unknown`. References can repeat parts.
const MAX_PARTS: usize = 500;
/// Maximum number of members of an object, and of values of an enumeration.
const MAX_MEMBERS: usize = 60;
/// Maximum number of required names that are read.
const MAX_REQUIRED: usize = 200;
/// Maximum length of a comment, in characters.
const MAX_COMMENT_CHARS: usize = 250;

/// Returns the type of values that fit a schema.
pub(super) fn type_of(schema: &Value) -> TypeText {
    Reader { root: schema, parts: Cell::new(0) }.read(schema, 0)
}

struct Reader<'a> {
    /// The schema to which references are relative.
    root: &'a Value,
    /// The number of parts that were read.
    parts: Cell<usize>,
}

impl Reader<'_> {
    fn read(&self, schema: &Value, depth: usize) -> TypeText {
        let parts = self.parts.replace(self.parts.get() + 1);
        let is_bounded = depth < MAX_DEPTH && parts < MAX_PARTS;
        let Some(schema) = schema.as_object().filter(|_| is_bounded) else {
            return TypeText::unknown();
        };
        if let Some(target) = schema.get("$ref").and_then(|it| self.target(it)) {
            return self.read(target, depth + 1);
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return union(values.iter().take(MAX_MEMBERS).map(literal));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(schemas) = schema.get(key).and_then(Value::as_array) {
                let types = schemas.iter().take(MAX_MEMBERS);
                return union(types.map(|schema| self.read(schema, depth + 1)));
            }
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.typed(kind, schema, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().take(MAX_MEMBERS).filter_map(Value::as_str);
                union(kinds.map(|kind| self.typed(kind, schema, depth)))
            }
            _ if schema.contains_key("properties") => self.object(schema, depth),
            _ => self.all_of(schema, depth),
        }
    }

    fn all_of(&self, schema: &Map<String, Value>, depth: usize) -> TypeText {
        let parts = schema.get("allOf").and_then(Value::as_array);
        match parts.and_then(|parts| parts.first()) {
            Some(first) => self.read(first, depth + 1),
            None => TypeText::unknown(),
        }
    }

    fn typed(&self, kind: &str, schema: &Map<String, Value>, depth: usize) -> TypeText {
        match kind {
            "string" | "boolean" | "null" => TypeText::word(kind),
            "number" | "integer" => TypeText::word("number"),
            "array" => match schema.get("items") {
                Some(items) => self.read(items, depth + 1).array(),
                None => TypeText::unknown().array(),
            },
            "object" => self.object(schema, depth),
            _ => TypeText::unknown(),
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> TypeText {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) => self.read(values, depth + 1).record(),
                _ => TypeText::unknown().record(),
            };
        };
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().take(MAX_REQUIRED).filter_map(Value::as_str);
        let required: HashSet<&str> = required.collect();
        let members = properties.iter().take(MAX_MEMBERS).map(|(name, schema)| {
            let comment = schema["description"].as_str().map(comment).filter(|it| !it.is_empty());
            let text = self.read(schema, depth + 1);
            (name.clone(), !required.contains(name.as_str()), text, comment)
        });
        TypeText::object(members)
    }

    /// Returns the schema to which a reference within the document leads.
    fn target(&self, reference: &Value) -> Option<&Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }
}

/// Returns text of a server as the inside of a comment.
pub(super) fn comment(text: &str) -> String {
    let line = one_line(text).replace("*/", "* /");
    shortened(line.trim(), MAX_COMMENT_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(schema: &Value) -> String {
        type_of(schema).to_string()
    }

    #[test]
    fn schemas_become_types() {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": {"type": "string", "description": "The account.\nA user */ or team"},
                "state": {"enum": ["open", "closed", null]},
                "page-size": {"type": ["integer", "null"]},
                "labels": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"const": 1}]}},
                "point": {"$ref": "#/$defs/point"},
                "rest": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "anything": {},
            },
            "required": ["owner"],
            "$defs": {"point": {"properties": {"x": {"type": "number"}}}},
        });
        insta::assert_snapshot!(text(&schema));
    }

    #[test]
    fn endless_and_odd_schemas_are_bounded() {
        let endless = json!({"properties": {"next": {"$ref": "#"}}});
        assert!(text(&endless).ends_with("unknown } } } }"), "{}", text(&endless));
        assert_eq!(text(&json!({"enum": ["a\u{202e}b"]})), r#""a\u202eb""#);
        for odd in [json!(true), json!({"type": 7}), json!({"$ref": "http://x"}), json!(null)] {
            assert_eq!(text(&odd), "unknown", "{odd}");
        }
        let names = (0..50).map(|n| (format!("p{n}"), json!({"$ref": "#"})));
        let wide = json!({"properties": names.collect::<Map<_, _>>()});
        assert!(text(&wide).len() < 10_000);
    }
}
