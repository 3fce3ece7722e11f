//! JSON values and texts of others as users read them: decoded, with invisible characters made
//! visible, and bounded.

use crate::{
    base::is_invisible,
    wire::{Raw, edit},
};

/// The lengths to which the strings of a value are cut, in characters. The first one counts with
/// which the whole fits.
const STRING_LIMITS: [usize; 6] = [2000, 500, 200, 100, 50, 20];

/// Maximum depth of nesting that is shown.
const MAX_DEPTH: usize = 16;

/// The depths of nesting that are shown of values that are too long with the shortest strings.
const SHORT_DEPTHS: [usize; 3] = [3, 2, 1];

/// Maximum number of values that are read of one value.
const MAX_VALUES: usize = 5000;

/// Number of characters that are read at each end of a string.
const MAX_END_CHARS: usize = 4000;

/// Number of characters that are read of all strings of a value; of those after them only the ends
/// are read.
const MAX_CHARS: usize = 100_000;
const MIN_END_CHARS: usize = 20;

/// Maximum length of a number.
const MAX_LITERAL_CHARS: usize = 40;

/// Maximum number of spaces in a row. More of them could move the rest of a text out of sight.
const MAX_SPACES: usize = 8;

/// Returns a value in about `limit` characters on one line. Long strings are cut in the middle; if
/// that is not enough, values deep inside are left out, and at last the members that do not fit.
/// Each cut says how much it hides.
pub(super) fn shown_value(value: &Raw, limit: usize) -> String {
    let value =
        Shown::read(value, MAX_DEPTH, &mut ReadRoom { values: MAX_VALUES, chars: MAX_CHARS });
    for string_limit in STRING_LIMITS {
        let shown = value.write(string_limit, MAX_DEPTH);
        if shown.chars().count() <= limit {
            return shown;
        }
    }
    let [.., shortest] = STRING_LIMITS;
    let shallower = SHORT_DEPTHS.into_iter().map(|depth| value.write(shortest, depth));
    let mut fitting = shallower.filter(|shown| shown.chars().count() <= limit);
    fitting.next().unwrap_or_else(|| value.write_begin(shortest, limit))
}

/// Returns a text in quotes, in about `limit` characters.
pub(super) fn shown_text(text: &str, limit: usize) -> String {
    format!("\"{}\"", Text::read(text, &mut { MAX_CHARS }).cut(limit))
}

/// The numbers of values and characters that may still be read.
struct ReadRoom {
    values: usize,
    chars: usize,
}

/// A JSON value whose strings are decoded.
enum Shown {
    Text(Text),
    /// A number, a word, or a note on what is left out.
    Literal(String),
    Object(Vec<(Text, Shown)>),
    Array(Vec<Shown>),
}

impl Shown {
    /// `depth` is the number of levels that may still be read.
    fn read(value: &Raw, depth: usize, left: &mut ReadRoom) -> Self {
        let is_nested = matches!(value.as_bytes().first(), Some(b'{' | b'['));
        if left.values == 0 || is_nested && depth == 0 {
            return Self::Literal(format!("[… {} bytes …]", value.len()));
        }
        left.values -= 1;
        if let Some(text) = value.lossy_text() {
            return Self::Text(Text::read(&text, &mut left.chars));
        }
        if value.is_object() {
            let members = edit::entries(value).into_iter();
            let read = |(key, value): (String, Raw)| {
                (Text::read(&key, &mut left.chars), Self::read(&value, depth - 1, left))
            };
            return Self::Object(members.map(read).collect());
        }
        let Some(elements) = edit::elements(value) else {
            let literal = Text::read(&value.to_string(), &mut left.chars);
            return Self::Literal(literal.cut(MAX_LITERAL_CHARS));
        };
        Self::Array(elements.iter().map(|element| Self::read(element, depth - 1, left)).collect())
    }

    /// Writes the value. Strings are cut to this length, and objects and arrays at this depth are
    /// left out.
    fn write(&self, limit: usize, depth: usize) -> String {
        let ([begin, end], what, count) = match self {
            Self::Text(text) => return format!("\"{}\"", text.cut(limit)),
            Self::Literal(literal) => return literal.clone(),
            Self::Object(members) => (["{", "}"], "members", members.len()),
            Self::Array(elements) => (["[", "]"], "elements", elements.len()),
        };
        if depth == 0 && count > 0 {
            return format!("{begin}… {count} {what} …{end}");
        }
        let inside: Vec<String> = self.parts(limit, depth.saturating_sub(1)).collect();
        format!("{begin}{}{end}", inside.join(","))
    }

    /// Writes the members of an object or the elements of an array.
    fn parts(&self, limit: usize, depth: usize) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Self::Text(_) | Self::Literal(_) => Box::new(std::iter::empty()),
            Self::Object(members) => Box::new(members.iter().map(move |(key, value)| {
                format!("\"{}\":{}", key.cut(limit), value.write(limit, depth))
            })),
            Self::Array(elements) => {
                Box::new(elements.iter().map(move |element| element.write(limit, depth)))
            }
        }
    }

    /// Writes the first members or elements, in about `limit` characters, and the number of the
    /// others.
    fn write_begin(&self, string_limit: usize, limit: usize) -> String {
        let parts: Vec<String> = self.parts(string_limit, 0).collect();
        let mut room = limit;
        let fits = |part: &&String| {
            let left = room.checked_sub(part.chars().count() + 1);
            room = left.unwrap_or(0);
            left.is_some()
        };
        let shown = parts.iter().take_while(fits).count();
        let hidden = parts.len() - shown;
        format!("{} [… {hidden} more are NOT SHOWN …]", parts[..shown].join(","))
    }
}

/// A decoded string, of which very long ones have lost their middle.
struct Text {
    begin: Vec<Piece>,
    /// Number of characters between the two ends.
    skipped: usize,
    end: Vec<Piece>,
}

/// A part of a string that is shown whole or not at all.
struct Piece {
    shown: String,
    /// Number of characters that the piece stands for.
    count: usize,
}

impl Piece {
    fn of(c: char) -> Self {
        Self { shown: c.to_string(), count: 1 }
    }
}

impl Text {
    /// `left` is the number of characters that may still be read.
    fn read(text: &str, left: &mut usize) -> Self {
        let count = text.chars().count();
        let at_end = (*left / 2).clamp(MIN_END_CHARS, MAX_END_CHARS);
        *left = left.saturating_sub(count.min(2 * at_end));
        let Some(skipped) = count.checked_sub(2 * at_end).filter(|skipped| *skipped > 0) else {
            return Self { begin: pieces(text.chars()), skipped: 0, end: Vec::new() };
        };
        let begin = pieces(text.chars().take(at_end));
        Self { begin, skipped, end: pieces(text.chars().skip(at_end + skipped)) }
    }

    /// Returns the text in at most `limit` characters and the note on a cut.
    fn cut(&self, limit: usize) -> String {
        let skipped = (self.skipped > 0).then(|| skipped(self.skipped));
        let pieces = self.begin.iter().chain(&skipped).chain(&self.end);
        cut(&pieces.collect::<Vec<_>>(), limit)
    }
}

/// Returns the note on skipped characters.
fn skipped(count: usize) -> Piece {
    Piece { shown: format!("[… {count} characters …]"), count }
}

/// Returns the pieces at both ends that fit into `limit` characters, with a note on the others.
fn cut(pieces: &[&Piece], limit: usize) -> String {
    let length = |piece: &Piece| piece.shown.chars().count();
    if pieces.iter().map(|piece| length(piece)).sum::<usize>() <= limit {
        return pieces.iter().map(|piece| piece.shown.as_str()).collect();
    }
    let fitting = |pieces: &mut dyn Iterator<Item = &&Piece>| {
        let mut room = limit / 2;
        let fits = |piece: &&&Piece| {
            let left = room.checked_sub(length(piece));
            room = left.unwrap_or(0);
            left.is_some()
        };
        pieces.take_while(fits).count()
    };
    let begin = fitting(&mut pieces.iter());
    let end = pieces.len() - fitting(&mut pieces[begin..].iter().rev());
    let hidden = pieces[begin..end].iter().map(|piece| piece.count).sum();
    let note = &skipped(hidden);
    let shown = pieces[..begin].iter().chain([&note]).chain(&pieces[end..]);
    shown.map(|piece| piece.shown.as_str()).collect()
}

/// Returns the characters of a text: those that a user would not see or would misread as escapes,
/// and many spaces in a row as a note.
fn pieces(text: impl Iterator<Item = char>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = text.peekable();
    while let Some(c) = text.next() {
        let mut spaces = usize::from(c == ' ');
        while spaces > 0 && text.next_if_eq(&' ').is_some() {
            spaces += 1;
        }
        if spaces > MAX_SPACES {
            pieces.push(Piece { shown: format!(" [… {spaces} spaces …] "), count: spaces });
        } else if spaces > 0 {
            pieces.extend((0..spaces).map(|_| Piece::of(' ')));
        } else {
            pieces.push(Piece { shown: shown_char(c), count: 1 });
        }
    }
    pieces
}

fn shown_char(c: char) -> String {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => c.escape_default().to_string(),
        _ if is_invisible(c) || c.is_whitespace() => c.escape_unicode().to_string(),
        _ => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        shown_value(&Raw::parse(text.to_owned()).unwrap(), 4000)
    }

    #[test]
    fn values_are_decoded_and_compact() {
        let value = r#"{ "\u0061": "\u0072m\n\"x\"", "b" : [1.10, null, {}], "c": "\ud800é" }"#;
        assert_eq!(shown(value), "{\"a\":\"rm\\n\\\"x\\\"\",\"b\":[1.10,null,{}],\"c\":\"���é\"}");
        assert_eq!(shown("\"a\u{202e}\u{a0}b\u{3000}\""), "\"a\\u{202e}\\u{a0}b\\u{3000}\"");
    }

    #[test]
    fn padding_hides_nothing() {
        let spaces = " ".repeat(3000);
        let value = shown(&format!(r#"{{"a":"ls{spaces}; rm -rf ~"{spaces},"b":"x"}}"#));
        assert_eq!(value, r#"{"a":"ls [… 3000 spaces …] ; rm -rf ~","b":"x"}"#);
        let escapes = r"\u0061".repeat(50_000);
        let value = shown(&format!(r#"{{"x":"{escapes}","command":"rm {escapes} -rf ~"}}"#));
        assert!(
            value.ends_with(r#"aa -rf ~"}"#) && value.contains(r#","command":"rm aa"#),
            "{value}"
        );
        assert!(value.contains("[… 49500 characters …]"), "{value}");
    }

    #[test]
    fn cuts_are_made_after_escaping_and_never_in_an_escape() {
        let text = "\u{200b}".repeat(3000);
        let shown = shown_text(&text, 100);
        let begin = r"\u{200b}".repeat(6);
        assert_eq!(shown, format!("\"{begin}[… 2988 characters …]{begin}\""));
        assert_eq!(shown_text("a\"b", 100), r#""a\"b""#);
    }

    #[test]
    fn many_long_strings_are_read_at_their_ends_only() {
        let strings = format!("[{}\"end\"]", format!("\"{}\",", "x".repeat(8000)).repeat(4000));
        let value = Raw::parse(strings).unwrap();
        let mut left = ReadRoom { values: MAX_VALUES, chars: MAX_CHARS };
        let Shown::Array(read) = Shown::read(&value, MAX_DEPTH, &mut left) else { panic!() };
        let pieces = |read: &Shown| match read {
            Shown::Text(text) => text.begin.len() + text.end.len(),
            _ => 0,
        };
        assert_eq!(read.len(), 4001);
        assert!(read.iter().map(pieces).sum::<usize>() < MAX_CHARS + 4001 * 2 * MIN_END_CHARS);
    }

    #[test]
    fn every_key_is_shown_and_the_whole_is_bounded() {
        let member = |number: usize| format!(r#""key{number}":"{}""#, "x".repeat(5000));
        let object = |count: usize| {
            let members: Vec<String> = (0..count).map(member).collect();
            shown(&format!("{{{}}}", members.join(",")))
        };
        let some = object(50);
        assert!((0..50).all(|number| some.contains(&format!("\"key{number}\":"))), "{some}");
        let rows = format!("[{}]", vec![r#"{"a":{"b":[1,2]}}"#; 900].join(","));
        let batch = shown(&format!(r#"{{"rows":{rows},"command":"rm -rf ~","none":[]}}"#));
        assert_eq!(batch, r#"{"rows":[… 900 elements …],"command":"rm -rf ~","none":[]}"#);
        let many = object(1000);
        let keys = many.matches("\"key").count();
        let hidden = format!(" [… {} more are NOT SHOWN …]", 1000 - keys);
        assert!(keys > 50 && many.ends_with(&hidden), "{many}");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for long in [some, object(1000), shown(&deep), shown(&"9".repeat(100_000))] {
            assert!(long.chars().count() < 4100, "{}", long.len());
        }
    }
}
