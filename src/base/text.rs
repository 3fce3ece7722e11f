//! Forms of text for reports and messages.

use super::{is_invisible, visible};

/// Returns the visible characters of a text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut ends_word = false;
    for c in text.chars() {
        if c.is_whitespace() {
            ends_word = !line.is_empty();
        } else if !is_invisible(c) {
            if std::mem::take(&mut ends_word) {
                line.push(' ');
            }
            line.push(c);
        }
    }
    line
}

/// Truncates a text to at most `longest` characters, the last of which is then `…`.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let cut: String = text.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// Returns the words of a command line on one line, each quoted if a shell needs that. Invisible
/// characters are escaped: a command that needs them has to be written by hand.
pub(crate) fn shell_command<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted = |word: W| match shlex::try_quote(word.as_ref()) {
        Ok(quoted) => quoted.into_owned(),
        // A word with a zero byte, which a user cannot type anyway.
        Err(_) => word.as_ref().to_owned(),
    };
    let line = words.into_iter().map(quoted).collect::<Vec<_>>().join(" ");
    visible(&line).replace('\n', "\\u{a}")
}

/// Returns a count with its noun: `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Returns whether two texts are equal but for the case of their characters (simple case folding,
/// by which `ſ` is an `s`, and the Kelvin sign is a `k`).
pub(crate) fn is_same_ignoring_case(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        return one.eq_ignore_ascii_case(other);
    }
    one.chars().map(folded).eq(other.chars().map(folded))
}

/// Returns a character without its case. Cases of several characters stay as they are.
fn folded(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let upper = single(c, c.to_uppercase());
    single(upper, upper.to_lowercase())
}

fn single(c: char, mut cases: impl ExactSizeIterator<Item = char>) -> char {
    match (cases.len(), cases.next()) {
        (1, Some(case)) => case,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_are_quoted_and_visible() {
        assert_eq!(shell_command(["a", "b c", "d'e"]), "a 'b c' \"d'e\"");
        assert_eq!(shell_command(["a\nb", "\u{202e}c"]), "'a\\u{a}b' '\\u{202e}c'");
    }

    #[test]
    fn case_is_ignored_as_by_parsers_of_json() {
        for (one, other) in [
            ("name", "NAME"),
            ("argument\u{17f}", "arguments"),
            ("to\u{212a}en", "token"),
            ("σ", "ς"),
        ] {
            assert!(is_same_ignoring_case(one, other), "{one} {other}");
        }
        for (one, other) in [("name", "names"), ("name", "n\u{e4}me"), ("", "a")] {
            assert!(!is_same_ignoring_case(one, other), "{one} {other}");
        }
    }
}
