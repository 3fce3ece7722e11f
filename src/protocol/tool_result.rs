//! The results of tools.

use crate::wire::{Raw, edit};

/// Returns whether a result reports an error of its tool (MCP, tools, error handling).
pub(crate) fn is_error_result(result: &Raw) -> bool {
    edit::get(result, "isError").is_some_and(|flag| flag.as_bytes() == b"true")
}
