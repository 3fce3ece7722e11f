//! When what is known of a server is so old that it is looked at once more: asked, if it is awake, and connected only for
//! that, if it sleeps and is a hybrid one.

use std::time::Duration;

use tokio::time::Instant;

use super::Recalled;
use crate::catalog::ServerCatalog;

/// What is old is learned anew only once the start is over: whoever waits for that is served first.
const STARTUP_DELAY: Duration = Duration::from_secs(2);
/// After an attempt to do so that failed.
const RETRY_DELAY: Duration = Duration::from_mins(10);
/// Whatever a server says, it is not connected more often than this only to look.
const MIN_LIFETIME: Duration = Duration::from_mins(1);

pub(super) struct Freshness {
    /// Only what hybrid servers have is learned though nobody needs it.
    is_hybrid: bool,
    /// For hybrid servers that do not say how long their lists are good for; `None` for ever.
    ttl: Option<Duration>,
    until: Option<Instant>,
}

impl Freshness {
    pub(super) fn new(is_hybrid: bool, ttl: Option<Duration>) -> Self {
        Self { is_hybrid, ttl, until: None }
    }

    /// When the server is to be looked at, in whichever of the two states it is; `None` for never.
    pub(super) fn expires_at(&self, is_awake: bool) -> Option<Instant> {
        self.until.filter(|_| is_awake || self.is_hybrid)
    }

    /// The server has just shown what it has.
    pub(super) fn renew(&mut self, catalog: &ServerCatalog) {
        self.until = self.lifetime(catalog).map(|lifetime| Instant::now() + lifetime);
    }

    /// What it had in another run is taken over.
    pub(super) fn restore(&mut self, recalled: &Recalled) {
        let left = self.lifetime(&recalled.catalog).map(|all| all.saturating_sub(recalled.age));
        // What was learned for a host that can do less may lack something.
        let left = if recalled.is_sufficient { left } else { Some(Duration::ZERO) };
        self.until = left.map(|left| Instant::now() + left.max(STARTUP_DELAY));
    }

    /// It is over, and the server is being looked at.
    pub(super) fn clear(&mut self) {
        self.until = None;
    }

    /// That has failed.
    pub(super) fn postpone(&mut self, catalog: &ServerCatalog) {
        if self.until.is_none() && self.lifetime(catalog).is_some() {
            self.until = Some(Instant::now() + RETRY_DELAY);
        }
    }

    fn lifetime(&self, catalog: &ServerCatalog) -> Option<Duration> {
        let said = catalog.discovery.fresh_for.map(|said| said.max(MIN_LIFETIME));
        said.or(self.ttl.filter(|_| self.is_hybrid))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn left(freshness: &Freshness) -> Option<Duration> {
        freshness.expires_at(false).map(|end| end - Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn server_ttl_takes_precedence_over_the_config() {
        let hour = Duration::from_hours(1);
        let mut freshness = Freshness::new(true, Some(hour));
        let mut catalog = ServerCatalog::unknown();
        freshness.renew(&catalog);
        assert_eq!(left(&freshness), Some(hour));
        catalog.discovery.fresh_for = Some(Duration::from_millis(5));
        freshness.renew(&catalog);
        assert_eq!(left(&freshness), Some(MIN_LIFETIME));
        freshness.clear();
        freshness.postpone(&catalog);
        assert_eq!(left(&freshness), Some(RETRY_DELAY));

        let recalled = |age, is_sufficient| Recalled {
            catalog: Arc::new(ServerCatalog::unknown()),
            age,
            is_sufficient,
        };
        for (age, is_sufficient, expected) in [
            (hour / 4, true, hour * 3 / 4),
            (hour * 2, true, STARTUP_DELAY),
            (Duration::ZERO, false, STARTUP_DELAY),
        ] {
            freshness.restore(&recalled(age, is_sufficient));
            assert_eq!(left(&freshness), Some(expected));
        }
        let mut lazy = Freshness::new(false, Some(hour));
        lazy.restore(&recalled(hour * 2, false));
        lazy.renew(&catalog);
        assert_eq!(left(&lazy), None, "nobody has asked to know");
        assert!(lazy.expires_at(true).is_some(), "the server has said so, and can be asked");
    }
}
