//! The names under which tools are listed directly (see `docs/design/names.md`).
//!
//! A name matches `^[A-Za-z0-9_-]{1,48}$`, has the form `<server>__<tool>`, and splits at its first
//! `__`: a server's part contains no `__` and does not end in `_`. A name depends on the config and
//! on its own server only, never on the order of loads.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::base::hex;

/// Maximum length of a directly listed name, in characters. Hosts put a prefix before the name, and
/// many allow 64 characters in all.
pub(crate) const MAX_LISTED_NAME_CHARS: usize = 48;
/// Length of the suffix: `_` and six hexadecimal digits.
const SUFFIX_LENGTH: usize = 7;

/// Returns the directly listed name of each tool of one server, in the order of `tools`.
pub(crate) fn tool_names(server_part: &str, server: &str, tools: &[&str]) -> Vec<String> {
    let plain: Vec<String> =
        tools.iter().map(|tool| format!("{server_part}__{}", mapped(tool))).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *count.entry(name).or_default() += 1;
    }
    let settle = |(name, tool): (&String, &&str)| {
        if count[name.as_str()] > 1 || name.len() > MAX_LISTED_NAME_CHARS {
            hashed(cut(name, MAX_LISTED_NAME_CHARS), &format!("{server}/{tool}"))
        } else {
            name.clone()
        }
    };
    plain.iter().zip(tools).map(settle).collect()
}

/// Returns whether a tool's own name can be listed unchanged.
pub(crate) fn is_listable(name: &str) -> bool {
    (1..=MAX_LISTED_NAME_CHARS).contains(&name.len()) && mapped(name) == name
}

/// Replaces every character that hosts do not allow with `_`.
pub(super) fn mapped(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    name.chars().map(allowed).collect()
}

/// Returns the beginning of `name` (ASCII) that leaves room for a suffix.
pub(super) fn cut(name: &str, max: usize) -> &str {
    &name[..name.len().min(max - SUFFIX_LENGTH)]
}

/// Appends six hexadecimal digits of the hash of `identity` to `name`.
pub(super) fn hashed(name: &str, identity: &str) -> String {
    format!("{name}_{}", hex(&Sha256::digest(identity.as_bytes())[..3]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::name_parts::server_parts, *};

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(server_parts(&["chrome-devtools", "fs"]), ["chrome-devtools", "fs"]);
        assert_eq!(
            tool_names("fs", "fs", &["read_file", "read.file", "x"]),
            ["fs__read_file_4a831e", "fs__read_file_82b94e", "fs__x"]
        );
    }

    proptest! {
        #[test]
        fn every_name_fits_and_is_unique(
            servers in proptest::collection::hash_set("[a-c_\\-. ]{1,40}", 1..5),
            tools in proptest::collection::hash_set(".{1,60}", 1..5),
        ) {
            let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let mut all = std::collections::HashSet::new();
            for (part, server) in server_parts(&servers).iter().zip(&servers) {
                for name in tool_names(part, server, &tools) {
                    prop_assert!((1..=MAX_LISTED_NAME_CHARS).contains(&name.len()), "{name}");
                    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
                    prop_assert!(name.bytes().all(is_allowed));
                    prop_assert_eq!(name.split_once("__").unwrap().0, part.as_str());
                    prop_assert!(all.insert(name));
                }
            }
        }

        #[test]
        fn a_name_does_not_depend_on_other_servers_tools(tool in ".{1,60}", other in "[a-z]{1,9}") {
            let alone = tool_names("s", "s", &[&tool]);
            prop_assert_eq!(&tool_names("s", "s", &[&tool])[0], &alone[0]);
            prop_assert!(!tool_names("t", "t", &[&other]).contains(&alone[0]));
        }
    }
}
