//! The catalogs that wait to be stored: a server whose lists change all the time does not keep
//! others from storing theirs, here and in other processes.

use std::{collections::HashMap, future::pending, time::Duration};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::instance::Instance;
use crate::{base::Lock, catalog::ServerId};

/// Minimum time between two attempts to store catalogs in the same place.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before another attempt to store a catalog.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// The place of the catalog of a server for hosts that declare these capabilities.
pub(super) type CatalogPlace = (ServerId, Vec<String>);

/// The places whose newest catalogs wait to be stored.
#[derive(Default)]
pub(super) struct WaitingCatalogs {
    state: Lock<WaitingState>,
    added: Notify,
}

#[derive(Default)]
struct WaitingState {
    /// In the order in which they were added.
    waiting: Vec<WaitingCatalog>,
    /// The last attempt for each place.
    attempts: HashMap<CatalogPlace, Instant>,
}

pub(super) struct WaitingCatalog {
    pub(super) place: CatalogPlace,
    /// The instance that has told the newest catalog.
    pub(super) instance: Instance,
    due: Instant,
}

impl WaitingCatalogs {
    /// Adds a place whose catalog is new.
    pub(super) fn add(&self, place: CatalogPlace, instance: Instance) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let due = state.attempts.get(&place).map_or(now, |last| now.max(*last + MIN_INTERVAL));
        state.insert(WaitingCatalog { place, instance, due });
        drop(state);
        self.added.notify_one();
    }

    /// Adds a place again whose catalog could not be stored.
    pub(super) fn add_again(&self, failed: WaitingCatalog) {
        let due = Instant::now() + RETRY_DELAY;
        self.state.lock().insert(WaitingCatalog { due, ..failed });
        self.added.notify_one();
    }

    /// Returns whether a place waits.
    pub(super) fn has(&self, place: &CatalogPlace) -> bool {
        self.state.lock().waiting.iter().any(|it| it.place == *place)
    }

    /// Waits for the first place that is due, and takes it.
    pub(super) async fn take_due(&self) -> WaitingCatalog {
        loop {
            let next_due = match self.state.lock().take_due(Instant::now()) {
                Ok(due) => return due,
                Err(next_due) => next_due,
            };
            let due = async {
                match next_due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.added.notified() => {}
            }
        }
    }

    pub(super) fn take_all(&self) -> Vec<WaitingCatalog> {
        std::mem::take(&mut self.state.lock().waiting)
    }
}

impl WaitingState {
    /// Adds a place, unless it waits already. The earlier time and the newer instance count.
    fn insert(&mut self, added: WaitingCatalog) {
        match self.waiting.iter_mut().find(|it| it.place == added.place) {
            Some(known) => {
                known.due = known.due.min(added.due);
                if added.instance.version >= known.instance.version {
                    known.instance = added.instance;
                }
            }
            None => self.waiting.push(added),
        }
    }

    /// Takes the first place that is due.
    ///
    /// # Errors
    /// The time at which the next one will be, if there is one.
    fn take_due(&mut self, now: Instant) -> Result<WaitingCatalog, Option<Instant>> {
        let Some(at) = self.waiting.iter().position(|it| it.due <= now) else {
            return Err(self.waiting.iter().map(|it| it.due).min());
        };
        let due = self.waiting.remove(at);
        self.attempts.insert(due.place.clone(), now);
        Ok(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(server: usize) -> (CatalogPlace, Instance) {
        ((ServerId(server), Vec::new()), Instance::shared(ServerId(server), 0))
    }

    fn add(waiting: &WaitingCatalogs, server: usize) {
        let (place, instance) = place(server);
        waiting.add(place, instance);
    }

    async fn take(waiting: &WaitingCatalogs) -> (usize, Duration) {
        let began = Instant::now();
        let (ServerId(server), _) = waiting.take_due().await.place;
        (server, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_changes_all_the_time_waits_for_the_others_and_for_a_second() {
        let waiting = WaitingCatalogs::default();
        add(&waiting, 1);
        assert_eq!(take(&waiting).await.0, 1);
        for server in [1, 2, 1, 1, 3] {
            add(&waiting, server);
        }
        assert!(waiting.has(&place(1).0));
        assert_eq!(take(&waiting).await, (2, Duration::ZERO));
        assert_eq!(take(&waiting).await, (3, Duration::ZERO));
        let (server, waited) = take(&waiting).await;
        assert!(server == 1 && waited >= MIN_INTERVAL, "{waited:?}");
        assert!(!waiting.has(&place(1).0) && waiting.take_all().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn catalog_that_could_not_be_stored_waits_for_another_attempt() {
        let waiting = WaitingCatalogs::default();
        add(&waiting, 1);
        waiting.add_again(waiting.take_due().await);
        let (server, waited) = take(&waiting).await;
        assert!(server == 1 && waited >= RETRY_DELAY, "{waited:?}");
        add(&waiting, 1);
        let failed = waiting.take_due().await;
        let (place, newer) = (failed.place.clone(), Instance::shared(ServerId(1), 1));
        waiting.add(place, newer);
        waiting.add_again(failed);
        assert_eq!(waiting.take_due().await.instance, newer, "the config has changed meanwhile");
    }
}
