//! Marks, by which the replicas of a service recognize the ids that each of them has made.

use super::random_token;

/// The begin of all marks. The rest is random.
const PREFIX: &str = "dm-";
/// Number of random bytes. Two processes must not have the same ones.
const RANDOM_BYTES: usize = 9;
/// Number of characters of a mark. Four of base64 encode three bytes.
const MARK_CHARS: usize = PREFIX.len() + RANDOM_BYTES.div_ceil(3) * 4;

/// Returns a mark that no other process has.
pub(crate) fn new_mark() -> String {
    format!("{PREFIX}{}", random_token::<RANDOM_BYTES>())
}

/// Returns whether a text has the form of a mark.
pub(crate) fn is_mark(text: &str) -> bool {
    text.len() == MARK_CHARS && marks_in(text.as_bytes()).next().is_some()
}

/// Returns the texts that look like marks. Other texts may look like one.
pub(crate) fn marks_in(text: &[u8]) -> impl Iterator<Item = &str> {
    let is_mark_char = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    memchr::memmem::find_iter(text, PREFIX).filter_map(move |at| {
        let mark = text.get(at..at + MARK_CHARS)?;
        mark.iter().all(is_mark_char).then(|| str::from_utf8(mark).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_found_in_any_text() {
        let mark = new_mark();
        assert_eq!(mark.len(), MARK_CHARS);
        let text = format!(r#"{{"a": "dm-short", "requestState": "{mark}rest"}}"#);
        assert_eq!(marks_in(text.as_bytes()).collect::<Vec<_>>(), [&*mark]);
        let text = format!("dm-verity-device-x {mark}");
        assert_eq!(marks_in(text.as_bytes()).last(), Some(&*mark), "a false one is before it");
        assert_eq!(marks_in(b"dm- and a text without one").count(), 0);
    }
}
