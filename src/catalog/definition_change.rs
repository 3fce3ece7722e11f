//! Tools whose definitions differ from the pinned ones, each with both definitions.

use std::collections::HashSet;

use super::{Digests, Pins, Record, ServerCatalog, StoredServer, Tool};

/// Maximum number of former definitions of one server's tools. The oldest are dropped first.
const MAX_FORMER_DEFINITIONS: usize = 500;

/// A tool whose definition differs from the pinned one.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinitionChange {
    /// The pinned definition; `None` where only its digest is known.
    pub before: Option<Tool>,
    pub now: Tool,
}

/// Returns the tools whose definitions differ from the pinned ones: the named one, or all.
pub(super) fn changes(stored: &StoredServer, tool: Option<&str>) -> Vec<DefinitionChange> {
    let mut found: Vec<DefinitionChange> = Vec::new();
    let mut seen = HashSet::new();
    for Record { catalog, .. } in &stored.records {
        let mut unverified = stored.pins.unverified(&Digests::of(catalog));
        unverified.retain(|name| tool.is_none_or(|tool| tool == name));
        for now in catalog.tools.iter().filter(|tool| unverified.contains(&tool.name)) {
            if seen.insert(now.raw.as_bytes()) {
                let before = pinned(stored, &now.name).cloned();
                found.push(DefinitionChange { before, now: now.clone() });
            }
        }
    }
    found
}

/// Returns the pinned definition of the tool, if it is known.
fn pinned<'a>(stored: &'a StoredServer, name: &str) -> Option<&'a Tool> {
    let listed = stored.records.iter().flat_map(|record| &record.catalog.tools);
    let mut known = stored.former.iter().rev().chain(listed);
    known.find(|tool| tool.name == name && stored.pins.has(tool))
}

/// Adds to `former` the pinned tools of `old` that `new` defines differently or lacks.
pub(super) fn keep_former(
    former: &mut Vec<Tool>,
    old: &ServerCatalog,
    new: &ServerCatalog,
    pins: &Pins,
) {
    let same: HashSet<&[u8]> = new.tools.iter().map(|tool| tool.raw.as_bytes()).collect();
    let is_kept = |tool: &&Tool| !same.contains(tool.raw.as_bytes()) && pins.has(tool);
    let kept: Vec<Tool> = old.tools.iter().filter(is_kept).cloned().collect();
    let names: HashSet<&str> = kept.iter().map(|tool| tool.name.as_str()).collect();
    former.retain(|tool| !names.contains(tool.name.as_str()));
    drop(names);
    former.extend(kept);
    former.drain(..former.len().saturating_sub(MAX_FORMER_DEFINITIONS));
}
