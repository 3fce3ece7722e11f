//! A mutex for short critical sections.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that is held for one look or change, and never across an await.
///
/// A panic while it is held does not poison it: the change of one request must not end all others.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
