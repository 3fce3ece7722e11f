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

/// Returns a count with its noun: `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
