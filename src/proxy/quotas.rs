//! Limits of people: calls of tools per minute, and bytes per day.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{Caller, Fleet, User};
use crate::{
    base::{Lock, since_1970},
    config::UsageLimits,
    identity::Person,
    store::Replicas,
};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// Maximum number of people whose use is known; beyond it, those of earlier days are forgotten.
const MAX_PEOPLE: usize = 100_000;

/// The use by all people.
#[derive(Default)]
pub(crate) struct Quotas {
    by_user: Lock<HashMap<User, Arc<Lock<Usage>>>>,
    /// The replicas that divide the limits among them.
    replicas: OnceLock<Arc<Replicas>>,
}

/// The use by one person. Minutes and days are those of UTC.
#[derive(Debug, Default)]
struct Usage {
    calls: Spent,
    bytes: Spent,
}

/// An amount within one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    /// The number of the period since 1970.
    period: u64,
    amount: usize,
}

/// A limit that is reached.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit of {limit} is reached; try again in {} s", .wait.as_secs())]
pub(crate) struct QuotaExceeded {
    /// The limit in words, such as `60 calls per minute`.
    limit: String,
    /// The time until the next period begins.
    pub(crate) wait: Duration,
}

/// Counts the call of a script.
///
/// # Errors
/// The limit of the script's owner that is reached.
pub(super) fn spend_call(fleet: &Fleet, caller: &Caller) -> Result<(), QuotaExceeded> {
    let Some(person) = caller.host.person() else { return Ok(()) };
    fleet.spend(caller.host.user(), person, (1, 0))
}

impl Fleet {
    /// Counts calls of a person, and bytes of a request.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    pub(crate) fn spend(
        &self,
        user: User,
        person: &Person,
        amount: (usize, usize),
    ) -> Result<(), QuotaExceeded> {
        let limits = self.settings().limits_of(&person.groups);
        let quotas = &self.calls.quotas;
        let replicas = quotas.replicas.get().map_or(1, |replicas| replicas.count());
        quotas.spend(user, &limits, replicas, amount)
    }

    /// Counts bytes of an answer to a person.
    pub(crate) fn count_answered(&self, user: User, bytes: usize) {
        self.calls.quotas.count_bytes(user, bytes);
    }

    /// Has limits of people divided among replicas.
    pub(crate) fn share_quotas(&self, replicas: Arc<Replicas>) {
        // There is one front that serves people.
        let _ = self.calls.quotas.replicas.set(replicas);
    }
}

impl Quotas {
    /// Counts calls and the bytes of their request. `replicas`: their number.
    fn spend(
        &self,
        user: User,
        limits: &UsageLimits,
        replicas: usize,
        (calls, bytes): (usize, usize),
    ) -> Result<(), QuotaExceeded> {
        let now = since_1970();
        let usage = self.of(user, now);
        let mut usage = usage.lock();
        let calls_allowed = limits.calls_per_minute.map(|limit| limit.div_ceil(replicas));
        let bytes_allowed = limits.bytes_per_day.map(|limit| limit.div_ceil(replicas));
        usage.calls.begin(now, MINUTE);
        usage.bytes.begin(now, DAY);
        let exceeded = |limit: String, period: Duration| {
            let into = now.as_secs() % period.as_secs();
            QuotaExceeded { limit, wait: Duration::from_secs(period.as_secs() - into) }
        };
        if calls > 0 && calls_allowed.is_some_and(|allowed| usage.calls.amount + calls > allowed) {
            let limit = limits.calls_per_minute.unwrap_or_default();
            return Err(exceeded(format!("{limit} calls per minute"), MINUTE));
        }
        if bytes_allowed.is_some_and(|allowed| usage.bytes.amount + bytes > allowed) {
            let limit = limits.bytes_per_day.unwrap_or_default();
            return Err(exceeded(format!("{limit} bytes per day"), DAY));
        }
        usage.calls.amount += calls;
        usage.bytes.amount += bytes;
        Ok(())
    }

    fn count_bytes(&self, user: User, bytes: usize) {
        let now = since_1970();
        let usage = self.of(user, now);
        let mut usage = usage.lock();
        usage.bytes.begin(now, DAY);
        usage.bytes.amount += bytes;
    }

    fn of(&self, user: User, now: Duration) -> Arc<Lock<Usage>> {
        let mut all = self.by_user.lock();
        if all.len() >= MAX_PEOPLE && !all.contains_key(&user) {
            let today = now.as_secs() / DAY.as_secs();
            all.retain(|_, usage| usage.lock().bytes.period == today);
        }
        all.entry(user).or_default().clone()
    }
}

impl Spent {
    /// Forgets what was spent in an earlier period.
    fn begin(&mut self, now: Duration, length: Duration) {
        let period = now.as_secs() / length.as_secs();
        if self.period != period {
            *self = Self { period, amount: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(calls: usize, bytes: usize) -> UsageLimits {
        let limit = |number| Some(number).filter(|number| *number > 0);
        UsageLimits { calls_per_minute: limit(calls), bytes_per_day: limit(bytes) }
    }

    #[test]
    fn each_person_has_limits_of_calls_and_bytes() {
        let quotas = Quotas::default();
        let (ada, eve) = (User(Some([1; 32])), User(Some([2; 32])));
        let spend = |user, calls, bytes| quotas.spend(user, &limits(0, 100), 1, (calls, bytes));
        assert_eq!(spend(ada, 1000, 60), Ok(()));
        let exceeded = spend(ada, 1, 60).unwrap_err();
        assert!(exceeded.wait <= DAY && exceeded.to_string().contains("100 bytes per day"));
        assert_eq!((spend(ada, 1, 40), spend(eve, 1, 100)), (Ok(()), Ok(())));
        assert!(spend(eve, 0, 1).is_err());
        assert_eq!(quotas.spend(ada, &limits(0, 0), 1, (1, 1000)), Ok(()));
    }

    #[test]
    fn replicas_share_a_limit() {
        let quotas = Quotas::default();
        let calls = |share| {
            let user = User(Some([u8::try_from(share).unwrap(); 32]));
            let spend = || quotas.spend(user, &limits(10, 0), share, (1, 1)).is_ok();
            (0..20).filter(|_| spend()).count()
        };
        // A minute may end in between.
        assert!((10..=20).contains(&calls(1)) && (4..=8).contains(&calls(3)));
    }

    #[test]
    fn spent_amount_ends_with_its_period() {
        let mut spent = Spent { period: 0, amount: 7 };
        spent.begin(Duration::from_secs(59), MINUTE);
        assert_eq!(spent.amount, 7);
        spent.begin(MINUTE, MINUTE);
        assert_eq!(spent, Spent { period: 1, amount: 0 });
    }
}
