//! Reads the id of an oversized line without storing the line.

use super::{Id, Raw};

/// The known facts about a line that was too long to store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineSummary {
    /// The top-level `id`, wherever in the line it is.
    pub id: Option<Id>,
    /// True if the message has a `method`, and is therefore a request or notification.
    pub is_call: bool,
    /// The length of the line, in bytes.
    pub size: usize,
}

/// Maximum length of a key or id that is stored, in bytes. Dormouse assigns no longer ids.
const MAX_TOKEN_BYTES: usize = 256;

/// A scanner over the top level of one JSON object that arrives in pieces.
#[derive(Default)]
pub(super) struct Skimmer {
    size: usize,
    depth: usize,
    scan_state: ScanState,
    /// The text of the current top-level token, up to one byte more than [`MAX_TOKEN_BYTES`].
    token: Vec<u8>,
    key: Vec<u8>,
    after_colon: bool,
    id: Option<Id>,
    is_call: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ScanState {
    #[default]
    Structure,
    String,
    /// After a backslash in a string.
    Escape,
}

impl Skimmer {
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.size += piece.len();
        let mut rest = piece;
        while let Some((&byte, tail)) = rest.split_first() {
            self.feed_byte(byte);
            rest = tail;
            if self.scan_state == ScanState::String && self.depth > 1 {
                // The bulk of a huge line is a string at a deeper level, so the scanner skips to
                // the next byte that may end it.
                let skip = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                rest = &rest[skip..];
            }
        }
    }

    pub(super) fn finish(self) -> LineSummary {
        LineSummary { id: self.id, is_call: self.is_call, size: self.size }
    }

    fn feed_byte(&mut self, byte: u8) {
        if self.scan_state != ScanState::Structure {
            self.keep_byte(byte);
            self.scan_state = match (self.scan_state, byte) {
                (ScanState::String, b'\\') => ScanState::Escape,
                (ScanState::String, b'"') => ScanState::Structure,
                _ => ScanState::String,
            };
            return;
        }
        match byte {
            b'"' => {
                self.keep_byte(byte);
                self.scan_state = ScanState::String;
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_value(),
            b':' if self.depth == 1 => {
                self.key = std::mem::take(&mut self.token);
                self.after_colon = true;
            }
            b' ' | b'\t' | b'\r' => {}
            _ => self.keep_byte(byte),
        }
    }

    /// Keeps one byte more than the maximum, which tells that the token is too long.
    fn keep_byte(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        let value = std::mem::take(&mut self.token);
        if std::mem::take(&mut self.after_colon) {
            match self.key.as_slice() {
                // The beginning of a long number would be another id.
                b"\"id\"" if value.len() > MAX_TOKEN_BYTES => self.id = None,
                b"\"id\"" => self.id = Raw::parse(value).ok().and_then(Id::new),
                b"\"method\"" => self.is_call = true,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skim(text: &str, step: usize) -> LineSummary {
        let mut skimmer = Skimmer::default();
        text.as_bytes().chunks(step).for_each(|piece| skimmer.feed(piece));
        skimmer.finish()
    }

    #[test]
    fn finds_the_top_level_id_at_any_position() {
        for text in [
            r#"{"jsonrpc":"2.0","id":42,"result":{"id":1,"t":"\"id\":7, \\"}}"#,
            r#"{"result":{"a":[{"id":1}],"t":"x\",\"id\":9"},"jsonrpc":"2.0", "id" : 42 }"#,
        ] {
            for step in [1, 2, 3, 7, 1000] {
                let found = skim(text, step);
                assert_eq!(found.id, Some(Id::from(42)), "{text} by {step}");
                assert!(!found.is_call);
                assert_eq!(found.size, text.len());
            }
        }
    }

    #[test]
    fn distinguishes_calls_from_responses() {
        assert!(skim(r#"{"id":"x","params":{},"method":"m"}"#, 5).is_call);
        assert_eq!(skim("garbage", 3).id, None);
    }
}
