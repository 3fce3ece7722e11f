//! The number of scripts that run at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of scripts that run, or that wait for a user, in one fleet. Each has a process.
pub(super) const MAX_SCRIPTS: usize = 64;

pub(super) struct ScriptSlots(Arc<Semaphore>);

impl Default for ScriptSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_SCRIPTS)))
    }
}

impl ScriptSlots {
    /// Returns the right to run a script; `None` if too many run.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}
