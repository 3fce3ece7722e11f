//! The age at which a catalog is refreshed: an awake server is asked again, and a sleeping hybrid
//! server is connected for it.

use std::time::Duration;

use tokio::time::Instant;

use super::Recalled;
use crate::catalog::ServerCatalog;

/// Delay of the first refresh after the start, so that requests of the start are served first.
const STARTUP_DELAY: Duration = Duration::from_secs(2);
/// Delay after a failed refresh.
const RETRY_DELAY: Duration = Duration::from_mins(10);
/// Minimum lifetime of a catalog, whatever lifetime the server states.
const MIN_LIFETIME: Duration = Duration::from_mins(1);

pub(super) struct Freshness {
    /// True for hybrid servers, the only ones that are connected just for a refresh.
    is_hybrid: bool,
    /// The lifetime for hybrid servers that state none; `None` for no expiry.
    ttl: Option<Duration>,
    until: Option<Instant>,
}

impl Freshness {
    pub(super) fn new(is_hybrid: bool, ttl: Option<Duration>) -> Self {
        Self { is_hybrid, ttl, until: None }
    }

    /// Returns when the catalog expires, in either state of the server; `None` for never.
    pub(super) fn expires_at(&self, is_awake: bool) -> Option<Instant> {
        self.until.filter(|_| is_awake || self.is_hybrid)
    }

    /// Notes that the server has just listed everything.
    pub(super) fn renew(&mut self, catalog: &ServerCatalog) {
        self.until = self.lifetime(catalog).map(|lifetime| Instant::now() + lifetime);
    }

    /// Notes that the catalog of another run is in use.
    pub(super) fn restore(&mut self, recalled: &Recalled) {
        let left = self.lifetime(&recalled.catalog).map(|all| all.saturating_sub(recalled.age));
        // A catalog that was read for a host with fewer capabilities may be incomplete.
        let left = if recalled.is_sufficient { left } else { Some(Duration::ZERO) };
        self.until = left.map(|left| Instant::now() + left.max(STARTUP_DELAY));
    }

    /// Notes that the catalog has expired and is being refreshed.
    pub(super) fn clear(&mut self) {
        self.until = None;
    }

    /// Notes that a refresh has failed.
    pub(super) fn postpone(&mut self, catalog: &ServerCatalog) {
        if self.until.is_none() && self.lifetime(catalog).is_some() {
            self.until = Some(Instant::now() + RETRY_DELAY);
        }
    }

    fn lifetime(&self, catalog: &ServerCatalog) -> Option<Duration> {
        let announced = catalog.discovery.fresh_for.map(|announced| announced.max(MIN_LIFETIME));
        announced.or(self.ttl.filter(|_| self.is_hybrid))
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
        assert_eq!(left(&lazy), None, "no comparison was requested");
        assert!(lazy.expires_at(true).is_some(), "the server has said so, and can be asked");
    }
}
