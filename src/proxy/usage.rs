//! The use of a service by one person, within the limits of the person's groups.

use std::{sync::Arc, time::Duration};

use crate::{
    base::{Lock, since_1970},
    config::UsageLimits,
};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// The use by one person, with the limits of one token. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    limits: SharedLimits,
    account: UsageAccount,
}

/// Limits that replicas divide.
#[derive(Clone, Copy, Debug, Default)]
struct SharedLimits {
    limits: UsageLimits,
    replicas: usize,
}

/// The use by one person with all tokens. Cheap to clone. Minutes and days are those of UTC.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageAccount(Arc<Lock<Spending>>);

#[derive(Debug, Default)]
struct Spending {
    /// The limits of the last token.
    last_limits: SharedLimits,
    /// Calls of this minute.
    calls: Spent,
    /// Bytes of this day.
    bytes: Spent,
}

/// The cost of a request.
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

impl UsageAccount {
    /// Returns the use with a token that has these limits, which this number of replicas divide.
    pub(crate) fn with_limits(&self, limits: UsageLimits, replicas: usize) -> Usage {
        let limits = SharedLimits { limits, replicas };
        self.0.lock().last_limits = limits;
        Usage { limits, account: self.clone() }
    }

    /// Returns whether it can be forgotten: nobody has it, and nothing was spent today.
    pub(crate) fn is_over(&self) -> bool {
        let today = since_1970().as_secs() / DAY.as_secs();
        Arc::strong_count(&self.0) == 1 && self.0.lock().bytes.period != today
    }
}

impl Usage {
    /// Counts what a request spends.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    pub(crate) fn spend(&self, amount: Amount) -> Result<(), QuotaExceeded> {
        self.account.0.lock().spend(self.limits, amount)
    }

    /// Counts the call of a script, by the limits of the last token: the session of the script may
    /// be older.
    ///
    /// # Errors
    /// The limit that is reached. Nothing is counted then.
    pub(crate) fn spend_call(&self) -> Result<(), QuotaExceeded> {
        let mut spending = self.account.0.lock();
        let limits = spending.last_limits;
        spending.spend(limits, Amount { calls: 1, bytes: 0 })
    }

    /// Counts bytes of an answer.
    pub(crate) fn count_answered(&self, bytes: usize) {
        let mut spending = self.account.0.lock();
        spending.bytes.begin(since_1970(), DAY);
        spending.bytes.amount += bytes;
    }
}

impl Spending {
    fn spend(
        &mut self,
        SharedLimits { limits, replicas }: SharedLimits,
        Amount { calls, bytes }: Amount,
    ) -> Result<(), QuotaExceeded> {
        let now = since_1970();
        let replicas = replicas.max(1);
        let calls_allowed = limits.calls_per_minute.map(|limit| limit.div_ceil(replicas));
        let bytes_allowed = limits.bytes_per_day.map(|limit| limit.div_ceil(replicas));
        self.calls.begin(now, MINUTE);
        self.bytes.begin(now, DAY);
        let exceeded = |limit: String, period: Duration| {
            let into = now.as_secs() % period.as_secs();
            QuotaExceeded { limit, wait: Duration::from_secs(period.as_secs() - into) }
        };
        if calls > 0 && calls_allowed.is_some_and(|allowed| self.calls.amount + calls > allowed) {
            let limit = limits.calls_per_minute.unwrap_or_default();
            return Err(exceeded(format!("{limit} calls per minute"), MINUTE));
        }
        if bytes_allowed.is_some_and(|allowed| self.bytes.amount + bytes > allowed) {
            let limit = limits.bytes_per_day.unwrap_or_default();
            return Err(exceeded(format!("{limit} bytes per day"), DAY));
        }
        self.calls.amount += calls;
        self.bytes.amount += bytes;
        Ok(())
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

    fn usage(calls: usize, bytes: usize, replicas: usize) -> Usage {
        let limit = |number| Some(number).filter(|number| *number > 0);
        let (calls_per_minute, bytes_per_day) = (limit(calls), limit(bytes));
        let limits = UsageLimits { calls_per_minute, bytes_per_day };
        UsageAccount::default().with_limits(limits, replicas)
    }

    #[test]
    fn person_has_limits_of_calls_and_bytes() {
        let ada = usage(0, 100, 1);
        let spend = |calls, bytes| ada.spend(Amount { calls, bytes });
        assert_eq!(spend(1000, 60), Ok(()));
        let exceeded = spend(1, 60).unwrap_err();
        assert!(exceeded.wait <= DAY && exceeded.to_string().contains("100 bytes per day"));
        assert_eq!(spend(1, 40), Ok(()));
        assert!(spend(0, 1).is_err());
        let generous = ada.account.with_limits(UsageLimits::default(), 1);
        assert_eq!(generous.spend(Amount { calls: 1, bytes: 1000 }), Ok(()));
        assert!(spend(0, 1).is_err() && ada.spend_call().is_ok(), "the last limits");
    }

    #[test]
    fn replicas_share_a_limit() {
        let calls = |replicas| {
            let usage = usage(10, 0, replicas);
            (0..20).filter(|_| usage.spend(Amount { calls: 1, bytes: 1 }).is_ok()).count()
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
