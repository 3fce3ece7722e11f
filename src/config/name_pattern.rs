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
    /// The part from the first wildcard on; `None` for a name.
    rest: Option<WildMatch>,
}

impl NamePattern {
    pub(crate) fn new(written: &str) -> Self {
        let start = written.find(['*', '?']);
        let prefix = written[..start.unwrap_or(written.len())].to_owned();
        let rest = start.map(|start| WildMatch::new(&written[start..]));
        Self { written: written.to_owned(), prefix, rest }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match (name.strip_prefix(self.prefix.as_str()), &self.rest) {
            (None, _) => false,
            (Some(rest), None) => rest.is_empty(),
            (Some(rest), Some(glob)) => glob.matches(rest),
        }
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
    }
}
