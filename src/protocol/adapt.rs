//! Translates messages between a host of one era and a server of the other.
//!
//! Messages between peers of the same era are not changed. Requests from a server to a host
//! (sampling, elicitation, roots) are sent and answered by `proxy`; this module only translates
//! their contents.

use rmcp::model::ErrorCode;
use serde_json::json;

use super::{ClientIdentity, Era, LogLevel, Meta, client_meta, implementation, method};
use crate::wire::{Outcome, Raw, edit};

/// The `_meta` members of a modern request that a legacy server does not know.
const MODERN_META_KEYS: [&str; 4] =
    [Meta::PROTOCOL_VERSION, Meta::CLIENT_INFO, Meta::CLIENT_CAPABILITIES, Meta::LOG_LEVEL];

/// The methods whose results carry `ttlMs` and `cacheScope` in 2026-07-28 (`CacheableResult`).
const CACHEABLE_METHODS: [&str; 8] = [
    method::SERVER_DISCOVER,
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_READ,
    // SEP-2640.
    method::SKILLS_LIST,
    method::SKILLS_GET,
];

/// Translates the `params` of a request from `client` for a server of era `server_era`.
///
/// `level` is the minimum level of log messages that a legacy client has requested.
pub(crate) fn params(
    client: &ClientIdentity,
    server_era: Era,
    level: Option<LogLevel>,
    params: Option<Raw>,
) -> Option<Raw> {
    match (client.era, server_era) {
        (Era::Modern, Era::Legacy) => params.map(|params| without_modern_meta(&params)),
        (Era::Legacy, Era::Modern) => {
            let params = params.unwrap_or_else(Raw::empty_object);
            let client = ClientIdentity {
                capabilities: client.capabilities_for(server_era),
                ..client.clone()
            };
            let params = with_modern_meta(&client, &params);
            Some(match level {
                Some(level) => {
                    let level = Raw::encode(level.name());
                    edit::set_within(&params, "_meta", &[(Meta::LOG_LEVEL, &level)])
                }
                None => params,
            })
        }
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => params,
    }
}

/// Adds the `_meta` of a modern request of `client`, or of dormouse itself, to `params`.
pub(crate) fn with_modern_meta(client: &ClientIdentity, params: &Raw) -> Raw {
    let meta = client_meta(client);
    edit::set_within(params, "_meta", &meta.each_ref().map(|(key, value)| (*key, value)))
}

fn without_modern_meta(params: &Raw) -> Raw {
    let Some(meta) = edit::get(params, "_meta") else { return params.clone() };
    let meta = edit::without(&meta, &MODERN_META_KEYS);
    if meta.as_bytes() == b"{}" {
        edit::without(params, &["_meta"])
    } else {
        edit::set(params, "_meta", &meta)
    }
}

/// Translates a server's response to `method` from the era of the server to the era of the host.
///
/// # Errors
/// Returns the server's own error with the code that the host's era uses.
pub(crate) fn outcome(method: &str, server_era: Era, host_era: Era, outcome: Outcome) -> Outcome {
    match (server_era, host_era) {
        (Era::Legacy, Era::Modern) => match outcome {
            Ok(result) => Ok(complete(method, &result)),
            Err(error) => {
                Err(recoded(&error, ErrorCode::RESOURCE_NOT_FOUND, ErrorCode::INVALID_PARAMS))
            }
        },
        (Era::Modern, Era::Legacy) => match outcome {
            // `proxy` recognizes the server's question by its `resultType`, and carries it to the
            // host.
            Ok(result) if is_input_required(&result) => Ok(result),
            Ok(result) if CACHEABLE_METHODS.contains(&method) => {
                Ok(edit::without(&result, &["resultType", "ttlMs", "cacheScope"]))
            }
            Ok(result) => Ok(edit::without(&result, &["resultType"])),
            Err(error) if method == method::RESOURCES_READ => {
                Err(recoded(&error, ErrorCode::INVALID_PARAMS, ErrorCode::RESOURCE_NOT_FOUND))
            }
            Err(error) => Err(error),
        },
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => outcome,
    }
}

/// Translates a result that dormouse composed itself for a host of era `host_era`.
pub(crate) fn own_result(method: &str, host_era: Era, result: Raw) -> Raw {
    match host_era {
        Era::Legacy => result,
        Era::Modern => {
            let result = complete(method, &result);
            let info = Raw::encode(&json!({ Meta::SERVER_INFO: implementation() }));
            if edit::get(&result, "_meta").is_some() {
                result
            } else {
                edit::set(&result, "_meta", &info)
            }
        }
    }
}

/// Adds the members that 2026-07-28 requires of every result, where they are missing.
fn complete(method: &str, result: &Raw) -> Raw {
    let mut result = result.clone();
    if !result.is_object() {
        return result;
    }
    let mut add = |key: &str, value: &'static str| {
        if edit::get(&result, key).is_none() {
            result = edit::set(&result, key, &Raw::encode(value));
        }
    };
    add("resultType", "complete");
    if CACHEABLE_METHODS.contains(&method) {
        add("cacheScope", "private");
        if edit::get(&result, "ttlMs").is_none() {
            result = edit::set(&result, "ttlMs", &Raw::encode(&0));
        }
    }
    result
}

/// Returns whether a result asks the client for input (2026-07-28, basic/patterns/mrtr).
pub(crate) fn is_input_required(result: &Raw) -> bool {
    edit::get_str(result, "resultType").as_deref() == Some("input_required")
}

/// Translates a modern host's answer to a question for a legacy server.
pub(crate) fn input_response(answer: &Raw) -> Raw {
    edit::without(answer, &["resultType"])
}

/// Translates the `params` of a modern server's question for a legacy host.
///
/// A legacy host expects an id in a question that sends the user to a web page (2025-11-25,
/// client/elicitation).
pub(crate) fn question(method: &str, params: &Raw) -> Raw {
    let is_page = method == method::ELICITATION_CREATE
        && edit::get_str(params, "mode").as_deref() == Some("url")
        && edit::get(params, "elicitationId").is_none();
    if is_page {
        let id = format!("{:016x}", fastrand::u64(..));
        edit::set(params, "elicitationId", &Raw::encode(&id))
    } else {
        params.clone()
    }
}

fn recoded(error: &Raw, from: ErrorCode, to: ErrorCode) -> Raw {
    if super::error::has_code(error, from) {
        edit::set(error, "code", &Raw::encode(&to.0))
    } else {
        error.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    const MODERN_PARAMS: &str = concat!(
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1e2,"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}"#,
    );

    #[test]
    fn params_are_translated_between_eras() {
        let legacy = ClientIdentity::ourselves();
        let modern = ClientIdentity { era: Era::Modern, ..ClientIdentity::ourselves() };
        let plain = r#"{"name":"t","n":1e2}"#;
        for (client, to, given, expected) in [
            (&legacy, Era::Legacy, plain, plain.to_owned()),
            (&modern, Era::Modern, MODERN_PARAMS, MODERN_PARAMS.to_owned()),
            (&modern, Era::Legacy, MODERN_PARAMS, r#"{"name":"t","_meta":{"x":1e2}}"#.to_owned()),
            (&modern, Era::Legacy, plain, plain.to_owned()),
        ] {
            let sent = params(client, to, Some(LogLevel::Info), Some(raw(given)));
            assert_eq!(sent.unwrap().to_string(), expected);
        }
        let sent = params(&legacy, Era::Modern, Some(LogLevel::Info), Some(raw(plain)));
        let sent = sent.unwrap().to_string();
        let begin = concat!(
            r#"{"name":"t","n":1e2,"#,
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
        );
        assert!(sent.starts_with(begin), "{sent}");
        assert!(sent.contains(r#""io.modelcontextprotocol/clientCapabilities":{}"#), "{sent}");
        assert!(sent.contains(r#""io.modelcontextprotocol/logLevel":"info""#), "{sent}");
        assert!(params(&legacy, Era::Legacy, None, None).is_none());
        assert!(params(&legacy, Era::Modern, None, None).is_some());
    }

    #[test]
    fn outcomes_are_translated_between_eras() {
        use Era::{Legacy, Modern};
        let plain = r#"{"content":[],"n":1e2}"#;
        let cached = r#"{"contents":[],"resultType":"complete","ttlMs":5,"cacheScope":"public"}"#;
        for (method, from, to, given, expected) in [
            ("tools/call", Legacy, Legacy, plain, plain),
            ("tools/call", Modern, Modern, cached, cached),
            (
                "tools/call",
                Legacy,
                Modern,
                plain,
                r#"{"content":[],"n":1e2,"resultType":"complete"}"#,
            ),
            (
                "resources/read",
                Legacy,
                Modern,
                r#"{"contents":[]}"#,
                r#"{"contents":[],"resultType":"complete","cacheScope":"private","ttlMs":0}"#,
            ),
            ("resources/read", Modern, Legacy, cached, r#"{"contents":[]}"#),
            ("tools/call", Modern, Legacy, r#"{"content":[ 1 ]}"#, r#"{"content":[ 1 ]}"#),
            (
                "tools/call",
                Modern,
                Legacy,
                r#"{"resultType":"complete","ttlMs":1}"#,
                r#"{"ttlMs":1}"#,
            ),
        ] {
            let found = outcome(method, from, to, Ok(raw(given))).unwrap();
            assert_eq!(found.to_string(), expected, "{method} {from:?} {to:?}");
        }
    }

    #[test]
    fn the_code_of_a_missing_resource_is_translated() {
        use Era::{Legacy, Modern};
        for (method, from, to, given, expected) in [
            ("resources/read", Legacy, Modern, -32002, -32602),
            ("resources/read", Modern, Legacy, -32602, -32002),
            ("tools/call", Modern, Legacy, -32602, -32602),
            ("tools/call", Legacy, Modern, -32603, -32603),
            ("resources/read", Legacy, Legacy, -32002, -32002),
        ] {
            let error = Raw::encode(&json!({"code": given, "message": "m", "data": {"x": 1}}));
            let found = outcome(method, from, to, Err(error)).unwrap_err();
            assert_eq!(super::super::error::code(&found), expected);
            assert!(found.to_string().ends_with(r#""message":"m","data":{"x":1}}"#));
        }
    }

    #[test]
    fn questions_and_answers_are_translated() {
        let asked = raw(r#"{"resultType":"input_required","inputRequests":{}}"#);
        for to in [Era::Legacy, Era::Modern] {
            assert_eq!(
                outcome("tools/call", Era::Modern, to, Ok(asked.clone())),
                Ok(asked.clone())
            );
        }
        let page = raw(r#"{"mode":"url","url":"https://x","elicitationId":"7"}"#);
        assert_eq!(question("elicitation/create", &page), page);
        let nameless = raw(r#"{"mode":"url","url":"https://x"}"#);
        let given = question("elicitation/create", &nameless);
        assert!(edit::get_str(&given, "elicitationId").is_some());
        let answer = raw(r#"{"resultType":"complete","action":"accept","content":{"n":1e2}}"#);
        let expected = r#"{"action":"accept","content":{"n":1e2}}"#;
        assert_eq!(input_response(&answer).to_string(), expected);
    }
}
