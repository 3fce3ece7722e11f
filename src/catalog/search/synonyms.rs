//! Verbs that mean much the same. A request says one of them, a tool's name another.

use std::collections::HashMap;

use super::words::Words;

const GROUPS: &[&[&str]] = &[
    &["create", "make", "add", "new", "generate", "build", "insert"],
    &["delete", "remove", "erase", "drop", "destroy", "discard", "purge"],
    &["list", "show", "enumerate", "display", "view"],
    &["get", "fetch", "retrieve", "read", "obtain", "load"],
    &["update", "edit", "modify", "change", "alter", "adjust", "replace"],
    &["search", "find", "lookup", "locate", "query", "grep", "seek"],
    &["run", "execute", "launch", "start", "invoke", "evaluate"],
    &["stop", "terminate", "kill", "halt", "end", "cancel", "abort"],
    &["open", "navigate", "visit", "go", "browse"],
    &["click", "press", "tap", "push", "hit"],
    &["type", "fill", "enter", "write", "input"],
    &["screenshot", "capture", "snapshot", "picture", "photo"],
    &["move", "rename", "relocate", "transfer"],
    &["copy", "duplicate", "clone"],
    &["wait", "pause", "sleep", "delay"],
    &["close", "quit", "exit", "leave"],
    &["compare", "diff", "difference", "differ"],
    &["undo", "revert", "reset", "rollback", "restore", "unstage"],
    &["convert", "translate", "transform"],
    &["check", "verify", "inspect", "examine", "validate"],
    &["send", "post", "submit", "publish"],
    &["upload", "attach"],
    &["directory", "folder"],
    &["log", "history", "journal"],
    &["error", "failure", "problem", "exception"],
    &["scale", "resize", "grow", "shrink"],
];

/// The stems that stand for a stem as well.
pub(super) struct Synonyms(HashMap<String, Vec<String>>);

impl Synonyms {
    pub(super) fn new(words: &Words) -> Self {
        let mut table: HashMap<String, Vec<String>> = HashMap::new();
        for group in GROUPS {
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
