//! Creates the JSON-RPC error objects of dormouse, and reads those of other peers.

use rmcp::model::ErrorCode;
use serde_json::json;

use super::supported_versions;
use crate::wire::{Raw, edit};

/// The code of `HeaderMismatch` (2026-07-28, basic/transports/streamable-http, Server Validation).
pub(crate) const HEADER_MISMATCH: ErrorCode = ErrorCode(-32020);
/// The code of `MissingRequiredClientCapabilityError`.
pub(crate) const MISSING_CAPABILITY: ErrorCode = ErrorCode(-32021);
/// The code that legacy clients expect for an unknown session.
pub(crate) const UNKNOWN_SESSION: ErrorCode = ErrorCode(-32001);
/// The code of a cancelled request in the Language Server Protocol and in MCP's SDKs.
pub(crate) const REQUEST_CANCELLED: ErrorCode = ErrorCode(-32800);

/// Maximum length of an error message, in characters. The message may repeat what a host wrote.
const MAX_MESSAGE_CHARS: usize = 1000;

/// Creates an error object `{code, message}`.
pub(crate) fn error(code: ErrorCode, message: impl AsRef<str>) -> Raw {
    let message = message.as_ref();
    let end = message.char_indices().nth(MAX_MESSAGE_CHARS).map_or(message.len(), |(at, _)| at);
    Raw::encode(&json!({"code": code.0, "message": &message[..end]}))
}

pub(crate) fn method_not_found(method: &str) -> Raw {
    error(ErrorCode::METHOD_NOT_FOUND, format!("method not found: {method}"))
}

pub(crate) fn invalid_params(message: impl AsRef<str>) -> Raw {
    error(ErrorCode::INVALID_PARAMS, message)
}

pub(crate) fn invalid_request(message: impl AsRef<str>) -> Raw {
    error(ErrorCode::INVALID_REQUEST, message)
}

/// Refuses a request whose line is too long, in bytes.
pub(crate) fn oversized(size: usize, limit: usize) -> Raw {
    let message = format!(
        "the message of {size} bytes exceeds maxMessageBytes ({limit}); raise it in the config"
    );
    invalid_request(message)
}

pub(crate) fn parse_error(message: impl AsRef<str>) -> Raw {
    error(ErrorCode::PARSE_ERROR, message)
}

pub(crate) fn internal(message: impl AsRef<str>) -> Raw {
    error(ErrorCode::INTERNAL_ERROR, message)
}

/// Creates an `UnsupportedProtocolVersionError` (2026-07-28, basic/versioning).
pub(crate) fn unsupported_version(requested: &str) -> Raw {
    Raw::encode(&json!({
        "code": ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0,
        "message": format!("unsupported protocol version {requested:?}"),
        "data": {"supported": supported_versions(), "requested": requested},
    }))
}

/// Creates a `MissingRequiredClientCapabilityError` for an extension that a host has to declare
/// (2026-07-28, basic/index, Error Codes).
pub(crate) fn missing_extension(name: &str) -> Raw {
    Raw::encode(&json!({
        "code": MISSING_CAPABILITY.0,
        "message": format!("the client does not declare the extension {name:?}"),
        "data": {"requiredCapabilities": {"extensions": {name: {}}}},
    }))
}

/// Returns the `code` of an error object, or the code of an internal error if `code` is missing or
/// not an integer.
pub(crate) fn code(error: &Raw) -> i64 {
    edit::get(error, "code")
        .and_then(|code| code.read().ok())
        .unwrap_or(i64::from(ErrorCode::INTERNAL_ERROR.0))
}

/// Returns whether an error object has this code.
pub(crate) fn has_code(error: &Raw, known: ErrorCode) -> bool {
    code(error) == i64::from(known.0)
}

/// Returns the `message` of an error object, or the whole object as text if it has no message.
pub(crate) fn message(error: &Raw) -> String {
    edit::get_str(error, "message").unwrap_or_else(|| error.to_string())
}
