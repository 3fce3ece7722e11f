//! The use of a service by its people.

use std::{collections::HashMap, sync::Arc};

use crate::{
    base::Lock,
    config::UsageLimits,
    proxy::{Usage, UsageAccount, User},
    store::Replicas,
};

/// Maximum number of people whose use is known; beyond it, those of earlier days are forgotten.
const MAX_PEOPLE: usize = 100_000;

/// The use by all people.
pub(super) struct Quotas {
    by_user: Lock<HashMap<User, UsageAccount>>,
    /// The replicas that divide the limits among them, of which this process is one.
    replicas: Option<Arc<Replicas>>,
}

impl Quotas {
    pub(super) fn new(replicas: Option<Arc<Replicas>>) -> Self {
        Self { by_user: Lock::default(), replicas }
    }

    /// Returns the use by a person whose token has these limits.
    pub(super) fn usage(&self, user: User, limits: UsageLimits) -> Usage {
        let replicas = self.replicas.as_ref().map_or(1, |replicas| replicas.count());
        let mut all = self.by_user.lock();
        if all.len() >= MAX_PEOPLE && !all.contains_key(&user) {
            all.retain(|_, account| !account.is_over());
        }
        all.entry(user).or_default().with_limits(limits, replicas)
    }
}
