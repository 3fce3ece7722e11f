//! The faults of calls whose arguments do not fit the schema of their tool.

use super::{
    name_list::{MAX_NAME_LIST_BYTES, name_list},
    near_misses::near_misses,
    text,
};
use crate::wire::{Raw, edit};

/// Maximum number of unknown arguments that are named.
const MAX_UNKNOWN: usize = 5;

/// The faults of the names of a call's arguments, by the schema of its tool.
pub(crate) struct ArgumentProblems {
    /// Names that the schema does not know, each with the known name that is most similar.
    unknown: Vec<(String, Option<String>)>,
    /// Names that the schema requires.
    missing: Vec<String>,
    /// The names that the schema knows; none if it allows any.
    known: Vec<String>,
}

impl ArgumentProblems {
    /// Returns `None` if nothing is wrong.
    pub(crate) fn of(schema: &Raw, arguments: &Raw) -> Option<Self> {
        let given = names(Some(arguments));
        let missing = missing(schema, &given);
        let mut known = names(edit::get(schema, "properties").as_ref());
        if edit::get(schema, "patternProperties").is_some() {
            known.clear();
        }
        // A tool may take arguments that its schema does not name.
        let refuses_others = edit::get(schema, "additionalProperties")
            .is_some_and(|allowed| allowed.as_bytes() == b"false");
        let unknown = given.into_iter().filter(|name| !known.is_empty() && !known.contains(name));
        let unknown: Vec<_> = unknown
            .take(MAX_UNKNOWN)
            .map(|name| {
                let near = near_misses(&name, known.iter().cloned()).into_iter().next();
                (name, near)
            })
            .filter(|(_, near)| near.is_some() || refuses_others)
            .collect();
        let is_wrong = !unknown.is_empty() || !missing.is_empty();
        is_wrong.then_some(Self { unknown, missing, known })
    }

    /// Returns whether the tool has to refuse the call.
    pub(crate) fn lacks_required(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Returns the faults in words, and the arguments of the tool.
    pub(crate) fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|(name, near)| {
            let shown = text::repeated(name);
            match near {
                Some(near) => format!("{shown} is not an argument: did you mean {near:?}?"),
                None => format!("{shown} is not an argument"),
            }
        });
        let list = |what: &str, names: &[String]| {
            let names = (!names.is_empty()).then(|| name_list(names, MAX_NAME_LIST_BYTES));
            names.map(|names| format!("{what}: {names}"))
        };
        let lists = [list("it needs", &self.missing), list("its arguments are", &self.known)];
        unknown.chain(lists.into_iter().flatten()).collect()
    }
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
        let problems = ArgumentProblems::of(&Raw::encode(schema), &Raw::encode(arguments))?;
        Some(problems.lines().join("\n"))
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
