//! The lists that servers have given for extensions.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    base::Lock,
    catalog::ServerId,
    wire::{Raw, edit},
};

/// Maximum number of lists that are kept.
const MAX_LISTINGS: usize = 256;

/// The lists that servers have given for extensions, by server and method. A list stands for a
/// sleeping server, and tells the server of a URI.
#[derive(Default)]
pub(super) struct ExtensionLists(Lock<ByMethod>);

/// The entries that a server has listed, by server and method.
type ByMethod = HashMap<(ServerId, String), Arc<Vec<Raw>>>;

impl ExtensionLists {
    pub(super) fn get(&self, server: ServerId, method: &str) -> Option<Arc<Vec<Raw>>> {
        self.0.lock().get(&(server, method.to_owned())).cloned()
    }

    /// Keeps a list, unless too many are kept: hosts choose the names of methods.
    pub(super) fn keep(&self, server: ServerId, method: &str, items: &Arc<Vec<Raw>>) {
        let mut listings = self.0.lock();
        let key = (server, method.to_owned());
        if listings.len() < MAX_LISTINGS || listings.contains_key(&key) {
            listings.insert(key, items.clone());
        }
    }

    /// Forgets the lists of servers whose connection is not kept.
    pub(super) fn retain(&self, is_kept: impl Fn(ServerId) -> bool) {
        self.0.lock().retain(|(server, _), _| is_kept(*server));
    }

    /// Returns the servers that have listed a URI, or a skill in whose directory it lies (SEP-2640,
    /// Resource Mapping).
    pub(super) fn having(&self, uri: &str) -> HashSet<ServerId> {
        let listings = self.0.lock();
        let has = |items: &Arc<Vec<Raw>>| {
            items.iter().filter_map(|item| edit::get_str(item, "uri")).any(|listed| {
                let directory = listed.strip_suffix("/SKILL.md").map(|root| uri.strip_prefix(root));
                let is_within = |rest: &str| rest.is_empty() || rest.starts_with('/');
                listed == uri || directory.flatten().is_some_and(is_within)
            })
        };
        listings.iter().filter(|(_, items)| has(items)).map(|((server, _), _)| *server).collect()
    }
}
