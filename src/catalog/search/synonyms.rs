//! Words of similar meaning that tools of any server use. A request often uses another word than
//! the name of the tool.

use std::collections::HashMap;

use super::words::WordRules;

const SYNONYM_GROUPS: &[&[&str]] = &[
    // Verbs.
    &["create", "make", "add", "new", "generate", "build", "insert"],
    &["delete", "remove", "erase", "drop", "destroy", "discard", "purge", "clear"],
    &["list", "show", "enumerate", "display", "view"],
    &["get", "fetch", "retrieve", "read", "obtain", "load", "download"],
    &["update", "edit", "modify", "change", "alter", "adjust", "replace", "set"],
    &["search", "find", "lookup", "locate", "query", "grep", "seek"],
    &["run", "execute", "launch", "start", "begin", "invoke", "trigger"],
    &["stop", "terminate", "kill", "halt", "end", "cancel", "abort"],
    &["open", "navigate", "visit", "go", "browse"],
    &["click", "press", "tap", "push", "hit"],
    &["type", "fill", "enter", "write", "input"],
    &["write", "save", "store"],
    &["screenshot", "capture", "snapshot"],
    &["move", "rename", "relocate", "transfer"],
    &["copy", "duplicate", "clone"],
    &["wait", "pause", "sleep", "delay"],
    &["close", "quit", "exit", "leave", "shut"],
    &["compare", "diff", "difference", "differ"],
    &["undo", "revert", "reset", "rollback", "restore"],
    &["convert", "translate", "transform"],
    &["check", "verify", "inspect", "examine", "validate", "test"],
    &["send", "post", "submit", "publish"],
    &["upload", "attach"],
    &["scale", "resize", "grow", "shrink"],
    &["allow", "permit", "enable"],
    // Nouns.
    &["directory", "folder", "dir"],
    &["image", "picture", "photo"],
    &["log", "history", "journal"],
    &["error", "failure", "problem", "exception"],
    &["page", "site", "website"],
    &["url", "link", "address"],
    &["repository", "repo"],
    &["configuration", "config", "settings"],
    &["database", "db"],
    &["issue", "ticket", "bug"],
    &["meeting", "appointment", "event"],
    &["email", "mail"],
    &["user", "person", "people", "contact"],
];

/// For each stem the stems that may stand for it.
pub(super) struct Synonyms(HashMap<String, Vec<String>>);

impl Synonyms {
    pub(super) fn new(words: &WordRules) -> Self {
        let mut table: HashMap<String, Vec<String>> = HashMap::new();
        for group in SYNONYM_GROUPS {
            let stems: Vec<String> = group.iter().map(|word| words.stem(word)).collect();
            for stem in &stems {
                let others = stems.iter().filter(|other| *other != stem).cloned();
                table.entry(stem.clone()).or_default().extend(others);
            }
        }
        Self(table)
    }

    pub(super) fn of(&self, stem: &str) -> &[String] {
        self.0.get(stem).map_or(&[], Vec::as_slice)
    }
}
