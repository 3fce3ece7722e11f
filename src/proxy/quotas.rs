//! Limits of people: calls of tools per minute, and bytes per day.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::User;
use crate::{
    base::{Lock, since_1970},
    config::UsageLimits,
    store::Replicas,
};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// Maximum number of people whose use is known; beyond it, those of earlier days are forgotten.
const MAX_PEOPLE: usize = 100_000;

/// The use by all people.
#[derive(Default)]
pub(super) struct Quotas {
    by_user: Lock<HashMap<User, Usage>>,
    /// The replicas that divide the limits among them.
    replicas: OnceLock<Arc<Replicas>>,
}

/// The use by one person. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Arc<Lock<SpentToday>>);

/// What one person has spent. Minutes and days are those of UTC.
#[derive(Debug, Default)]
struct SpentToday {
    /// Calls of this minute.
    calls: Spent,
    /// Bytes of this day.
    bytes: Spent,
}

/// What a request spends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    /// Calls of tools.
    pub calls: usize,
    /// The size of the request, in bytes.
    pub bytes: usize,
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

impl Quotas {
    /// Has limits divided among replicas.
    pub(super) fn share_with(&self, replicas: Arc<Replicas>) {
        // A process has one front for people.
        let _ = self.replicas.set(replicas);
    }

    /// Counts what a request spends.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    pub(super) fn spend(
        &self,
        user: User,
        limits: &UsageLimits,
        amount: Amount,
    ) -> Result<(), QuotaExceeded> {
        let replicas = self.replicas.get().map_or(1, |replicas| replicas.count());
        self.of(user).spend(limits, replicas, amount)
    }

    /// Returns the use by one person.
    pub(super) fn of(&self, user: User) -> Usage {
        let mut all = self.by_user.lock();
        if all.len() >= MAX_PEOPLE && !all.contains_key(&user) {
            let today = since_1970().as_secs() / DAY.as_secs();
            all.retain(|_, usage| usage.0.lock().bytes.period == today);
        }
        all.entry(user).or_default().clone()
    }
}

impl Usage {
    /// Counts what a request spends. `replicas`: the number of replicas that divide the limits.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    fn spend(
        &self,
        limits: &UsageLimits,
        replicas: usize,
        Amount { calls, bytes }: Amount,
    ) -> Result<(), QuotaExceeded> {
        let now = since_1970();
        let mut usage = self.0.lock();
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

    /// Counts bytes of an answer.
    pub(crate) fn count_answered(&self, bytes: usize) {
        let mut usage = self.0.lock();
        usage.bytes.begin(since_1970(), DAY);
        usage.bytes.amount += bytes;
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
        let spend =
            |user, calls, bytes| quotas.spend(user, &limits(0, 100), Amount { calls, bytes });
        assert_eq!(spend(ada, 1000, 60), Ok(()));
        let exceeded = spend(ada, 1, 60).unwrap_err();
        assert!(exceeded.wait <= DAY && exceeded.to_string().contains("100 bytes per day"));
        assert_eq!((spend(ada, 1, 40), spend(eve, 1, 100)), (Ok(()), Ok(())));
        assert!(spend(eve, 0, 1).is_err());
        assert_eq!(quotas.spend(ada, &limits(0, 0), Amount { calls: 1, bytes: 1000 }), Ok(()));
    }

    #[test]
    fn replicas_share_a_limit() {
        let calls = |replicas| {
            let (usage, one) = (Usage::default(), Amount { calls: 1, bytes: 1 });
            (0..20).filter(|_| usage.spend(&limits(10, 0), replicas, one).is_ok()).count()
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
