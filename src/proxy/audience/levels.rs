//! The log messages that each legacy host wants.

use std::collections::HashMap;

use crate::{base::Lock, protocol::LogLevel, proxy::HostId};

/// The least severe level that each legacy host has asked for.
#[derive(Default)]
pub(in crate::proxy) struct LogLevels(Lock<HashMap<HostId, LogLevel>>);

impl LogLevels {
    pub(in crate::proxy) fn set(&self, host: HostId, level: LogLevel) {
        self.0.lock().insert(host, level);
    }

    /// Forgets a host. Returns whether it had asked for a level.
    pub(super) fn forget(&self, host: HostId) -> bool {
        self.0.lock().remove(&host).is_some()
    }

    /// Returns the level that a host has asked for.
    pub(in crate::proxy) fn of(&self, host: HostId) -> Option<LogLevel> {
        self.0.lock().get(&host).copied()
    }

    /// Returns the level of the host that wants most.
    pub(in crate::proxy) fn most_verbose(&self) -> Option<LogLevel> {
        self.0.lock().values().min().copied()
    }

    /// Returns whether a host wants a message of this level. A host that has asked for no level
    /// gets whatever servers send.
    pub(in crate::proxy) fn wants(&self, host: HostId, level: Option<LogLevel>) -> bool {
        match (self.0.lock().get(&host), level) {
            (Some(wanted), Some(level)) => level >= *wanted,
            (None, _) | (_, None) => true,
        }
    }
}
