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
pub(in crate::proxy) struct Subscriptions(Lock<SubscriptionTable>);

#[derive(Default)]
struct SubscriptionTable {
    claims: HashMap<WantedResource, HashMap<Subscriber, Claim>>,
    /// The claims for which servers are being asked. A claim may be gone already.
    attempts: HashMap<AttemptId, (WantedResource, Subscriber)>,
    last_attempt: u64,
}

/// The subscription of one subscriber to one resource.
#[derive(Default)]
struct Claim {
    /// True after the server has accepted an attempt.
    is_held: bool,
    /// The requests to the server that have no answer yet.
    attempts: Vec<AttemptId>,
}

/// A request of one subscriber for a resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::proxy) struct AttemptId(u64);

impl Subscriptions {
    /// Adds a subscriber before its server is asked, so that another subscriber that leaves
    /// meanwhile is not the last. A later [`succeed`](Self::succeed) or [`fail`](Self::fail) ends
    /// the attempt.
    pub(in crate::proxy) fn begin(
        &self,
        wanted: WantedResource,
        subscriber: Subscriber,
    ) -> AttemptId {
        let mut table = self.0.lock();
        table.last_attempt += 1;
        let attempt = AttemptId(table.last_attempt);
        table.attempts.insert(attempt, (wanted.clone(), subscriber.clone()));
        let claim = table.claims.entry(wanted).or_default().entry(subscriber).or_default();
        claim.attempts.push(attempt);
        attempt
    }

    /// Notes that the server has accepted an attempt. Returns `false` if its subscriber has
    /// unsubscribed meanwhile.
    pub(in crate::proxy) fn succeed(&self, attempt: AttemptId) -> bool {
        let mut table = self.0.lock();
        let Some((wanted, subscriber)) = table.attempts.remove(&attempt) else { return false };
        let claim = table.claims.get_mut(&wanted).and_then(|claims| claims.get_mut(&subscriber));
        claim.is_some_and(|claim| {
            let is_current = claim.end(attempt);
            claim.is_held |= is_current;
            is_current
        })
    }

    /// Removes the subscriber of an attempt that failed, unless the server has accepted another
    /// attempt of it, or may do so. Returns the resource if it has no subscriber left.
    pub(in crate::proxy) fn fail(&self, attempt: AttemptId) -> Option<WantedResource> {
        let mut table = self.0.lock();
        let (wanted, subscriber) = table.attempts.remove(&attempt)?;
        let claims = table.claims.get_mut(&wanted)?;
        let claim = claims.get_mut(&subscriber)?;
        if !claim.end(attempt) || claim.is_held || !claim.attempts.is_empty() {
            return None;
        }
        claims.remove(&subscriber);
        let is_unwanted = claims.is_empty();
        is_unwanted.then(|| table.claims.remove(&wanted)).flatten().map(|_| wanted)
    }

    /// Removes the subscribers for which `is_meant` holds. Returns the resources that have none
    /// left.
    pub(in crate::proxy) fn remove(
        &self,
        is_meant: impl Fn(&WantedResource, &Subscriber) -> bool,
    ) -> Vec<WantedResource> {
        let mut table = self.0.lock();
        let removed = table.claims.extract_if(|wanted, claims| {
            claims.retain(|subscriber, _| !is_meant(wanted, subscriber));
            claims.is_empty()
        });
        removed.map(|(wanted, _)| wanted).collect()
    }

    pub(in crate::proxy) fn contains(&self, wanted: &WantedResource) -> bool {
        self.0.lock().claims.contains_key(wanted)
    }

    /// Returns the URIs of an instance that have subscribers.
    pub(in crate::proxy) fn uris_of(&self, instance: Instance) -> Vec<String> {
        let table = self.0.lock();
        let of_instance = table.claims.keys().filter(|(of, _)| *of == instance);
        of_instance.map(|(_, uri)| uri.clone()).collect()
    }

    /// Returns the hosts that have subscribed to a resource.
    pub(in crate::proxy) fn hosts_of(&self, wanted: &WantedResource) -> HashSet<HostId> {
        let table = self.0.lock();
        let subscribers = table.claims.get(wanted).into_iter().flat_map(HashMap::keys);
        subscribers.map(|subscriber| subscriber.host).collect()
    }

    /// Gives the subscribers of one version of a server to another. Returns the resources that
    /// moved, under their new keys.
    pub(in crate::proxy) fn move_to(
        &self,
        version: u32,
        is_meant: impl Fn(&Instance) -> bool,
    ) -> Vec<WantedResource> {
        let SubscriptionTable { claims, attempts, .. } = &mut *self.0.lock();
        let moved = |instance: Instance| Instance { version, ..instance };
        for ((instance, _), _) in attempts.values_mut().filter(|((of, _), _)| is_meant(of)) {
            *instance = moved(*instance);
        }
        let old: Vec<_> = claims.extract_if(|(of, _), _| is_meant(of)).collect();
        let keys = old.into_iter().map(|((instance, uri), subscribers)| {
            let key = (moved(instance), uri);
            claims.insert(key.clone(), subscribers);
            key
        });
        keys.collect()
    }
}

impl Claim {
    /// Ends an attempt. Returns whether the claim had it.
    fn end(&mut self, attempt: AttemptId) -> bool {
        let before = self.attempts.len();
        self.attempts.retain(|other| *other != attempt);
        self.attempts.len() < before
    }
}
