//! The definition that each tool had when it was first seen. It reveals tools that change after
//! their users have approved them (the "rug pull" of MCP's security best practices).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{ServerCatalog, Tool};
use crate::{base::hex, config::Pin, wire::edit};

/// Maximum number of pinned tools of one server. Beyond it the pins are incomplete.
const MAX_PINNED_TOOLS: usize = 10_000;

/// The members of a definition that influence how a model uses the tool.
const PINNED_MEMBERS: [&str; 5] =
    ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// Maximum number of approved definitions of one tool. A server may define a tool differently for
/// hosts that declare other capabilities.
const MAX_PINS_PER_TOOL: usize = 8;

/// The digests of each tool's definition as it was first seen and as it was approved later, by the
/// tool's name. Removed tools keep their digests: a tool that returns must match its old
/// definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins {
    digests: BTreeMap<String, Vec<String>>,
    /// `true` if tools were seen that are not recorded here. An unrecorded tool is then not
    /// necessarily new.
    #[serde(skip)]
    is_incomplete: bool,
}

/// The names of a catalog's tools, each with the digest of its definition.
pub struct Digests(Vec<(String, String)>);

impl Digests {
    pub fn of(catalog: &ServerCatalog) -> Self {
        Self(catalog.tools.iter().map(|tool| (tool.name.clone(), digest(tool))).collect())
    }
}

impl Pins {
    /// Returns the pins of a server whose tools were seen earlier, but whose digests are lost.
    pub fn lost() -> Self {
        Self { digests: BTreeMap::new(), is_incomplete: true }
    }

    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    pub(super) fn with_incomplete(self, is_incomplete: bool) -> Self {
        Self { is_incomplete, ..self }
    }

    /// Returns the names of the tools whose definitions differ from the pinned ones.
    pub fn changed(&self, now: &Digests) -> BTreeSet<String> {
        self.named(now, |pinned, digest| pinned.is_some_and(|pinned| !pinned.contains(digest)))
    }

    /// Returns the names of the tools that the user should check. With `pin: block` these include
    /// the tools that cannot be compared.
    pub fn suspicious(&self, pin: Pin, now: &Digests) -> BTreeSet<String> {
        match pin {
            Pin::Block => self.unverified(now),
            Pin::Warn | Pin::Off => self.changed(now),
        }
    }

    /// Returns the names of the tools whose definitions differ from the pinned ones, or cannot be
    /// compared.
    pub fn unverified(&self, now: &Digests) -> BTreeSet<String> {
        self.named(now, |pinned, digest| match pinned {
            Some(pinned) => !pinned.contains(digest),
            None => self.is_incomplete,
        })
    }

    fn named(
        &self,
        now: &Digests,
        is_wanted: impl Fn(Option<&Vec<String>>, &String) -> bool,
    ) -> BTreeSet<String> {
        let wanted =
            now.0.iter().filter(|(name, digest)| is_wanted(self.digests.get(name), digest));
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// Records the tools that have not been seen before. While the pins are incomplete, no
    /// unrecorded tool counts as new.
    pub fn see(&mut self, now: &Digests) {
        for (name, digest) in &now.0 {
            if self.is_incomplete {
                return;
            }
            if self.digests.contains_key(name) {
                continue;
            }
            if self.digests.len() >= MAX_PINNED_TOOLS {
                self.is_incomplete = true;
            } else {
                self.digests.insert(name.clone(), vec![digest.clone()]);
            }
        }
    }

    /// Adds the digests of `others` for tools that are not recorded here.
    pub fn add_missing(&mut self, others: &Self) {
        for (name, digests) in &others.digests {
            self.digests.entry(name.clone()).or_insert_with(|| digests.clone());
        }
    }

    /// Returns whether the tool's definition is the first seen one or an approved one.
    pub fn has(&self, tool: &Tool) -> bool {
        self.digests.get(&tool.name).is_some_and(|pinned| pinned.contains(&digest(tool)))
    }

    /// Approves the current definition of a tool.
    pub fn approve(&mut self, tool: &Tool) {
        let pinned = self.digests.entry(tool.name.clone()).or_default();
        if pinned.len() >= MAX_PINS_PER_TOOL {
            pinned.remove(0);
        }
        pinned.push(digest(tool));
    }

    /// Marks the pins as complete, unless there are too many, after all tools were approved. Later,
    /// an unrecorded tool counts as new.
    pub fn approve_all(&mut self) {
        self.is_incomplete = self.digests.len() > MAX_PINNED_TOOLS;
    }
}

/// Returns the pinned members of a definition as text, with sorted keys, for comparison by the
/// user.
pub(crate) fn watched_part(tool: &Tool) -> String {
    let mut shown = String::new();
    for member in PINNED_MEMBERS {
        let Some(raw) = edit::get(&tool.raw, member) else { continue };
        let text = raw.read::<Value>().map_or_else(
            |_| raw.to_string(),
            |mut value| {
                value.sort_all_objects();
                format!("{value:#}")
            },
        );
        shown.push_str(&format!("{member}: {text}\n"));
    }
    shown
}

/// Returns a digest that is equal for equivalent definitions: white space and the order of members
/// do not matter.
fn digest(tool: &Tool) -> String {
    let mut sha = Sha256::new();
    for member in PINNED_MEMBERS {
        sha.update(member);
        sha.update([0]);
        if let Some(value) = edit::get(&tool.raw, member) {
            match value.read::<Value>() {
                Ok(mut value) => {
                    value.sort_all_objects();
                    sha.update(value.to_string());
                }
                // The text is valid JSON that no `Value` can hold.
                Err(_) => sha.update(value.as_bytes()),
            }
        }
        sha.update([0]);
    }
    hex(&sha.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::Item as _, wire::Raw};

    fn catalog(tools: &[&str]) -> ServerCatalog {
        let tools = tools.iter().map(|tool| Raw::parse((*tool).to_owned()).unwrap());
        ServerCatalog {
            tools: tools.map(|raw| Tool::read(&raw).unwrap()).collect(),
            ..ServerCatalog::unknown()
        }
    }

    #[test]
    fn a_changed_tool_is_reported_until_approved() {
        let first = catalog(&[r#"{"name":"a","description":"x","inputSchema":{"a":1,"b":2}}"#]);
        let mut pins = Pins::default();
        pins.see(&Digests::of(&first));
        let same = catalog(&[
            r#"{"description":"x","inputSchema":{"b":2, "a":1},"name":"a","_meta":{"t":7}}"#,
            r#"{"name":"new","inputSchema":{}}"#,
        ]);
        assert!(pins.changed(&Digests::of(&same)).is_empty());
        pins.see(&Digests::of(&catalog(&[])));
        let other = catalog(&[r#"{"name":"a","description":"y","inputSchema":{"a":1,"b":2}}"#]);
        pins.see(&Digests::of(&other));
        assert_eq!(Vec::from_iter(pins.changed(&Digests::of(&other))), ["a"]);
        pins.approve(&other.tools[0]);
        assert!(pins.changed(&Digests::of(&other)).is_empty());
        assert!(pins.changed(&Digests::of(&first)).is_empty(), "what was once approved stays so");
    }

    #[test]
    fn tools_without_pins_are_unverified_until_approved() {
        let first = catalog(&[r#"{"name":"a","description":"x","inputSchema":{}}"#]);
        let now = Digests::of(&first);
        let mut pins = Pins::lost();
        pins.see(&now);
        assert!(pins.changed(&now).is_empty());
        assert_eq!(Vec::from_iter(pins.unverified(&now)), ["a"]);
        pins.approve(&first.tools[0]);
        pins.approve_all();
        assert!(pins.unverified(&now).is_empty());
    }

    #[test]
    fn tools_above_the_limit_are_unverified() {
        let tools: Vec<String> = (0..=MAX_PINNED_TOOLS)
            .map(|n| format!(r#"{{"name":"t{n}","inputSchema":{{}}}}"#))
            .collect();
        let all = catalog(&tools.iter().map(String::as_str).collect::<Vec<_>>());
        let mut pins = Pins::default();
        pins.see(&Digests::of(&all));
        assert!(pins.is_incomplete());
        assert_eq!(
            Vec::from_iter(pins.unverified(&Digests::of(&all))),
            [format!("t{MAX_PINNED_TOOLS}")]
        );
    }
}
