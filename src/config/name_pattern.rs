//! Names and globs that match whole names.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wildmatch::WildMatch;

/// A name, or a glob in which `*` stands for any characters and `?` for one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamePattern {
    written: Box<str>,
    /// `None` for a name.
    glob: Option<Glob>,
    has_slash: bool,
}

/// The parts of a glob. Most names differ from it at the start or at the end, and both are parts of
/// the written text, so that telling them apart reads one place of memory.
#[derive(Clone, Debug, PartialEq)]
struct Glob {
    /// Number of bytes before the first wildcard.
    start: usize,
    /// Number of bytes after the last wildcard.
    end: usize,
    /// The part between them; `None` for a single `*`, which matches everything.
    middle: Option<Box<WildMatch>>,
}

impl NamePattern {
    pub(crate) fn new(written: &str) -> Self {
        let has_slash = written.contains('/');
        Self { written: written.into(), glob: Glob::of(written), has_slash }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let Some(Glob { start, end, middle }) = &self.glob else { return *self.written == *name };
        let (start, end) = (&self.written[..*start], &self.written[self.written.len() - *end..]);
        let rest = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        rest.is_some_and(|rest| middle.as_ref().is_none_or(|middle| middle.matches(rest)))
    }

    /// Returns whether a name that begins with `start` can match.
    pub(crate) fn may_begin_with(&self, start: &str) -> bool {
        let before_wildcards = match &self.glob {
            Some(glob) => &self.written[..glob.start],
            None => &self.written,
        };
        before_wildcards.starts_with(start)
            || (self.is_glob() && start.starts_with(before_wildcards))
    }

    /// Returns the pattern as it is written in the config.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns whether the pattern is written with a `/`.
    pub(crate) fn has_slash(&self) -> bool {
        self.has_slash
    }

    /// Returns whether the pattern names more than one name.
    pub(crate) fn is_glob(&self) -> bool {
        self.glob.is_some()
    }
}

impl Glob {
    /// Returns the parts of a glob; `None` for a text without wildcards.
    fn of(written: &str) -> Option<Self> {
        let start = written.find(['*', '?'])?;
        let (before_last, end) = written.rsplit_once(['*', '?'])?;
        let middle = &written[start..=before_last.len()];
        let middle = (middle != "*").then(|| Box::new(WildMatch::new(middle)));
        Some(Self { start, end: end.len(), middle })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

impl Serialize for NamePattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NamePattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|written| Self::new(&written))
    }
}

impl JsonSchema for NamePattern {
    fn schema_name() -> Cow<'static, str> {
        "NamePattern".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pattern_matches_as_its_glob_does(
            pattern in "[ab/*?]{0,8}",
            name in "[ab/]{0,8}",
        ) {
            let expected = WildMatch::new(&pattern).matches(&name);
            prop_assert_eq!(NamePattern::new(&pattern).matches(&name), expected);
        }

        #[test]
        fn name_that_matches_may_begin_as_it_does(
            pattern in "[ab/*?]{0,8}",
            (name, start) in "[ab/]{0,8}".prop_flat_map(|name| {
                let starts = 0..=name.len();
                (Just(name), starts)
            }),
        ) {
            let pattern = NamePattern::new(&pattern);
            let is_possible = pattern.may_begin_with(&name[..start]);
            prop_assert!(!pattern.matches(&name) || is_possible);
        }
    }

    #[test]
    fn pattern_of_another_beginning_is_told_apart() {
        for (pattern, expected) in
            [("a/x", true), ("a/", true), ("a*", true), ("?", true), ("b/*", false), ("a", false)]
        {
            assert_eq!(NamePattern::new(pattern).may_begin_with("a/"), expected, "{pattern}");
        }
    }
}
