//! Names that cannot be guessed: of sessions, of questions that wait for their answer, and bearer tokens.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// `BYTES` random bytes, in letters, digits, `-` and `_`.
///
/// # Panics
/// When the system has no random numbers to give.
pub fn random_token<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}
