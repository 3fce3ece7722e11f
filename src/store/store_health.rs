//! The state of a shared store: its outage, and an observer of its operations.

use std::{fmt, sync::OnceLock, time::Duration};

use crate::base::Lock;

/// The state of a shared store as its users have last seen it.
#[derive(Default)]
pub(crate) struct StoreHealth {
    /// The reason that the store cannot be used; `None` if it can, as far as is known.
    outage: Lock<Option<String>>,
    observer: OnceLock<StoreObserver>,
}

/// Takes the duration of each operation, and whether the store has answered.
pub(crate) type StoreObserver = Box<dyn Fn(Duration, bool) + Send + Sync>;

impl StoreHealth {
    /// Returns the reason that the store cannot be used; `None` if it can.
    pub(crate) fn outage(&self) -> Option<String> {
        self.outage.lock().clone()
    }

    /// Reports all further operations to the first observer that is given.
    pub(crate) fn report_to(&self, observer: StoreObserver) {
        // A store has the telemetry of one fleet.
        let _ = self.observer.set(observer);
    }

    /// Notes that the store can be written to.
    pub(super) fn note_recovery(&self) {
        let was = self.outage.lock().take();
        if was.is_some() {
            tracing::info!("the store can be used again");
        }
    }

    pub(super) fn note_outage(&self, why: impl fmt::Display) {
        let is_news = self.outage.lock().replace(why.to_string()).is_none();
        if is_news {
            tracing::warn!(%why, "the store cannot be used; calls go on without it");
        }
    }

    /// Reports an operation.
    pub(super) fn report(&self, took: Duration, is_answered: bool) {
        if let Some(observer) = self.observer.get() {
            observer(took, is_answered);
        }
    }
}

impl fmt::Debug for StoreHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHealth").field("outage", &self.outage()).finish_non_exhaustive()
    }
}
