//! Forms of text for reports and messages.

use super::is_invisible;

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

/// Returns the words of a command line, each quoted if a shell needs that.
pub(crate) fn shell_command<'a>(words: impl IntoIterator<Item = &'a str> + Clone) -> String {
    // `shlex` refuses a word with a zero byte, which a user cannot type anyway.
    shlex::try_join(words.clone())
        .unwrap_or_else(|_| words.into_iter().collect::<Vec<_>>().join(" "))
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
