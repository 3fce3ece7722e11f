//! The parts of names that stand for servers and toolsets (see `docs/design/names.md`).

use std::collections::{HashMap, HashSet};

use super::tool_names::{cut, hashed, mapped};

/// Maximum length of a server's part. It leaves room for a tool's name, and for the prefix
/// `activate_`.
const MAX_SERVER_PART: usize = 32;
/// Maximum length of a toolset's part. It leaves room for the prefix `activate_`.
const MAX_TOOLSET_PART: usize = 39;

/// The parts of names that stand for an offer.
#[derive(Clone, Debug, Default)]
pub struct NameParts {
    /// The part of the server, in the names of its listed tools.
    pub server: String,
    /// The part of the offer, in names of dormouse's own tools.
    pub own: String,
    /// True if tools are listed with the server's own names, without the parts.
    pub is_bare: bool,
}

/// Returns the part that stands for each server in names, in the order of `servers`.
pub(crate) fn server_parts(servers: &[&str]) -> Vec<String> {
    let plain: Vec<String> = servers.iter().map(|server| plain_part(server)).collect();
    distinct(&plain, MAX_SERVER_PART, &HashSet::new(), |at| servers[at].to_owned())
}

/// Returns the part that stands for each toolset of a server in names of dormouse's own tools, in
/// the order of `toolsets`. `servers` has the parts of all servers, which none may equal.
pub(crate) fn toolset_parts(
    server_part: &str,
    server: &str,
    toolsets: &[&str],
    servers: &[String],
) -> Vec<String> {
    let plain: Vec<String> =
        toolsets.iter().map(|toolset| plain_part(&format!("{server_part}_{toolset}"))).collect();
    let taken = servers.iter().map(|part| comparable(part)).collect();
    distinct(&plain, MAX_TOOLSET_PART, &taken, |at| format!("{server}/{}", toolsets[at]))
}

/// Returns the parts, of which those that are too long, that equal another one, or that are taken
/// have a hash of what they stand for.
fn distinct(
    plain: &[String],
    max: usize,
    taken: &HashSet<String>,
    stands_for: impl Fn(usize) -> String,
) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for part in plain {
        *count.entry(comparable(part)).or_default() += 1;
    }
    let settle = |(at, part): (usize, &String)| {
        let comparable = comparable(part);
        let is_shared = count[&comparable] > 1 || taken.contains(&comparable);
        if is_shared || part.len() > max {
            hashed(cut(part, max).trim_end_matches('_'), &stands_for(at))
        } else {
            part.clone()
        }
    };
    plain.iter().enumerate().map(settle).collect()
}

/// Returns a part by which those are recognized that hosts may take for the same.
fn comparable(part: &str) -> String {
    part.replace('-', "_")
}

fn plain_part(name: &str) -> String {
    let mut part = mapped(name);
    while part.contains("__") {
        part = part.replace("__", "_");
    }
    let part = part.trim_end_matches('_');
    if part.is_empty() { "server".to_owned() } else { part.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
