//! The tool that a script means by its names.

use crate::{
    proxy::{Caller, Fleet},
    wire::Raw,
};

/// Returns the definition of a tool, loaded or only known, as its server wrote it.
pub(super) fn definition_of(fleet: &Fleet, caller: &Caller, name: &str) -> Option<Raw> {
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let at = snapshot.tools().known_tool(name)?;
    Some(snapshot.tools().tool(at).1.raw.clone())
}

/// Returns `server/tool` as dormouse knows them, or as they are written. `mcp.my_server.listIssues`
/// means the tool `list-issues` of `my-server`.
pub(super) fn spelled(fleet: &Fleet, caller: &Caller, server: &str, tool: &str) -> String {
    let snapshot = fleet.board.snapshot_for(&caller.viewer());
    let offers = || snapshot.offers.iter().filter(|offer| offer.is_known());
    let servers = offers().map(|offer| offer.server_name());
    let server = the_only(servers, server).unwrap_or(server);
    let tools = offers().filter(|offer| offer.server_name() == server);
    let tools = tools.filter_map(|offer| offer.exposed());
    let tools = tools.flat_map(|exposed| exposed.catalog.tools.iter().map(|it| it.name.as_str()));
    let tool = the_only(tools, tool).unwrap_or(tool);
    format!("{server}/{tool}")
}

/// Returns the name that is written, or else the only one that is spelled alike.
fn the_only<'a>(names: impl Iterator<Item = &'a str>, written: &str) -> Option<&'a str> {
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
        assert_eq!(the_only(names(), "listIssues"), Some("list-issues"));
        assert_eq!(the_only(names(), "get_issue"), Some("get_issue"));
        assert_eq!(the_only(names(), "getissue"), None);
        assert_eq!(the_only(names(), "y"), None);
    }
}
