//! Limits of people: calls of tools per minute, and bytes per day.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::body::Body;
use futures_util::StreamExt as _;

use crate::{
    base::{Lock, since_1970},
    config::UsageLimits,
    proxy::User,
};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// Maximum number of people whose use is known; beyond it, those of earlier days are forgotten.
const MAX_PEOPLE: usize = 100_000;

/// The use by all people, by their users.
#[derive(Default)]
pub(super) struct Quotas(Lock<HashMap<User, Arc<Lock<Usage>>>>);

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
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QuotaExceeded {
    /// The limit in words, such as `60 calls per minute`.
    limit: String,
    /// The time until the next period begins.
    pub(super) wait: Duration,
}

impl QuotaExceeded {
    pub(super) fn message(&self) -> String {
        let seconds = self.wait.as_secs();
        format!("the limit of {} is reached; try again in {seconds} s", self.limit)
    }
}

impl Quotas {
    /// Counts calls and the bytes of their request. `share`: the number of replicas among which the
    /// limits are divided.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    pub(super) fn spend(
        &self,
        user: User,
        limits: &UsageLimits,
        share: usize,
        (calls, bytes): (usize, usize),
    ) -> Result<(), QuotaExceeded> {
        let now = since_1970();
        let usage = self.of(user, now);
        let mut usage = usage.lock();
        let calls_allowed = limits.calls_per_minute.map(|limit| limit.div_ceil(share));
        let bytes_allowed = limits.bytes_per_day.map(|limit| limit.div_ceil(share));
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

    /// Counts the bytes of an answer while it is sent.
    pub(super) fn count(&self, user: User, body: Body) -> Body {
        let now = since_1970();
        let usage = self.of(user, now);
        let counted = body.into_data_stream().inspect(move |part| {
            if let Ok(part) = part {
                let now = since_1970();
                let mut usage = usage.lock();
                usage.bytes.begin(now, DAY);
                usage.bytes.amount += part.len();
            }
        });
        Body::from_stream(counted)
    }

    fn of(&self, user: User, now: Duration) -> Arc<Lock<Usage>> {
        let mut all = self.0.lock();
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
        assert!(exceeded.wait <= DAY && exceeded.message().contains("100 bytes per day"));
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
