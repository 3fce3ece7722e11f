//! Pages of lists (2025-11-25 and 2026-07-28, server/utilities/pagination).

use crate::wire::{Raw, edit};

/// Returns the cursor of the next page, if this page is not the last one.
pub(crate) fn next_cursor(page: &Raw) -> Option<Raw> {
    edit::get(page, "nextCursor").filter(|cursor| cursor.as_bytes() != b"null")
}

/// Returns whether a request asks for a later page of a list.
pub(crate) fn has_cursor(params: &Raw) -> bool {
    edit::get(params, "cursor").is_some_and(|cursor| cursor.as_bytes() != b"null")
}
