//! The log messages that each legacy host wants.

use std::collections::HashMap;

use super::HostId;
use crate::{base::Lock, protocol::LogLevel};

#[derive(Default)]
pub(super) struct Levels(Lock<HashMap<HostId, LogLevel>>);

impl Levels {
    pub(super) fn set(&self, host: HostId, level: LogLevel) {
        self.0.lock().insert(host, level);
    }

    /// Forgets a host; whether it had said anything.
    pub(super) fn forget(&self, host: HostId) -> bool {
        self.0.lock().remove(&host).is_some()
    }

    /// What the host has asked for.
    pub(super) fn of(&self, host: HostId) -> Option<LogLevel> {
        self.0.lock().get(&host).copied()
    }

    pub(super) fn most_verbose(&self) -> Option<LogLevel> {
        self.0.lock().values().min().copied()
    }

    /// A host that has not said what it wants leaves it to the servers.
    pub(super) fn wants(&self, host: HostId, level: Option<LogLevel>) -> bool {
        match (self.0.lock().get(&host), level) {
            (Some(wanted), Some(level)) => level >= *wanted,
            (None, _) | (_, None) => true,
        }
    }
}
