//! The HTTP headers of MCP. Those that repeat parts of a modern request (2026-07-28,
//! basic/transports/streamable-http, Request Metadata) are pure functions of its message.

use super::method;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::wire::{Raw, edit};

/// The key in a tool's schema that asks for a parameter to be repeated in a header.
const HEADER_KEY: &str = "x-mcp-header";

/// Names of the headers, in lower case, as HTTP libraries store them.
pub(crate) const VERSION: &str = "mcp-protocol-version";
pub(crate) const METHOD: &str = "mcp-method";
pub(crate) const NAME: &str = "mcp-name";
pub(crate) const PARAMETER: &str = "mcp-param-";
/// The id of a legacy session (2025-11-25, basic/transports, Session Management).
pub(crate) const SESSION_ID: &str = "mcp-session-id";
/// The last event that a client has received on a stream (Resumability and Redelivery).
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

/// Returns the member of `params` that `Mcp-Name` repeats, if requests of this method have one. For
/// tasks see SEP-2663, Routing Headers.
fn subject_member(method: &str) -> Option<&'static str> {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// Returns the value of `Mcp-Name`: the name, the URI or the task id that the request refers to.
pub(crate) fn subject(method: &str, params: &Raw) -> Option<String> {
    edit::get_str(params, subject_member(method)?)
}

/// Returns whether requests of this method carry an `Mcp-Name`.
pub(crate) fn has_subject(method: &str) -> bool {
    subject_member(method).is_some()
}

/// Returns whether a request without `Mcp-Name` is accepted: clients of the Python SDK omit it for
/// tasks.
pub(crate) fn may_omit_name(method: &str) -> bool {
    subject_member(method) == Some("taskId")
}

/// Returns the parameters of a call that the tool's definition `tool` wants in headers: the rest of
/// each header's name after [`PARAMETER`], and the value as text if the call has one.
pub(crate) fn parameter_values(tool: &Raw, arguments: &Raw) -> Vec<(String, Option<String>)> {
    let Ok(found) = header_parameters(tool) else { return Vec::new() };
    if found.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.to_value();
    let value_of = |parameter: HeaderParameter| {
        let value = parameter.path.iter().try_fold(&arguments, |value, key| value.get(key));
        let text = match value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Bool(flag)) => Some(flag.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => None,
        };
        (parameter.name, text)
    };
    found.into_iter().map(value_of).collect()
}

/// Checks that a tool's annotations of header parameters follow the rules. A tool that breaks them
/// must not be offered.
///
/// # Errors
/// Returns a description of the violation.
pub(crate) fn check_parameters(tool: &Raw) -> Result<(), String> {
    header_parameters(tool).map(drop)
}

/// A parameter that a request must repeat in a header.
struct HeaderParameter {
    name: String,
    path: Vec<String>,
}

fn header_parameters(tool: &Raw) -> Result<Vec<HeaderParameter>, String> {
    if memchr::memmem::find(tool.as_bytes(), HEADER_KEY.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let Some(schema) = edit::get(tool, "inputSchema") else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    collect_header_parameters(
        &schema.to_value(),
        &mut Vec::new(),
        SchemaPosition::Schema,
        &mut found,
    )?;
    let mut names: Vec<String> =
        found.iter().map(|parameter| parameter.name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{HEADER_KEY} {:?} occurs twice", pair[0])),
        None => Ok(found),
    }
}

/// The position of a JSON value in a tool's schema. A parameter may only be marked for a header if
/// every step from the root to the parameter is a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Schema,
    Properties,
    Elsewhere,
}

fn collect_header_parameters(
    node: &Value,
    path: &mut Vec<String>,
    position: SchemaPosition,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), String> {
    match node {
        Value::Object(members) => {
            if let (Some(name), true) =
                (members.get(HEADER_KEY), position != SchemaPosition::Properties)
            {
                if position == SchemaPosition::Elsewhere || path.is_empty() {
                    return Err(format!("{HEADER_KEY} is at a place that has no argument"));
                }
                found.push(HeaderParameter {
                    name: valid_name(name, members.get("type"))?,
                    path: path.clone(),
                });
            }
            for (key, value) in members {
                let inner = match position {
                    SchemaPosition::Properties => SchemaPosition::Schema,
                    SchemaPosition::Schema if key == "properties" => SchemaPosition::Properties,
                    SchemaPosition::Schema | SchemaPosition::Elsewhere => SchemaPosition::Elsewhere,
                };
                if position == SchemaPosition::Properties {
                    path.push(key.clone());
                }
                collect_header_parameters(value, path, inner, found)?;
                if position == SchemaPosition::Properties {
                    path.pop();
                }
            }
            Ok(())
        }
        Value::Array(elements) => elements.iter().try_for_each(|element| {
            collect_header_parameters(element, path, SchemaPosition::Elsewhere, found)
        }),
        _ => Ok(()),
    }
}

fn valid_name(name: &Value, kind: Option<&Value>) -> Result<String, String> {
    let Some(name) = name.as_str().filter(|name| is_token(name)) else {
        return Err(format!("{HEADER_KEY} {name} is not valid in a header name"));
    };
    match kind.and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        _ => Err(format!(
            "{HEADER_KEY} {name:?} is on a parameter that is not a string, integer or boolean"
        )),
    }
}

/// Returns whether `name` is a token (RFC 9110 section 5.6.2).
fn is_token(name: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_tchar)
}

/// Encodes a value for a header (Value Encoding).
pub(crate) fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e));
    let is_padded = value.trim_matches([' ', '\t']) != value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !is_padded && !looks_encoded {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(value))
    }
}

/// Decodes the value of a header. Returns `None` if its encoding is invalid.
pub(crate) fn decode(header: &str) -> Option<String> {
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
    fn values_are_encoded_as_in_the_specification() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(value), expected);
            assert_eq!(decode(expected).as_deref(), Some(value));
        }
        for bad in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?="] {
            assert_eq!(decode(bad), None);
        }
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
    }

    #[test]
    fn marked_parameters_are_read_at_their_paths() {
        let tool = tool(
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},
                "o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
                "x-mcp-header":{"type":"boolean"}}}"#,
        );
        let arguments = Raw::parse(r#"{"a":"x","o":{"n":-7},"x-mcp-header":true}"#).unwrap();
        let found = parameter_values(&tool, &arguments);
        let expected = [("A", "x"), ("N", "-7")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))));
        let found = parameter_values(&tool, &Raw::parse(r#"{"a":null}"#).unwrap());
        assert!(found.iter().all(|(_, value)| value.is_none()));
    }

    #[test]
    fn invalid_header_parameters_are_rejected() {
        for schema in [
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            concat!(
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"#,
                r#""b":{"type":"string","x-mcp-header":"a"}}}"#,
            ),
            r#"{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        ] {
            assert!(check_parameters(&tool(schema)).is_err(), "{schema}");
        }
        assert!(
            check_parameters(&tool(r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#))
                .is_ok()
        );
    }
}
