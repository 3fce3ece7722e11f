//! Names that scripts write in another spelling: `listIssues` for `list-issues`.

/// Returns the name that is written, or else the only one that is spelled alike.
pub(crate) fn find_spelled_alike<'a>(
    names: impl Iterator<Item = &'a str>,
    written: &str,
) -> Option<&'a str> {
    let like = plain(written);
    let mut found: Option<&str> = None;
    for name in names {
        if name == written {
            return Some(name);
        }
        if plain(name) == like {
            if found.is_some_and(|found| found != name) {
                return None;
            }
            found = Some(name);
        }
    }
    found
}

/// Returns a name without what spellings differ in.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_any_spelling_unless_two_are_alike() {
        let names = || ["list-issues", "get_issue", "getIssue", "x"].into_iter();
        assert_eq!(find_spelled_alike(names(), "listIssues"), Some("list-issues"));
        assert_eq!(find_spelled_alike(names(), "get_issue"), Some("get_issue"));
        assert_eq!(find_spelled_alike(names(), "getissue"), None);
        assert_eq!(find_spelled_alike(names(), "y"), None);
    }
}
