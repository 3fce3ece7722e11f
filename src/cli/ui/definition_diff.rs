//! The change of a tool's definition, line by line.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use crate::catalog::{DefinitionChange, watched_part};

/// A tool whose definition differs from the one that was first seen or approved.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DefinitionDiff {
    tool: String,
    /// The digest of all present definitions of the tool, which an approval names.
    definition: String,
    /// True if the earlier definition is known; without it, all lines are the present one.
    is_earlier_known: bool,
    lines: Vec<DiffLine>,
}

#[derive(Serialize)]
struct DiffLine {
    change: LineChange,
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum LineChange {
    Same,
    Removed,
    Added,
}

impl DefinitionDiff {
    /// `changes`: all changed tools of the server.
    pub(super) fn new(change: &DefinitionChange, changes: &[DefinitionChange]) -> Self {
        let now = watched_part(&change.now);
        let before = change.before.as_ref().map(watched_part);
        let lines = match &before {
            Some(before) => lines_between(before, &now),
            None => now.lines().map(|line| DiffLine::new(LineChange::Same, line)).collect(),
        };
        Self {
            tool: change.now.name.clone(),
            definition: digest(&change.now.name, changes),
            is_earlier_known: before.is_some(),
            lines,
        }
    }
}

impl DiffLine {
    fn new(change: LineChange, text: &str) -> Self {
        Self { change, text: text.to_owned() }
    }
}

fn lines_between(before: &str, now: &str) -> Vec<DiffLine> {
    let difference = TextDiff::from_lines(before, now);
    let lines = difference.iter_all_changes().map(|line| {
        let change = match line.tag() {
            ChangeTag::Equal => LineChange::Same,
            ChangeTag::Delete => LineChange::Removed,
            ChangeTag::Insert => LineChange::Added,
        };
        DiffLine::new(change, line.value().trim_end_matches('\n'))
    });
    lines.collect()
}

/// Returns the digest of all present definitions of a tool: processes in different directories may
/// have different ones.
pub(super) fn digest(tool: &str, changes: &[DefinitionChange]) -> String {
    let mut digest = Sha256::new();
    for change in changes.iter().filter(|change| change.now.name == tool) {
        digest.update(change.now.raw.as_bytes());
        digest.update([0]);
    }
    URL_SAFE_NO_PAD.encode(digest.finalize())
}
