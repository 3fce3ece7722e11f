//! The shape of results that a tool has given, for tools that declare none.

use serde_json::{Map, Value};

use super::type_text::{TypeText, union};

/// Maximum depth of a shape.
const MAX_DEPTH: usize = 6;
/// Number of names above which an object is taken for a table by names.
const MAX_MEMBERS: usize = 30;
/// Maximum length of a name that is kept, in bytes.
const MAX_NAME_BYTES: usize = 100;
/// Maximum number of elements of an array that are read.
const MAX_ELEMENTS: usize = 20;

/// The kinds of values that were seen in one place. It holds names of members, and no values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResultShape {
    /// Words such as `string`, in the order in which they were seen.
    words: Vec<&'static str>,
    elements: Option<Box<ResultShape>>,
    object: Option<ObjectShape>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ObjectShape {
    /// The number of objects that were seen.
    seen: usize,
    /// Each with the number of objects that had it, in the order in which they were seen.
    members: Vec<(String, usize, ResultShape)>,
}

impl ResultShape {
    /// Adds what one more value shows.
    pub(crate) fn learn(&mut self, value: &Value) {
        self.learn_at(value, 0);
    }

    /// Returns the number of places in the shape.
    pub(crate) fn places(&self) -> usize {
        let elements = self.elements.as_ref().map_or(0, |elements| elements.places());
        let members = self.object.iter().flat_map(|object| &object.members);
        1 + elements + members.map(|(_, _, shape)| shape.places()).sum::<usize>()
    }

    fn learn_at(&mut self, value: &Value, depth: usize) {
        match value {
            _ if depth == MAX_DEPTH => self.add_word("unknown"),
            Value::Null => self.add_word("null"),
            Value::Bool(_) => self.add_word("boolean"),
            Value::Number(_) => self.add_word("number"),
            Value::String(_) => self.add_word("string"),
            Value::Array(values) => {
                let elements = self.elements.get_or_insert_default();
                for value in values.iter().take(MAX_ELEMENTS) {
                    elements.learn_at(value, depth + 1);
                }
            }
            Value::Object(members) => {
                self.object.get_or_insert_default().learn_at(members, depth);
            }
        }
    }

    fn add_word(&mut self, word: &'static str) {
        if !self.words.contains(&word) {
            self.words.push(word);
        }
    }

    pub(super) fn as_type(&self) -> TypeText {
        let words = self.words.iter().map(|word| TypeText::word(word));
        let elements = self.elements.as_ref().map(|elements| elements.as_type().array());
        let object = self.object.as_ref().map(ObjectShape::as_type);
        union(words.chain(elements).chain(object))
    }
}

impl ObjectShape {
    fn learn_at(&mut self, members: &Map<String, Value>, depth: usize) {
        self.seen += 1;
        for (name, value) in members {
            let known = self.members.iter_mut().find(|(known, _, _)| known == name);
            if let Some((_, count, shape)) = known {
                *count += 1;
                shape.learn_at(value, depth + 1);
            } else if self.members.len() <= MAX_MEMBERS && name.len() <= MAX_NAME_BYTES {
                let mut shape = ResultShape::default();
                shape.learn_at(value, depth + 1);
                self.members.push((name.clone(), 1, shape));
            }
        }
    }

    fn as_type(&self) -> TypeText {
        if self.members.len() > MAX_MEMBERS {
            let values = self.members.iter().map(|(_, _, shape)| shape.as_type());
            return union(values).record();
        }
        if self.members.is_empty() {
            return TypeText::unknown().record();
        }
        let members = self
            .members
            .iter()
            .map(|(name, count, shape)| (name.clone(), *count < self.seen, shape.as_type(), None));
        TypeText::object(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape_of(values: &[Value]) -> String {
        let mut shape = ResultShape::default();
        for value in values {
            shape.learn(value);
        }
        shape.as_type().to_string()
    }

    #[test]
    fn shapes_of_several_results_are_joined() {
        let results = [
            json!([{"number": 1, "title": "a", "closed": null}]),
            json!([{"number": 2, "title": "b", "closed": "2026", "labels": ["x"]}]),
        ];
        assert_eq!(
            shape_of(&results),
            "{ number: number; title: string; closed: null | string; labels?: string[] }[]"
        );
        assert_eq!(shape_of(&[json!("text")]), "string");
        assert_eq!(shape_of(&[json!([])]), "unknown[]");
    }

    #[test]
    fn tables_and_deep_values_are_bounded() {
        let table: Map<String, Value> = (0..100).map(|n| (n.to_string(), json!(n))).collect();
        assert_eq!(shape_of(&[json!(table)]), "Record<string, number>");
        let mut deep = json!(1);
        for _ in 0..50 {
            deep = json!({"a": deep});
        }
        assert!(shape_of(&[deep]).contains("a: unknown"));
    }
}
