//! Unguessable identifiers: for sessions, for questions that await their answer, and as bearer
//! tokens.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Returns `BYTES` random bytes, encoded as letters, digits, `-` and `_` (URL-safe base64).
///
/// # Panics
/// Panics if the system cannot provide random numbers.
pub(crate) fn random_token<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}
