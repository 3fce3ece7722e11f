//! Text that people and programs read differently: invisible characters, and bytes as digits.

/// Returns whether this is a control character, or one that only changes how other characters look
/// or where they are placed.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character is invisible and useless in text. Joiners and variation selectors,
/// which emoji and many scripts need, do not count, nor do line breaks and tabs.
pub(crate) fn is_hidden(c: char) -> bool {
    is_invisible(c)
        && !matches!(c, '\n' | '\r' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the text with its invisible characters escaped, as in `\u{200b}`, except for line breaks
/// and tabs.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) && c != '\n' && c != '\t' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
