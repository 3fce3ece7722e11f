//! Searches of whole snapshots.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use serde_json::json;

use super::{SearchHit, SearchTarget};
use crate::{
    catalog::{Item as _, ServerCatalog, ServerId, Snapshot, Tool, ToolRef},
    config::{self, Environment},
    wire::Raw,
};

fn tool(name: &str, description: &str) -> Tool {
    let definition = json!({"name": name, "description": description, "inputSchema": {}});
    Tool::read(&Raw::encode(&definition)).unwrap()
}

/// Creates servers `a`, `b` and so on with these tools, each a name and a description. A server
/// without tools has never been connected.
fn snapshot(servers: &[&[(&str, &str)]]) -> Snapshot {
    let names = ["a", "b", "c"];
    let entry =
        |name: &&str| (name.to_string(), json!({"description": "Does work", "command": "x"}));
    let entries: serde_json::Map<_, _> = names[..servers.len()].iter().map(entry).collect();
    let text = json!({"mcpServers": entries}).to_string();
    let config = config::parse(&text, Path::new("c.json"), &Environment::default()).unwrap().config;
    let snapshot = Snapshot::new(Arc::default(), &ServerId::number(&config.servers));
    let known = servers.iter().enumerate().filter(|(_, tools)| !tools.is_empty());
    let known = known.map(|(at, tools)| {
        let tools = tools.iter().map(|(name, description)| tool(name, description)).collect();
        let catalog = Arc::new(ServerCatalog { tools, ..ServerCatalog::unknown() });
        let offer = &snapshot.offers[at];
        (offer.id, offer.expose(&catalog, &BTreeSet::new()))
    });
    snapshot.recalled(known.collect())
}

#[track_caller]
fn finds(snapshot: &Snapshot, query: &str, expected: &[&str]) {
    let name = |found: &SearchHit| match found.target {
        SearchTarget::Tool(at) => snapshot.tools().qualified(at),
        SearchTarget::Offer(offer) => snapshot.offers[offer].name.clone(),
    };
    let found: Vec<String> = snapshot.search_words(query, None, 10).iter().map(name).collect();
    assert_eq!(found, expected, "{query}");
}

#[test]
fn a_query_that_is_a_name_finds_its_tool_first() {
    let snapshot = snapshot(&[
        &[("list", "Read a file, read files, read_file, the file that is read")],
        &[("read_file", "")],
    ]);
    finds(&snapshot, "readFile", &["b/read_file", "a/list"]);
    finds(&snapshot, "b read_flie", &["b/read_file", "a/list"]);
    let found = snapshot.search_words("read_file", None, 1);
    assert_eq!(found[0].reasons, ["its name", "name: read", "name: file"]);
}

#[test]
fn words_match_in_other_forms_misspelt_and_by_synonyms() {
    let snapshot = snapshot(&[&[("screenshot", "Takes a picture"), ("remove", "")]]);
    finds(&snapshot, "all the screenshots!", &["a/screenshot"]);
    finds(&snapshot, "one more screnshot please", &["a/screenshot"]);
    finds(&snapshot, "delete it", &["a/remove"]);
    finds(&snapshot, "what is this?", &[]);
    let found = snapshot.search_words("delete it", None, 1);
    assert_eq!(found[0].reasons, ["name: remov"]);
}

#[test]
fn a_brand_in_mixed_case_does_not_match_its_parts() {
    let git: &[(&str, &str)] = &[("commit", "Records changes with git")];
    let gitlab: &[(&str, &str)] = &[("merge", "Merges a request of GitLab")];
    finds(&snapshot(&[git, gitlab]), "GitLab", &["b/merge"]);
    finds(&snapshot(&[git, gitlab]), "gitlab", &["b/merge"]);
    finds(&snapshot(&[git]), "GitLab", &[]);
    finds(&snapshot(&[git, gitlab]), "git", &["a/commit", "b/merge"]);
}

#[test]
fn a_server_with_unknown_tools_is_among_the_results() {
    let works: Vec<(&str, &str)> =
        ["a1", "a2", "a3", "a4", "a5"].map(|name| (name, "Work work work")).into();
    let snapshot = snapshot(&[&works, &[]]);
    let found = snapshot.search_words("work", None, 3);
    assert_eq!(found[2].target, SearchTarget::Offer(1));
}

#[test]
fn an_overlong_query_is_truncated() {
    let snapshot = snapshot(&[&[("one", "Is useful")]]);
    let many: Vec<String> = (0..200_000).map(|number| format!("word{number}")).collect();
    let many = many.join(" ");
    assert!(snapshot.search(&many, None, 10).is_empty());
    assert!(snapshot.search(&"x".repeat(1_000_000), None, 10).is_empty());
}

#[test]
fn equal_results_keep_config_order() {
    let equal: &[(&str, &str)] = &[("one", "Sends mail"), ("two", "Sends mail")];
    let snapshot = snapshot(&[equal, equal]);
    finds(&snapshot, "send", &["a/one", "a/two", "b/one", "b/two"]);
    let within = snapshot.search_words("send", Some(1), 10);
    assert!(within.iter().all(|found| found.target.offer() == 1));
    assert_eq!(within.len(), 2);
    assert_eq!(snapshot.search_words("send", None, 3).len(), 3);
}

#[test]
fn tools_of_a_named_server_come_before_equal_ones() {
    let tools: &[(&str, &str)] = &[("send", "Sends a message")];
    let snapshot = snapshot(&[tools, tools, tools]);
    finds(&snapshot, "send it by B, please", &["b/send", "a/send", "c/send"]);
    finds(&snapshot, "send it abroad", &["a/send", "b/send", "c/send"]);
    let found = snapshot.search_words("send it by B, please", None, 1);
    insta::assert_snapshot!("reason_server_name", found[0].reasons[0]);
}

#[test]
fn a_server_with_unknown_tools_is_found_by_its_config() {
    let snapshot = snapshot(&[&[("one", "Is useful")], &[]]);
    finds(&snapshot, "who works?", &["b", "a/one"]);
    finds(&snapshot, "b", &["b"]);
}

#[test]
#[cfg_attr(not(feature = "meaning"), ignore = "needs the feature `meaning`")]
fn a_tool_is_found_by_its_meaning() {
    let snapshot = snapshot(&[&[("weather", "Forecast of rain"), ("book_flight", "Airlines")]]);
    let found = snapshot.search("travel by plane", None, 1);
    assert_eq!(found[0].target, SearchTarget::Tool(ToolRef { offer: 0, tool: 1 }));
    assert!(found[0].reasons[0].starts_with("meaning: 0."), "{:?}", found[0].reasons);
    assert!(snapshot.search_words("travel by plane", None, 1).is_empty());
    insta::assert_snapshot!("reason_name", snapshot.search("weather", None, 1)[0].reasons[0]);
}
