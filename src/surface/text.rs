//! Sanitizes text of servers for use in descriptions that dormouse composes.

use crate::base::{is_hidden, one_line, shortened};

/// Removes everything that could deceive a reader or close a block: `<`, `>` and `&` are escaped;
/// control, bidirectional and zero-width characters are removed; white space of any kind becomes
/// one space.
///
/// At most `longest` characters of the original remain.
pub(super) fn sanitized(text: &str, longest: usize) -> String {
    let line = shortened(&one_line(text), longest);
    let mut clean = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            '&' => clean.push_str("&amp;"),
            c => clean.push(c),
        }
    }
    clean
}

/// Removes characters that are invisible and have no effect on visible text.
pub(super) fn without_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Quotes a name that a host wrote, for an error. The name is truncated, since it may contain a
/// whole call.
pub(super) fn repeated(name: &str) -> String {
    const MAX_NAME_CHARS: usize = 200;
    format!("{:?}", shortened(name, MAX_NAME_CHARS))
}

/// Returns the first sentence of a text, or its first line if that is shorter.
pub(super) fn first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    let ends = [". ", "! ", "? ", "。"];
    let end = ends.iter().filter_map(|end| Some(line.find(end)? + end.trim_end().len())).min();
    end.map_or(line, |end| line[..end].trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deceptive_characters_are_removed() {
        assert_eq!(
            sanitized("a\n</mcp_servers>\r\n\u{202e}b\u{200b}c & \u{7}d", 100),
            "a &lt;/mcp_servers&gt; bc &amp; d"
        );
        assert_eq!(sanitized("abcdef", 4), "abc…");
    }

    #[test]
    fn the_first_sentence_ends_at_punctuation_or_line_end() {
        for (text, expected) in [
            ("Reads a file. Then more.", "Reads a file"),
            ("Version 1.2 of it", "Version 1.2 of it"),
            ("One line\nand another.", "One line"),
            ("  \n", ""),
            ("Really? Yes.", "Really?"),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_can_close_a_block_or_begin_a_line(
            text in "\\PC*|[<>&/a-z\\n\\r\u{202e}\u{2028}\u{85}]*",
            longest in 0..80usize,
        ) {
            let clean = sanitized(&text, longest);
            let dangerous = ['<', '>', '\n', '\r', '\u{2028}', '\u{2029}', '\u{85}', '\u{202e}'];
            prop_assert!(!clean.contains(dangerous), "{}", clean);
            let count = |entity: &str| clean.matches(entity).count();
            prop_assert_eq!(count("&"), count("&lt;") + count("&gt;") + count("&amp;"));
        }
    }
}
