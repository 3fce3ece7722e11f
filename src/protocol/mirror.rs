//! What a modern HTTP request repeats of its message in headers (2026-07-28,
//! basic/transports/streamable-http, Request Metadata), as pure functions of the message.

use super::method;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::wire::{Raw, edit};

/// The mark in a tool's schema by which a parameter asks to be repeated.
const MARK: &str = "x-mcp-header";

/// Names of the headers, in the lower case in which HTTP libraries keep them.
pub const VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
pub const PARAMETER: &str = "mcp-param-";

/// The member of `params` that `Mcp-Name` repeats, where requests of this method have one. For tasks see SEP-2663,
/// Routing Headers.
fn subject_member(method: &str) -> Option<&'static str> {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// What `Mcp-Name` repeats: the name, the URI or the task that the request is about.
pub fn subject(method: &str, params: &Raw) -> Option<String> {
    edit::get_str(params, subject_member(method)?)
}

/// Whether requests of this method have an `Mcp-Name`.
pub fn has_subject(method: &str) -> bool {
    subject_member(method).is_some()
}

/// Whether a request without an `Mcp-Name` is taken all the same: clients of the Python SDK send none for tasks.
pub fn may_lack_name(method: &str) -> bool {
    subject_member(method) == Some("taskId")
}

/// The parameters of a call that its tool wants repeated: the name of each header after [`PARAMETER`],
/// and the value as text, where the call has one. `tool`: the tool's definition.
pub fn parameters(tool: &Raw, arguments: &Raw) -> Vec<(String, Option<String>)> {
    let Ok(marks) = marks(tool) else { return Vec::new() };
    if marks.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.to_value();
    let parameter = |mark: Mark| {
        let value = mark.path.iter().try_fold(&arguments, |value, key| value.get(key));
        let text = match value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Bool(flag)) => Some(flag.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => None,
        };
        (mark.name, text)
    };
    marks.into_iter().map(parameter).collect()
}

/// Whether a tool may be offered at all: its marks keep to the rules.
///
/// # Errors
/// What is wrong with them.
pub fn check(tool: &Raw) -> Result<(), String> {
    marks(tool).map(drop)
}

/// A parameter that is to be repeated in a header.
struct Mark {
    name: String,
    path: Vec<String>,
}

fn marks(tool: &Raw) -> Result<Vec<Mark>, String> {
    if memchr::memmem::find(tool.as_bytes(), MARK.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let Some(schema) = edit::get(tool, "inputSchema") else { return Ok(Vec::new()) };
    let mut marks = Vec::new();
    collect(&schema.to_value(), &mut Vec::new(), Place::Schema, &mut marks)?;
    let mut names: Vec<String> = marks.iter().map(|mark| mark.name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{MARK} {:?} stands there twice", pair[0])),
        None => Ok(marks),
    }
}

/// Where in a schema something stands. A mark counts only where every step from the root is a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    Properties,
    Elsewhere,
}

fn collect(
    node: &Value,
    path: &mut Vec<String>,
    place: Place,
    marks: &mut Vec<Mark>,
) -> Result<(), String> {
    match node {
        Value::Object(members) => {
            if let (Some(name), true) = (members.get(MARK), place != Place::Properties) {
                if place == Place::Elsewhere || path.is_empty() {
                    return Err(format!("{MARK} stands where no argument can be found"));
                }
                marks.push(Mark {
                    name: valid_name(name, members.get("type"))?,
                    path: path.clone(),
                });
            }
            for (key, value) in members {
                let inner = match place {
                    Place::Properties => Place::Schema,
                    Place::Schema if key == "properties" => Place::Properties,
                    Place::Schema | Place::Elsewhere => Place::Elsewhere,
                };
                if place == Place::Properties {
                    path.push(key.clone());
                }
                collect(value, path, inner, marks)?;
                if place == Place::Properties {
                    path.pop();
                }
            }
            Ok(())
        }
        Value::Array(elements) => {
            elements.iter().try_for_each(|element| collect(element, path, Place::Elsewhere, marks))
        }
        _ => Ok(()),
    }
}

fn valid_name(name: &Value, kind: Option<&Value>) -> Result<String, String> {
    let Some(name) = name.as_str().filter(|name| is_token(name)) else {
        return Err(format!("{MARK} {name} cannot be part of a header's name"));
    };
    match kind.and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        _ => {
            Err(format!("{MARK} {name:?} is on a parameter that is no string, integer or boolean"))
        }
    }
}

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_tchar)
}

/// A value as a header can carry it (Value Encoding).
pub fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e));
    let is_padded = value.trim_matches([' ', '\t']) != value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !is_padded && !looks_encoded {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(value))
    }
}

/// The value that a header carries; `None` where it is not encoded as it should be.
pub fn decoded(header: &str) -> Option<String> {
    let inner = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match inner {
        None => Some(header.to_owned()),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: &str) -> Raw {
        Raw::parse(format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).unwrap()
    }
    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(value), expected);
            assert_eq!(decoded(expected).as_deref(), Some(value));
        }
        for bad in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?="] {
            assert_eq!(decoded(bad), None);
        }
        assert_eq!(decoded("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
    }

    #[test]
    fn marked_parameters_are_found_where_they_stand() {
        let tool = tool(
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},
                "o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
                "x-mcp-header":{"type":"boolean"}}}"#,
        );
        let arguments = Raw::parse(r#"{"a":"x","o":{"n":-7},"x-mcp-header":true}"#).unwrap();
        let found = parameters(&tool, &arguments);
        let expected = [("A", "x"), ("N", "-7")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))));
        let found = parameters(&tool, &Raw::parse(r#"{"a":null}"#).unwrap());
        assert!(found.iter().all(|(_, value)| value.is_none()));
    }

    #[test]
    fn marks_that_break_the_rules_are_refused() {
        for schema in [
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
            r#"{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        ] {
            assert!(check(&tool(schema)).is_err(), "{schema}");
        }
        assert!(
            check(&tool(r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#)).is_ok()
        );
    }
}
