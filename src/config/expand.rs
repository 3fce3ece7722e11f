//! `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `$${literal}` in the strings of a server's entry.

use serde_json::Value;

use super::{Environment, key_path::Step};

/// Maximum number of bytes to which the variables of one config expand.
pub(super) const MAX_EXPANSION: usize = 16 * 1024 * 1024;

/// Expands every string inside `value` in place, and returns the undefined variables in order.
///
/// A string that uses an undefined variable stays as written. `room` is the number of bytes that
/// values may take, from which the bytes used are subtracted; it becomes 0 if they do not suffice,
/// and the rest stays as written.
pub(super) fn expand(
    value: &mut Value,
    environment: &Environment,
    room: &mut usize,
) -> Vec<String> {
    let mut expansion = Expansion { environment, undefined: Vec::new(), room };
    expansion.expand(value);
    let mut undefined = expansion.undefined;
    undefined.dedup();
    undefined
}

impl Environment {
    /// Returns the value with its defined variables expanded.
    pub fn expanded(&self, value: &Value) -> Value {
        let mut value = value.clone();
        expand(&mut value, self, &mut { MAX_EXPANSION });
        value
    }
}

/// Removes members of `env` that are only `${NAME:-}` where `NAME` is unset or empty: the server
/// sees no variable, as it would without dormouse.
pub(super) fn drop_unset(entry: &mut Value, environment: &Environment) {
    let is_unset = |text: &str| {
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix(":-}"));
        let name = name.map(|name| name.strip_prefix("env:").unwrap_or(name));
        // Otherwise the text is more than one reference.
        let name = name.filter(|name| !name.contains(['$', '{', '}']));
        name.is_some_and(|name| environment.get(name).is_none_or(str::is_empty))
    };
    if let Some(variables) = entry.get_mut("env").and_then(Value::as_object_mut) {
        variables.retain(|_, value| !value.as_str().is_some_and(is_unset));
    }
}

/// Returns the paths of the strings in which a `${` has no end.
pub(super) fn unclosed(value: &Value) -> Vec<Vec<Step>> {
    find(value, &|text| {
        let references = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$'));
        references.last().is_some_and(|(at, _)| !text[at..].contains('}'))
    })
}

/// Returns the path of the first string that refers to a variable.
pub(super) fn reference_to(value: &Value, variable: &str) -> Option<Vec<Step>> {
    let references = [format!("${{{variable}}}"), format!("${{env:{variable}}}")];
    let paths = find(value, &|text| references.iter().any(|reference| text.contains(reference)));
    paths.into_iter().next()
}

/// Returns the paths of the strings for which `is_wanted` holds, in order.
fn find(value: &Value, is_wanted: &dyn Fn(&str) -> bool) -> Vec<Vec<Step>> {
    let below = |step: Step, value: &Value| {
        let paths = find(value, is_wanted).into_iter();
        paths.map(move |path| [vec![step.clone()], path].concat()).collect::<Vec<_>>()
    };
    match value {
        Value::String(text) if is_wanted(text) => vec![Vec::new()],
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .flat_map(|(at, value)| below(Step::Index(at), value))
            .collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(key, value)| below(Step::Key(key.clone()), value)).collect()
        }
        _ => Vec::new(),
    }
}

struct Expansion<'a> {
    environment: &'a Environment,
    undefined: Vec<String>,
    room: &'a mut usize,
}

impl Expansion<'_> {
    fn expand(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if text.contains("${") {
                    *text = self.expand_text(text);
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.expand(element)),
            Value::Object(members) => members.values_mut().for_each(|member| self.expand(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn expand_text(&mut self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let escaped = rest[..start].strip_suffix('$');
            let end = match rest[start..].find('}') {
                Some(length) => start + length + 1,
                None if escaped.is_some() => start + 2,
                None => break,
            };
            let reference = &rest[start..end];
            if let Some(before) = escaped {
                expanded.push_str(before);
                expanded.push_str(reference);
            } else {
                expanded.push_str(&rest[..start]);
                expanded.push_str(self.value_of(reference));
            }
            rest = &rest[end..];
        }
        expanded.push_str(rest);
        expanded
    }

    /// Returns the replacement of `${…}`; the reference itself if there is none, or no room.
    fn value_of<'t>(&mut self, reference: &'t str) -> &'t str
    where
        Self: 't,
    {
        match resolve(&reference[2..reference.len() - 1], self.environment) {
            Ok(value) if value.len() < *self.room => {
                *self.room -= value.len();
                value
            }
            Ok(_) => {
                *self.room = 0;
                reference
            }
            Err(name) => {
                self.undefined.push(name.to_owned());
                reference
            }
        }
    }
}

/// Returns the value of a reference without its braces, or the name of the undefined variable.
fn resolve<'a>(reference: &'a str, environment: &'a Environment) -> Result<&'a str, &'a str> {
    let reference = reference.strip_prefix("env:").unwrap_or(reference);
    match reference.split_once(":-") {
        Some((name, default)) => {
            Ok(environment.get(name).filter(|value| !value.is_empty()).unwrap_or(default))
        }
        None => environment.get(reference).ok_or(reference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_is_expanded() {
        let environment = Environment::from_pairs([("A", "1"), ("EMPTY", ""), ("REF", "${A}")]);
        for (text, expanded) in [
            ("x${A}y${A}", "x1y1"),
            ("${env:A}", "1"),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", "d"),
            ("${NO:-a:-b}", "a:-b"),
            ("${NO:-}", ""),
            ("$${A}", "${A}"),
            ("$${A $${B", "${A ${B"),
            ("a$${A}${A}", "a${A}1"),
            ("$A $ {A} ${A", "$A $ {A} ${A"),
            ("${REF}", "${A}"),
        ] {
            let mut value = json!(text);
            assert_eq!(expand(&mut value, &environment, &mut { MAX_EXPANSION }), [""; 0], "{text}");
            assert_eq!(value, json!(expanded), "{text}");
        }
    }

    #[test]
    fn unset_variable_with_an_empty_default_is_omitted() {
        let environment = Environment::from_pairs([("SET", "1"), ("EMPTY", "")]);
        let mut entry = json!({"env": {
            "A": "${SET:-}", "B": "${UNSET:-}", "C": "${env:EMPTY:-}", "D": "", "E": "x${UNSET:-}",
            "F": "${SET}/${UNSET:-}", "G": "${UNSET:-x}${UNSET:-}",
        }, "args": ["${UNSET:-}"]});
        drop_unset(&mut entry, &environment);
        let left: Vec<&String> = entry["env"].as_object().unwrap().keys().collect();
        assert_eq!(left, ["A", "D", "E", "F", "G"]);
        assert_eq!(entry["args"], json!(["${UNSET:-}"]));
    }

    #[test]
    fn expansion_is_bounded() {
        let environment = Environment::from_pairs([("A", "12345")]);
        let mut value = json!(["${A}${A}${A}", "${B}"]);
        let mut room = 11;
        assert_eq!(expand(&mut value, &environment, &mut room), ["B"]);
        assert_eq!((value, room), (json!(["1234512345${A}", "${B}"]), 0));
    }

    #[test]
    fn undefined_variables_are_named() {
        let mut value = json!({"args": ["${B}", {"deep": "x${env:C}"}], "n": 1});
        assert_eq!(expand(&mut value, &Environment::default(), &mut { MAX_EXPANSION }), ["B", "C"]);
        assert_eq!(value["args"][0], "${B}");
    }
}
