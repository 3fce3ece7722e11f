//! The doubt whether another replica has a newer login than the store: it could not save the login,
//! or the store has lost it since.

use std::time::{Duration, Instant};

use crate::{base::Lock, wire::credentials::Authorization};

/// Time for which a replica that has lost its store waits for others to store a newer login.
pub(super) const LOST_PATIENCE: Duration = Duration::from_secs(3);
/// Time for which a replica that finds no login waits: the others may wait for each other before
/// one renews it.
pub(super) const MISSING_PATIENCE: Duration = Duration::from_secs(6);
/// Time for which a replica waits after its refresh token was rejected. Another one may have used
/// it, and may not have been able to save the new token.
pub(super) const REJECTED_PATIENCE: Duration = Duration::from_secs(10);

/// The login that may not be the newest, until a time.
#[derive(Default)]
pub(super) struct RenewalDoubt(Lock<Option<Doubt>>);

struct Doubt {
    /// The token of the login.
    of: Option<Authorization>,
    since: Instant,
    patience: Duration,
}

impl RenewalDoubt {
    /// Notes that the login with this token may not be the newest. Returns `false` if the same was
    /// noted before, with as much patience.
    pub(super) fn begin(&self, of: Option<Authorization>, patience: Duration) -> bool {
        let is_same = |known: &Doubt| known.of == of && known.patience >= patience;
        let is_known = self.0.lock().as_ref().is_some_and(is_same);
        if !is_known {
            self.begin_again(of, patience);
        }
        !is_known
    }

    /// As [`Self::begin`], from now on: the store has lost the login, perhaps again.
    pub(super) fn begin_again(&self, of: Option<Authorization>, patience: Duration) {
        *self.0.lock() = Some(Doubt { of, since: Instant::now(), patience });
    }

    /// Returns whether to wait before the login with this token is renewed.
    pub(super) fn holds(&self, of: Option<&Authorization>) -> bool {
        let doubt = self.0.lock();
        doubt.as_ref().is_some_and(|it| it.of.as_ref() == of && it.since.elapsed() < it.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_is_in_doubt_once_and_for_a_while() {
        let doubt = RenewalDoubt::default();
        assert!(!doubt.holds(None));
        assert!(doubt.begin(None, Duration::ZERO));
        assert!(!doubt.holds(None), "the time is over");
        assert!(!doubt.begin(None, Duration::ZERO));
        assert!(doubt.begin(None, REJECTED_PATIENCE), "another reason has more patience");
        assert!(doubt.holds(None));
        doubt.begin_again(None, Duration::ZERO);
        assert!(!doubt.holds(None));
        doubt.begin_again(None, LOST_PATIENCE);
        assert!(doubt.holds(None), "the login is lost a second time");
    }
}
