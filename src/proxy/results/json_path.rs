//! Paths into JSON: a subset of `JSONPath` (RFC 9535) without filters, functions, unions and steps
//! of slices. Names in quotes have simpler escapes.

use std::str::FromStr;

/// Maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 500;
/// Maximum number of segments.
const MAX_SEGMENTS: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonPath(pub(super) Vec<Segment>);

/// One step from a value to values inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// True for `..`: the step is also taken from every value inside.
    pub(super) descends: bool,
    pub(super) selector: Selector,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    Name(String),
    /// An element, counted from 0, or from the end if negative.
    Index(i64),
    /// The elements from one index up to, and not including, another.
    Slice(Option<i64>, Option<i64>),
    All,
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("\"jsonpath\" is longer than {MAX_PATH_BYTES} bytes"));
        }
        let mut parser = Parser { rest: text.trim() };
        let refused = |rest: &str| {
            let at = text.trim_end().len() - rest.len();
            format!(
                "\"jsonpath\" is not valid or not supported at byte {at}. Supported forms: $, \
                    .name, ['name'], [n], [-n], [a:b], [*], .*, ..name, ..[n], ..*"
            )
        };
        if !parser.skip("$") {
            return Err(refused(parser.rest));
        }
        let mut segments = Vec::new();
        while !parser.rest.is_empty() {
            let at = parser.rest;
            match parser.segment() {
                Some(segment) if segments.len() < MAX_SEGMENTS => segments.push(segment),
                Some(_) => return Err(format!("\"jsonpath\" has more than {MAX_SEGMENTS} steps")),
                None => return Err(refused(at)),
            }
        }
        Ok(Self(segments))
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self, token: &str) -> bool {
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn segment(&mut self) -> Option<Segment> {
        let descends = self.skip("..");
        let selector = if self.rest.starts_with('[') {
            self.bracket()?
        } else if descends || self.skip(".") {
            self.name()?
        } else {
            return None;
        };
        Some(Segment { descends, selector })
    }

    /// Parses the name or the `*` after a dot.
    fn name(&mut self) -> Option<Selector> {
        let end = self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len());
        match self.take(end) {
            "" => None,
            "*" => Some(Selector::All),
            name => Some(Selector::Name(name.to_owned())),
        }
    }

    fn bracket(&mut self) -> Option<Selector> {
        self.skip("[");
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|c| ['\'', '"'].contains(c));
        let selector = if let Some(quote) = quote {
            Selector::Name(self.quoted(quote)?)
        } else {
            let end = self.rest.find(']')?;
            unquoted(self.take(end).trim())?
        };
        self.rest = self.rest.trim_start();
        self.skip("]").then_some(selector)
    }

    /// Parses a name in quotes. A backslash takes the next character as it is.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut name = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.rest = &self.rest[at + 1..];
                return Some(name);
            }
            name.push(if c == '\\' { chars.next()?.1 } else { c });
        }
        None
    }

    fn take(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

fn unquoted(text: &str) -> Option<Selector> {
    if text == "*" {
        return Some(Selector::All);
    }
    let bound = |text: &str| match text.trim() {
        "" => Some(None),
        number => number.parse().ok().map(Some),
    };
    match text.split_once(':') {
        Some((from, to)) => Some(Selector::Slice(bound(from)?, bound(to)?)),
        None => text.parse().ok().map(Selector::Index),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(selector: Selector) -> Segment {
        Segment { descends: false, selector }
    }

    #[test]
    fn supported_forms_are_parsed() {
        let name = |name: &str| Selector::Name(name.to_owned());
        let path: JsonPath = r#"$.a['b.\'c'][ 2 ][-1][1:3][:-2][*].*..d..["e"]"#.parse().unwrap();
        let steps = [
            name("a"),
            name("b.'c"),
            Selector::Index(2),
            Selector::Index(-1),
            Selector::Slice(Some(1), Some(3)),
            Selector::Slice(None, Some(-2)),
            Selector::All,
            Selector::All,
        ];
        let mut expected: Vec<Segment> = steps.into_iter().map(step).collect();
        expected
            .extend([name("d"), name("e")].map(|selector| Segment { descends: true, selector }));
        assert_eq!(path, JsonPath(expected));
        assert_eq!("$".parse(), Ok(JsonPath(Vec::new())));
    }

    #[test]
    fn other_forms_are_refused_with_their_place() {
        let refused = |path: &str| path.parse::<JsonPath>().unwrap_err();
        assert!(refused("$.a[?(@.b > 1)]").contains("at byte 3."), "{}", refused("$.a[?(@.b)]"));
        for path in ["", "a", "$a", "$.", "$[", "$['a", "$[1", "$[a]", "$..", "$[1:2:3]", "$]"] {
            assert!(refused(path).contains("Supported forms"), "{path}");
        }
        assert!(refused(&format!("$.{}", "a".repeat(600))).contains("500 bytes"));
        assert!(refused(&format!("${}", ".a".repeat(33))).contains("32 steps"));
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "\\$?[\\PC.\\[\\]'\":*0-9\\\\-]{0,40}") {
            let _ = path.parse::<JsonPath>();
        }

        #[test]
        fn any_name_can_be_quoted(name in "\\PC{0,40}") {
            let quoted = name.replace('\\', "\\\\").replace('\'', "\\'");
            let parsed = format!("$['{quoted}']").parse();
            prop_assert_eq!(parsed, Ok(JsonPath(vec![step(Selector::Name(name))])));
        }
    }
}
