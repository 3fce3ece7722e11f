//! The log messages that each legacy host wants.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use super::HostId;
use crate::protocol::LogLevel;

#[derive(Default)]
// A std mutex: held for a look or a change.
pub(super) struct Levels(Mutex<HashMap<HostId, LogLevel>>);

impl Levels {
    pub(super) fn set(&self, host: HostId, level: LogLevel) {
        self.lock().insert(host, level);
    }

    /// Forgets a host; whether it had said anything.
    pub(super) fn forget(&self, host: HostId) -> bool {
        self.lock().remove(&host).is_some()
    }

    /// What the host has asked for.
    pub(super) fn of(&self, host: HostId) -> Option<LogLevel> {
        self.lock().get(&host).copied()
    }

    pub(super) fn most_verbose(&self) -> Option<LogLevel> {
        self.lock().values().min().copied()
    }

    /// A host that has not said what it wants leaves it to the servers.
    pub(super) fn wants(&self, host: HostId, level: Option<LogLevel>) -> bool {
        match (self.lock().get(&host), level) {
            (Some(wanted), Some(level)) => level >= *wanted,
            (None, _) | (_, None) => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HostId, LogLevel>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
