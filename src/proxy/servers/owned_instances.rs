//! The instances that belong to one host or one person.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::Instant};

use crate::{
    base::Lock,
    proxy::{
        Principal,
        instance::{Instance, InstanceOwner},
    },
    upstream::{Phase, Upstream},
};

/// Time after its last use at which the instance of a person ends. A later call connects another.
const UNUSED_TIMEOUT: Duration = Duration::from_hours(1);

/// Minimum interval between two searches for unused instances.
const MIN_REST: Duration = Duration::from_mins(1);
/// As [`UNUSED_TIMEOUT`], for one whose person has not logged in.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);

/// The instances with owners. Those of a host end with it, and those of a person after a time
/// without use.
#[derive(Default)]
pub(in crate::proxy) struct OwnedInstances {
    all: Lock<HashMap<Instance, OwnedInstance>>,
    /// Tells the reaper of a new instance.
    added: Arc<Notify>,
}

struct OwnedInstance {
    upstream: Upstream,
    last_used: Instant,
}

impl OwnedInstances {
    /// Returns the handle of an instance for a use, which `start` makes at the first one.
    pub(super) fn using(&self, instance: Instance, start: impl FnOnce() -> Upstream) -> Upstream {
        let last_used = Instant::now();
        let mut all = self.all.lock();
        let new = || {
            self.added.notify_one();
            OwnedInstance { upstream: start(), last_used }
        };
        let owned = all.entry(instance).or_insert_with(new);
        owned.last_used = last_used;
        owned.upstream.clone()
    }

    pub(super) fn find(&self, instance: Instance) -> Option<Upstream> {
        Some(self.all.lock().get(&instance)?.upstream.clone())
    }

    pub(super) fn all(&self) -> Vec<(Instance, Upstream)> {
        let all = self.all.lock();
        all.iter().map(|(instance, owned)| (*instance, owned.upstream.clone())).collect()
    }

    /// Stops the instances of a host.
    pub(in crate::proxy) fn stop_those_of(&self, host: Principal) {
        self.all.lock().retain(|instance, owned| {
            let is_theirs = instance.is_of_host(host);
            if is_theirs {
                owned.upstream.stop();
            }
            !is_theirs
        });
    }

    /// Retires the instances that are not kept: they finish what is in flight.
    pub(in crate::proxy) fn retire(&self, is_kept: impl Fn(Instance) -> bool) {
        self.retire_where(|instance, _| !is_kept(instance));
    }

    /// Returns the notice of new instances, for the reaper.
    pub(in crate::proxy) fn added(&self) -> Arc<Notify> {
        self.added.clone()
    }

    /// Retires the instances of people that were not used for some time, unless `is_needed` holds
    /// for them. Returns the time at which the next one may be due.
    pub(in crate::proxy) fn retire_unused(
        &self,
        is_needed: impl Fn(Instance) -> bool,
    ) -> Option<Instant> {
        let now = Instant::now();
        let is_of_person = |it: &Instance| matches!(it.owner, Some(InstanceOwner::Person(_)));
        self.retire_where(|instance, owned| {
            let is_logged_out = owned.upstream.status().phase == Phase::AwaitingLogin;
            let timeout = if is_logged_out { LOGIN_TIMEOUT } else { UNUSED_TIMEOUT };
            let is_unused = now.duration_since(owned.last_used) >= timeout;
            let is_due = is_of_person(&instance) && is_unused;
            if is_due && is_needed(instance) {
                owned.last_used = now;
                return false;
            }
            is_due
        });
        let all = self.all.lock();
        let of_people = all.iter().filter(|(instance, _)| is_of_person(instance));
        of_people
            .map(|(_, owned)| owned.last_used + LOGIN_TIMEOUT)
            .min()
            .map(|due| due.max(now + MIN_REST))
    }

    fn retire_where(&self, is_retired: impl Fn(Instance, &mut OwnedInstance) -> bool) {
        self.all.lock().retain(|instance, owned| {
            let is_retired = is_retired(*instance, owned);
            if is_retired {
                owned.upstream.retire();
            }
            !is_retired
        });
    }
}
