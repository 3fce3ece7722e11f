//! Data derived from the snapshot in force, once for all hosts that see the same.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use crate::{
    base::Lock,
    catalog::{ServerId, Snapshot},
    config::Surface,
    wire::{Raw, edit},
};

/// The part of a snapshot that a host sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct VisibleServers {
    /// The only server at the host's endpoint.
    pub(super) only: Option<ServerId>,
    /// The servers that the host has loaded, where loads belong to sessions.
    pub(super) loaded: Option<Arc<BTreeSet<ServerId>>>,
}

/// The form of a tool list: the surface, and whether the host shows apps.
type Form = (Surface, bool);

/// A `tools/list` result.
pub(in crate::proxy) struct ToolList {
    /// `{"tools": […]}`
    pub(in crate::proxy) result: Raw,
    /// A hash of the tools' names in their order.
    pub(in crate::proxy) names: u64,
}

/// Maximum number of views of one snapshot that are kept. Sessions with other loads than these
/// have their view derived for each request.
const MAX_VIEWS: usize = 256;
/// Maximum size of a list that is kept, in bytes.
const MAX_LIST_BYTES: usize = 1024 * 1024;

#[derive(Default)]
pub(super) struct Views(Lock<Derived>);

/// The data derived from one snapshot.
#[derive(Default)]
struct Derived {
    from: Option<Arc<Snapshot>>,
    snapshots: HashMap<VisibleServers, Arc<Snapshot>>,
    lists: HashMap<(VisibleServers, Form), Arc<ToolList>>,
}

impl Views {
    /// Returns the part of a snapshot that a host sees.
    pub(super) fn snapshot(&self, whole: &Arc<Snapshot>, seen: VisibleServers) -> Arc<Snapshot> {
        if seen.loaded.is_none() && (seen.only.is_none() || whole.sole.is_some()) {
            return whole.clone();
        }
        if let Some(known) = self.0.lock().of(whole).snapshots.get(&seen) {
            return known.clone();
        }
        let part = Arc::new(part(whole, &seen));
        let mut derived = self.0.lock();
        let derived = derived.of(whole);
        if derived.snapshots.len() < MAX_VIEWS {
            derived.snapshots.insert(seen, part.clone());
        }
        part
    }

    /// Returns the tool list that hosts with this key have of a snapshot; `compose` makes it.
    pub(super) fn tools(
        &self,
        whole: &Arc<Snapshot>,
        key: (VisibleServers, Form),
        compose: impl FnOnce() -> Vec<Raw>,
    ) -> Arc<ToolList> {
        if let Some(known) = self.0.lock().of(whole).lists.get(&key) {
            return known.clone();
        }
        let list = Arc::new(ToolList::of(&compose()));
        let mut derived = self.0.lock();
        let derived = derived.of(whole);
        if derived.lists.len() < MAX_VIEWS && list.result.len() <= MAX_LIST_BYTES {
            derived.lists.insert(key, list.clone());
        }
        list
    }

    pub(super) fn clear(&self) {
        let derived = std::mem::take(&mut *self.0.lock());
        drop(derived);
    }
}

impl Derived {
    /// Returns what has been derived from this snapshot, and drops what was derived from another.
    fn of(&mut self, snapshot: &Arc<Snapshot>) -> &mut Self {
        if !self.from.as_ref().is_some_and(|from| Arc::ptr_eq(from, snapshot)) {
            *self = Self { from: Some(snapshot.clone()), ..Self::default() };
        }
        self
    }
}

impl ToolList {
    fn of(tools: &[Raw]) -> Self {
        let mut names = DefaultHasher::new();
        for tool in tools {
            edit::get_str(tool, "name").hash(&mut names);
        }
        let result = edit::set(&Raw::empty_object(), "tools", &Raw::array(tools));
        Self { result, names: names.finish() }
    }
}

fn part(whole: &Snapshot, seen: &VisibleServers) -> Snapshot {
    let loaded = seen.loaded.as_ref().map(|loaded| whole.seen_by(|of| loaded.contains(&of)));
    match (loaded, seen.only) {
        (Some(loaded), Some(only)) if loaded.sole.is_none() => loaded.only(only),
        (None, Some(only)) if whole.sole.is_none() => whole.only(only),
        (Some(loaded), _) => loaded,
        (None, _) => whole.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(servers: &[usize]) -> VisibleServers {
        let loaded: BTreeSet<ServerId> = servers.iter().copied().map(ServerId).collect();
        VisibleServers { only: None, loaded: Some(Arc::new(loaded)) }
    }

    fn snapshot() -> Arc<Snapshot> {
        Arc::new(Snapshot::new(Arc::default(), &[]))
    }

    #[test]
    fn hosts_that_see_the_same_share_one_view() {
        let (views, whole) = (Views::default(), snapshot());
        let view = |seen| views.snapshot(&whole, seen);
        assert!(Arc::ptr_eq(&view(seen(&[1, 2])), &view(seen(&[2, 1]))));
        assert!(!Arc::ptr_eq(&view(seen(&[1])), &view(seen(&[1, 2]))));
        let all = VisibleServers { only: None, loaded: None };
        assert!(Arc::ptr_eq(&view(all), &whole));
    }

    #[test]
    fn a_list_is_composed_once_for_each_snapshot() {
        let views = Views::default();
        let tool = Raw::encode(&json!({"name": "one"}));
        let composed = std::cell::Cell::new(0);
        let list = |whole: &Arc<Snapshot>| {
            let key = (seen(&[]), (Surface::Direct, false));
            views.tools(whole, key, || {
                composed.set(composed.get() + 1);
                vec![tool.clone()]
            })
        };
        let (before, after) = (snapshot(), snapshot());
        assert_eq!(list(&before).result.to_string(), r#"{"tools":[{"name":"one"}]}"#);
        assert_eq!(list(&before).names, list(&after).names);
        assert_eq!(composed.get(), 2);
    }
}
