//! The names of HTTP headers.

/// Returns whether these headers contain the authorization.
pub(crate) fn has_authorization<'a>(mut names: impl Iterator<Item = &'a String>) -> bool {
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// Returns whether a text can be a header's name, which is a token (RFC 9110 section 5.1).
pub(super) fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}
