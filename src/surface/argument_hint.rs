//! Hints for calls whose arguments do not fit the schema of their tool.

use super::{
    name_list::{MAX_NAME_LIST_BYTES, name_list},
    near_misses::near_misses,
    text,
};
use crate::wire::{Raw, edit};

/// Maximum number of unknown arguments that a hint names.
const MAX_UNKNOWN: usize = 5;

/// Returns what is wrong with the names of arguments, as lines that follow a message: those that
/// the schema does not know, and those that it requires. `None` if nothing is wrong.
pub(crate) fn argument_hint(schema: &Raw, arguments: &Raw) -> Option<String> {
    let known = names(edit::get(schema, "properties").as_ref());
    let given = names(Some(arguments));
    let missing: Vec<String> = missing(schema, &given);
    // Without properties, or with patterns of names, any argument may be meant.
    let is_closed = !known.is_empty() && edit::get(schema, "patternProperties").is_none();
    let unknown = given.iter().filter(|name| is_closed && !known.contains(name));
    // A tool may take arguments that its schema does not name.
    let refuses_others = edit::get(schema, "additionalProperties")
        .is_some_and(|allowed| allowed.as_bytes() == b"false");
    let mut lines: Vec<String> = unknown
        .take(MAX_UNKNOWN)
        .filter_map(|name| {
            let shown = text::repeated(name);
            match near_misses(name, known.iter().cloned()).first() {
                Some(near) => Some(format!("{shown} is not an argument: did you mean {near:?}?")),
                None => refuses_others.then(|| format!("{shown} is not an argument")),
            }
        })
        .collect();
    if !missing.is_empty() {
        lines.push(format!("it needs: {}", name_list(&missing, MAX_NAME_LIST_BYTES)));
    }
    if lines.is_empty() {
        return None;
    }
    if is_closed {
        lines.push(format!("its arguments are: {}", name_list(&known, MAX_NAME_LIST_BYTES)));
    }
    Some(format!("\n{}", lines.join("\n")))
}

/// Returns whether the arguments lack one that the schema requires.
pub(crate) fn lacks_required(schema: &Raw, arguments: &Raw) -> bool {
    !missing(schema, &names(Some(arguments))).is_empty()
}

fn missing(schema: &Raw, given: &[String]) -> Vec<String> {
    let required = edit::get(schema, "required").and_then(|it| edit::elements(&it));
    let required = required.unwrap_or_default().into_iter().filter_map(|it| it.read().ok());
    required.filter(|name| !given.contains(name)).collect()
}

fn names(object: Option<&Raw>) -> Vec<String> {
    let members = object.map(edit::entries).unwrap_or_default();
    members.into_iter().map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hint(schema: &serde_json::Value, arguments: &serde_json::Value) -> Option<String> {
        argument_hint(&Raw::encode(schema), &Raw::encode(arguments))
    }

    #[test]
    fn hint_names_misspelt_and_missing_arguments() {
        let schema = json!({
            "properties": {"owner": {}, "repo": {}, "perPage": {}},
            "required": ["owner", "repo"],
        });
        let strict = json!({"properties": {"a": {}}, "additionalProperties": false});
        let said = hint(&strict, &json!({"zzz": 1})).unwrap();
        assert!(said.contains("\"zzz\" is not an argument"), "{said}");
        let wrong = json!({"ownr": "a", "repo": "b", "zzz": 1});
        insta::assert_snapshot!(hint(&schema, &wrong).unwrap());
        assert_eq!(hint(&schema, &json!({"owner": "a", "repo": "b", "zzz": 1})), None);
        assert_eq!(hint(&schema, &json!({"owner": "a", "repo": "b"})), None);
    }

    #[test]
    fn schema_that_allows_any_argument_has_no_unknown_ones() {
        assert_eq!(hint(&json!({}), &json!({"a": 1})), None);
        let pattern = json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}});
        assert_eq!(hint(&pattern, &json!({"b": 1})), None);
        assert!(hint(&json!({"required": ["b"]}), &json!({"a": 1})).unwrap().contains("needs: b"));
        assert_eq!(hint(&json!(7), &json!([1])), None);
    }
}
