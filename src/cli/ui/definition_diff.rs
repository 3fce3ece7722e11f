//! The change of a tool's definition, line by line.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use indexmap::IndexMap;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use crate::catalog::{DefinitionChange, watched_part};

/// Maximum number of lines of one definition. A browser can show no more at once.
const MAX_LINES: usize = 5000;

/// A tool whose definition differs from the one that was first seen or approved.
#[derive(Serialize)]
pub(super) struct DefinitionDiff {
    tool: String,
    /// The digest of all present definitions of the tool, which an approval names.
    definition: String,
    /// One for each present definition: processes in different directories may have different ones.
    variants: Vec<DefinitionVariant>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DefinitionVariant {
    /// Without the earlier definition, all lines are the present one.
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
    /// Returns one for each changed tool. `changes`: all changes of a server.
    pub(super) fn of_all(changes: &[DefinitionChange]) -> Vec<Self> {
        let mut tools: IndexMap<&str, Vec<DefinitionVariant>> = IndexMap::new();
        for change in changes {
            tools.entry(&change.now.name).or_default().push(DefinitionVariant::new(change));
        }
        let diff = |(tool, variants): (&str, _)| Self {
            tool: tool.to_owned(),
            definition: digest(tool, changes),
            variants,
        };
        tools.into_iter().map(diff).collect()
    }
}

impl DefinitionVariant {
    fn new(change: &DefinitionChange) -> Self {
        let now = watched_part(&change.now);
        let before = change.before.as_ref().map(watched_part);
        let lines = match &before {
            Some(before) => lines_between(before, &now),
            None => now.lines().map(|line| DiffLine::new(LineChange::Same, line)).collect(),
        };
        Self { is_earlier_known: before.is_some(), lines: bounded(lines) }
    }
}

impl DiffLine {
    fn new(change: LineChange, text: &str) -> Self {
        Self { change, text: text.to_owned() }
    }
}

/// Returns the first lines, with the number of the others.
fn bounded(mut lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let others = lines.len().saturating_sub(MAX_LINES);
    if others > 0 {
        lines.truncate(MAX_LINES);
        let note = format!("… {others} more lines: run `dormouse approve --dry-run`");
        lines.push(DiffLine::new(LineChange::Same, &note));
    }
    lines
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

/// Returns the digest of all present definitions of a tool.
pub(super) fn digest(tool: &str, changes: &[DefinitionChange]) -> String {
    let mut digest = Sha256::new();
    for change in changes.iter().filter(|change| change.now.name == tool) {
        digest.update(change.now.raw.as_bytes());
        digest.update([0]);
    }
    URL_SAFE_NO_PAD.encode(digest.finalize())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        catalog::{Item as _, Tool},
        wire::Raw,
    };

    fn tool(name: &str, description: &str) -> Tool {
        let definition = json!({"name": name, "description": description, "inputSchema": {}});
        Tool::read(&Raw::encode(&definition)).unwrap()
    }

    #[test]
    fn all_definitions_of_a_tool_are_approved_together() {
        let change = |name: &str, now: &str| DefinitionChange {
            before: Some(tool(name, "first")),
            now: tool(name, now),
        };
        let changes = [change("a", "one"), change("b", "one"), change("a", "two")];
        let diffs = DefinitionDiff::of_all(&changes);
        let variants: Vec<_> =
            diffs.iter().map(|diff| (diff.tool.as_str(), diff.variants.len())).collect();
        assert_eq!(variants, [("a", 2), ("b", 1)]);
        assert_ne!(digest("a", &changes), digest("a", &changes[..1]));
    }
}
