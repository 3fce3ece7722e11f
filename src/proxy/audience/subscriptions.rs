//! Resources of servers whose updates hosts have subscribed to.

use std::collections::{HashMap, HashSet};

use crate::{
    base::Lock,
    proxy::{HostId, instance::Instance},
    wire::Id,
};

/// A legacy host, or one stream of a modern host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subscriber {
    pub host: HostId,
    /// The id of the `subscriptions/listen` request.
    pub stream: Option<Id>,
}

/// A resource of an instance: its URI.
pub(in crate::proxy) type WantedResource = (Instance, String);

/// The subscribers of each resource. A resource without a subscriber has no entry.
#[derive(Default)]
pub(in crate::proxy) struct Subscriptions(Lock<HashMap<WantedResource, HashSet<Subscriber>>>);

impl Subscriptions {
    pub(in crate::proxy) fn add(&self, wanted: WantedResource, subscriber: Subscriber) {
        self.0.lock().entry(wanted).or_default().insert(subscriber);
    }

    /// Removes the subscribers for which `is_meant` holds. Returns the resources that have none
    /// left.
    pub(in crate::proxy) fn remove(
        &self,
        is_meant: impl Fn(&WantedResource, &Subscriber) -> bool,
    ) -> Vec<WantedResource> {
        let mut unwanted = Vec::new();
        self.0.lock().retain(|wanted, subscribers| {
            subscribers.retain(|subscriber| !is_meant(wanted, subscriber));
            if subscribers.is_empty() {
                unwanted.push(wanted.clone());
            }
            !subscribers.is_empty()
        });
        unwanted
    }

    pub(in crate::proxy) fn contains(&self, wanted: &WantedResource) -> bool {
        self.0.lock().contains_key(wanted)
    }

    /// Returns the URIs of an instance that have subscribers.
    pub(in crate::proxy) fn uris_of(&self, instance: Instance) -> Vec<String> {
        let all = self.0.lock();
        let of_instance = all.keys().filter(|(of, _)| *of == instance);
        of_instance.map(|(_, uri)| uri.clone()).collect()
    }

    /// Returns the hosts that have subscribed to a resource.
    pub(in crate::proxy) fn hosts_of(&self, wanted: &WantedResource) -> HashSet<HostId> {
        let all = self.0.lock();
        let subscribers = all.get(wanted).into_iter().flatten();
        subscribers.map(|subscriber| subscriber.host).collect()
    }

    /// Gives the subscribers of one version of a server to another. Returns the resources that
    /// moved, under their new keys.
    pub(in crate::proxy) fn move_to(
        &self,
        version: u32,
        is_meant: impl Fn(&Instance) -> bool,
    ) -> Vec<WantedResource> {
        let mut all = self.0.lock();
        let old: Vec<WantedResource> = all.keys().filter(|(of, _)| is_meant(of)).cloned().collect();
        let moved = old.into_iter().filter_map(|key| {
            let subscribers = all.remove(&key)?;
            let (instance, uri) = key;
            let key = (Instance { version, ..instance }, uri);
            all.insert(key.clone(), subscribers);
            Some(key)
        });
        moved.collect()
    }
}
