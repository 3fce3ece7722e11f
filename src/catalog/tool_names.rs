//! The names under which tools are listed directly (see `docs/design/names.md`).
//!
//! A name matches `^[A-Za-z0-9_-]{1,48}$`, has the form `<server>__<tool>`, and splits at its first
//! `__`: a server's part contains no `__` and does not end in `_`. A name depends on the config and
//! on its own server only, never on the order of loads.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use crate::base::hex;

/// Maximum length of a directly listed name, in characters. Hosts put a prefix before the name, and
/// many allow 64 characters in all.
pub(crate) const MAX_LISTED_NAME_CHARS: usize = 48;
/// Maximum length of a server's part. It leaves room for a tool's name, and for the prefix
/// `activate_`.
const MAX_SERVER_PART: usize = 32;
/// Maximum length of a toolset's part. It leaves room for the prefix `activate_`.
const MAX_TOOLSET_PART: usize = 39;
/// Length of the suffix: `_` and six hexadecimal digits.
const SUFFIX_LENGTH: usize = 7;

/// The parts of names that stand for an offer.
#[derive(Clone, Debug, Default)]
pub struct NameParts {
    /// The part of the server, in the names of its listed tools.
    pub server: String,
    /// The part of the offer, in names of dormouse's own tools.
    pub own: String,
}

/// Returns the part that stands for each server in names, in the order of `servers`.
pub(crate) fn server_parts(servers: &[&str]) -> Vec<String> {
    let plain: Vec<String> = servers.iter().map(|server| server_part(server)).collect();
    let mut count: HashMap<String, usize> = HashMap::new();
    for part in &plain {
        *count.entry(part.replace('-', "_")).or_default() += 1;
    }
    let settle = |(part, server): (&String, &&str)| {
        let is_shared = count[&part.replace('-', "_")] > 1;
        if is_shared || part.len() > MAX_SERVER_PART {
            hashed(cut(part, MAX_SERVER_PART).trim_end_matches('_'), server)
        } else {
            part.clone()
        }
    };
    plain.iter().zip(servers).map(settle).collect()
}

fn server_part(server: &str) -> String {
    let mut part = mapped(server);
    while part.contains("__") {
        part = part.replace("__", "_");
    }
    let part = part.trim_end_matches('_');
    if part.is_empty() { "server".to_owned() } else { part.to_owned() }
}

/// Returns the part that stands for each toolset of a server in names of dormouse's own tools, in
/// the order of `toolsets`. `servers` has the parts of all servers, which none may equal.
pub(crate) fn toolset_parts(
    server_part: &str,
    server: &str,
    toolsets: &[&str],
    servers: &[String],
) -> Vec<String> {
    let comparable = |part: &str| part.replace('-', "_");
    let plain: Vec<String> = toolsets
        .iter()
        .map(|toolset| self::server_part(&format!("{server_part}_{toolset}")))
        .collect();
    let of_servers: HashSet<String> = servers.iter().map(|part| comparable(part)).collect();
    let mut count: HashMap<String, usize> = HashMap::new();
    for part in &plain {
        *count.entry(comparable(part)).or_default() += 1;
    }
    let settle = |(part, toolset): (&String, &&str)| {
        let comparable = comparable(part);
        let is_shared = count[&comparable] > 1 || of_servers.contains(&comparable);
        if is_shared || part.len() > MAX_TOOLSET_PART {
            hashed(
                cut(part, MAX_TOOLSET_PART).trim_end_matches('_'),
                &format!("{server}/{toolset}"),
            )
        } else {
            part.clone()
        }
    };
    plain.iter().zip(toolsets).map(settle).collect()
}

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
fn mapped(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    name.chars().map(allowed).collect()
}

/// Returns the beginning of `name` (ASCII) that leaves room for a suffix.
fn cut(name: &str, max: usize) -> &str {
    &name[..name.len().min(max - SUFFIX_LENGTH)]
}

/// Appends six hexadecimal digits of the hash of `identity` to `name`.
fn hashed(name: &str, identity: &str) -> String {
    format!("{name}_{}", hex(&Sha256::digest(identity.as_bytes())[..3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(server_parts(&["chrome-devtools", "fs"]), ["chrome-devtools", "fs"]);
        assert_eq!(
            tool_names("fs", "fs", &["read_file", "read.file", "x"]),
            ["fs__read_file_4a831e", "fs__read_file_82b94e", "fs__x"]
        );
    }

    #[test]
    fn servers_that_differ_only_in_dashes_get_a_suffix() {
        let parts = server_parts(&["a-b", "a_b", "a.b", "c"]);
        assert!(parts[0].starts_with("a-b_") && parts[1].starts_with("a_b_"), "{parts:?}");
        assert_ne!(parts[1], parts[2]);
        assert_eq!(parts[3], "c");
        assert_ne!(server_parts(&["日本", "中国"])[0], server_parts(&["日本", "中国"])[1]);
    }

    #[test]
    fn toolset_never_has_the_part_of_a_server_or_of_another_toolset() {
        let parts = |toolsets: &[&str], servers: &[&str]| {
            let servers = server_parts(servers);
            toolset_parts(&servers[0], "github", toolsets, &servers)
        };
        assert_eq!(parts(&["issues", "pulls"], &["github"]), ["github_issues", "github_pulls"]);
        let shared = parts(&["issues", "a-b", "a_b", "a__b"], &["github", "github-issues"]);
        assert!(shared.iter().all(|part| part.len() > "github_issues".len()), "{shared:?}");
        assert_eq!(shared.iter().collect::<HashSet<_>>().len(), 4, "{shared:?}");
        let long = parts(&[&"x".repeat(60)], &["github"]);
        assert_eq!(long[0].len(), MAX_TOOLSET_PART);
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
