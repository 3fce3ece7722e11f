//! A mutex for short critical sections.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that is held for a single read or change, and never across an await.
///
/// A panic of the holder does not poison the lock: one failed request must not break all others.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
