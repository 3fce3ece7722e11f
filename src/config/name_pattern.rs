//! Names and globs that match whole names.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wildmatch::WildMatch;

/// A name, or a glob in which `*` stands for any characters and `?` for one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamePattern {
    written: String,
    /// The characters before the first wildcard. Most names of other servers differ in them, and
    /// are told apart without the glob.
    prefix: String,
    /// The characters after the last wildcard, for the same reason; empty for a name.
    suffix: String,
    /// The part from the first wildcard on; `None` for a name.
    rest: Option<WildMatch>,
}

impl NamePattern {
    pub(crate) fn new(written: &str) -> Self {
        let start = written.find(['*', '?']);
        let prefix = written[..start.unwrap_or(written.len())].to_owned();
        let end = written.rfind(['*', '?']);
        let suffix = end.map_or_else(String::new, |end| written[end + 1..].to_owned());
        let rest = start.map(|start| WildMatch::new(&written[start..]));
        Self { written: written.to_owned(), prefix, suffix, rest }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match (name.strip_prefix(self.prefix.as_str()), &self.rest) {
            (None, _) => false,
            (Some(rest), None) => rest.is_empty(),
            (Some(rest), Some(glob)) => rest.ends_with(&self.suffix) && glob.matches(rest),
        }
    }

    /// Returns whether a name that begins with `start` can match.
    pub(crate) fn may_begin_with(&self, start: &str) -> bool {
        self.prefix.starts_with(start) || (self.is_glob() && start.starts_with(&self.prefix))
    }

    /// Returns the pattern as it is written in the config.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns whether the pattern names more than one name.
    pub(crate) fn is_glob(&self) -> bool {
        self.rest.is_some()
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
