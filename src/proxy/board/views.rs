//! Data derived from the snapshot in force, once for all hosts that see the same.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use crate::{
    base::Lock,
    catalog::{Changes, OfferChoice, Snapshot},
    config::Surface,
    wire::{Raw, edit},
};

/// The form of a host's tool list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListForm {
    pub(super) surface: Surface,
    pub(super) shows_apps: bool,
    pub(super) has_cut_results: bool,
}

/// A `tools/list` result.
pub(in crate::proxy) struct ToolList {
    /// `{"tools": […]}`
    pub(in crate::proxy) result: Raw,
    /// A hash of the tools' names in their order.
    pub(in crate::proxy) names: u64,
}

/// The other lists of hosts, for comparison.
#[derive(PartialEq)]
pub(super) struct ItemLists {
    /// The resources, and the resource templates.
    resources: (Vec<Raw>, Vec<Raw>),
    /// The prompts with the names under which they are listed.
    prompts: Vec<(String, Raw)>,
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
    snapshots: HashMap<OfferChoice, Arc<Snapshot>>,
    tool_lists: HashMap<(OfferChoice, ListForm), Arc<ToolList>>,
    item_lists: HashMap<OfferChoice, Arc<ItemLists>>,
}

impl Views {
    /// Returns the part of a snapshot that a host sees.
    pub(super) fn snapshot(&self, whole: &Arc<Snapshot>, choice: OfferChoice) -> Arc<Snapshot> {
        if choice.is_whole(whole) {
            return whole.clone();
        }
        if let Some(known) = self.0.lock().of(whole).snapshots.get(&choice) {
            return known.clone();
        }
        let part = Arc::new(choice.of(whole));
        let mut derived = self.0.lock();
        let derived = derived.of(whole);
        if derived.snapshots.len() < MAX_VIEWS {
            derived.snapshots.insert(choice, part.clone());
        }
        part
    }

    /// Returns the tool list that hosts with this key have of a snapshot; `compose` makes it.
    pub(super) fn tools(
        &self,
        whole: &Arc<Snapshot>,
        key: (OfferChoice, ListForm),
        compose: impl FnOnce() -> Vec<Raw>,
    ) -> Arc<ToolList> {
        if let Some(known) = self.0.lock().of(whole).tool_lists.get(&key) {
            return known.clone();
        }
        let list = Arc::new(ToolList::of(&compose()));
        let mut derived = self.0.lock();
        let derived = derived.of(whole);
        if derived.tool_lists.len() < MAX_VIEWS && list.result.len() <= MAX_LIST_BYTES {
            derived.tool_lists.insert(key, list.clone());
        }
        list
    }

    /// Returns the other lists that hosts with this choice have of a snapshot.
    pub(super) fn items(&self, whole: &Arc<Snapshot>, choice: OfferChoice) -> Arc<ItemLists> {
        if let Some(known) = self.0.lock().of(whole).item_lists.get(&choice) {
            return known.clone();
        }
        let lists = Arc::new(ItemLists::of(&self.snapshot(whole, choice.clone())));
        let mut derived = self.0.lock();
        let derived = derived.of(whole);
        if derived.item_lists.len() < MAX_VIEWS {
            derived.item_lists.insert(choice, lists.clone());
        }
        lists
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

impl ItemLists {
    fn of(snapshot: &Snapshot) -> Self {
        let lists = snapshot.merged_lists();
        let prompts = lists.prompts().into_iter().filter(|prompt| prompt.is_listed);
        let prompts = prompts.map(|prompt| (prompt.name, prompt.prompt.raw.clone())).collect();
        Self { resources: (lists.resources(), lists.templates()), prompts }
    }

    /// Returns which of these lists differ.
    pub(super) fn changes_since(&self, before: &Self) -> Changes {
        Changes {
            tools: false,
            resources: self.resources != before.resources,
            prompts: self.prompts != before.prompts,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::catalog::{OfferId, ServerId};

    fn chosen(servers: &[usize]) -> OfferChoice {
        let offers = servers.iter().copied().map(ServerId).map(OfferId::whole);
        let loaded: BTreeSet<OfferId> = offers.collect();
        OfferChoice { loaded: Some(Arc::new(loaded)), ..OfferChoice::default() }
    }

    fn snapshot() -> Arc<Snapshot> {
        Arc::new(Snapshot::new(Arc::default(), &[]))
    }

    #[test]
    fn hosts_that_see_the_same_share_one_view() {
        let (views, whole) = (Views::default(), snapshot());
        let view = |choice| views.snapshot(&whole, choice);
        assert!(Arc::ptr_eq(&view(chosen(&[1, 2])), &view(chosen(&[2, 1]))));
        assert!(!Arc::ptr_eq(&view(chosen(&[1])), &view(chosen(&[1, 2]))));
        let all = OfferChoice::default();
        assert!(Arc::ptr_eq(&view(all), &whole));
    }

    #[test]
    fn a_list_is_composed_once_for_each_snapshot() {
        let views = Views::default();
        let tool = Raw::encode(&json!({"name": "one"}));
        let composed = std::cell::Cell::new(0);
        let list = |whole: &Arc<Snapshot>| {
            let surface = Surface::Direct;
            let form = ListForm { surface, shows_apps: false, has_cut_results: false };
            let key = (chosen(&[]), form);
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
