//! What people use of a service, within the limits of their groups.

use std::sync::Arc;

use super::{
    Caller, Fleet, User,
    quotas::{Amount, QuotaExceeded, Usage},
};
use crate::{identity::Person, store::Replicas};

impl Fleet {
    /// Counts what a request of a person spends.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    pub(crate) fn spend(
        &self,
        user: User,
        person: &Person,
        amount: Amount,
    ) -> Result<(), QuotaExceeded> {
        let limits = self.settings().limits_of(&person.groups);
        self.calls.quotas.spend(user, &limits, amount)
    }

    /// Returns the use by one person.
    pub(crate) fn usage_of(&self, user: User) -> Usage {
        self.calls.quotas.of(user)
    }

    /// Has the limits of people divided among replicas.
    pub(crate) fn share_quotas(&self, replicas: Arc<Replicas>) {
        self.calls.quotas.share_with(replicas);
    }
}

/// Counts one call that a script makes for its owner.
///
/// # Errors
/// The limit that is reached.
pub(super) fn spend_call(fleet: &Fleet, caller: &Caller) -> Result<(), QuotaExceeded> {
    let Some(person) = caller.host.person() else { return Ok(()) };
    fleet.spend(caller.host.user(), person, Amount { calls: 1, bytes: 0 })
}
