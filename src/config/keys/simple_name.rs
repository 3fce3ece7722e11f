//! Names of letters, digits, `-` and `_`.

/// Maximum length of such a name, in bytes.
const MAX_BYTES: usize = 64;

pub(super) fn is_simple(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_BYTES && name.chars().all(is_allowed)
}

/// Returns the rule that [`is_simple`] checks, as a message about the name of `what`.
pub(super) fn rule(what: &str) -> String {
    format!("the name of {what} consists of at most {MAX_BYTES} letters, digits, \"-\" and \"_\"")
}
