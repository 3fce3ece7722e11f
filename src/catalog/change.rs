//! Tools that are not what they were, each with what it was.

use super::{Digests, Kept, Pins, Record, ServerCatalog, Tool};

/// Definitions of one server's tools as they were; beyond that the oldest are forgotten.
const MOST_FORMER: usize = 500;

/// A tool that is not what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// `None` where it is not known any more.
    pub before: Option<Tool>,
    pub now: Tool,
}

/// The tools that are not what they were: this one, or all.
pub(super) fn changes(kept: &Kept, tool: Option<&str>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for Record { catalog, .. } in &kept.records {
        let mut changed = kept.pins.unverified(&Digests::of(catalog));
        changed.retain(|name| tool.is_none_or(|tool| tool == name));
        for now in catalog.tools.iter().filter(|tool| changed.contains(&tool.name)) {
            if !changes.iter().any(|known| known.now == *now) {
                let before = pinned(kept, &now.name).cloned();
                changes.push(Change { before, now: now.clone() });
            }
        }
    }
    changes
}

/// The tool as it was pinned.
fn pinned<'a>(kept: &'a Kept, name: &str) -> Option<&'a Tool> {
    let listed = kept.records.iter().flat_map(|record| &record.catalog.tools);
    let mut known = kept.former.iter().rev().chain(listed);
    known.find(|tool| tool.name == name && kept.pins.has(tool))
}

/// Keeps those tools of a catalog that the newer one has otherwise or no more.
pub(super) fn keep_former(
    former: &mut Vec<Tool>,
    old: &ServerCatalog,
    new: &ServerCatalog,
    pins: &Pins,
) {
    let is_as_before = |tool: &Tool| new.tools.iter().any(|now| now.raw == tool.raw);
    let kept: Vec<Tool> =
        old.tools.iter().filter(|tool| !is_as_before(tool) && pins.has(tool)).cloned().collect();
    former.retain(|tool| kept.iter().all(|newer| newer.name != tool.name));
    former.extend(kept);
    former.drain(..former.len().saturating_sub(MOST_FORMER));
}
