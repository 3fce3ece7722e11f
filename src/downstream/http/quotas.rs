//! What the people of a service use, by their users.

use std::{collections::HashMap, sync::Arc};

use crate::{
    base::Lock,
    config::UsageLimits,
    proxy::{Usage, User},
    store::Replicas,
};

/// Maximum number of people whose use is known; beyond it, those of earlier days are forgotten.
const MAX_PEOPLE: usize = 100_000;

/// The use by all people.
pub(super) struct Quotas {
    by_user: Lock<HashMap<User, Usage>>,
    /// The replicas that divide the limits among them, of which this process is one.
    replicas: Option<Arc<Replicas>>,
}

impl Quotas {
    pub(super) fn new(replicas: Option<Arc<Replicas>>) -> Self {
        Self { by_user: Lock::default(), replicas }
    }

    /// Returns the use by a person, for whom these limits hold from now on.
    pub(super) fn usage(&self, user: User, limits: UsageLimits) -> Usage {
        let usage = {
            let mut all = self.by_user.lock();
            if all.len() >= MAX_PEOPLE && !all.contains_key(&user) {
                all.retain(|_, usage| usage.is_of_today());
            }
            all.entry(user).or_default().clone()
        };
        let replicas = self.replicas.as_ref().map_or(1, |replicas| replicas.count());
        usage.set_limits(limits, replicas);
        usage
    }
}
