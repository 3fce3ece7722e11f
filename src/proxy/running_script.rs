//! The script that makes a request.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::wire::{Raw, edit};

/// A script that runs now. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct RunningScript {
    /// The tool that runs the script.
    pub(crate) name: Arc<str>,
    /// The number of the run in this process.
    pub(crate) run: u64,
    /// The number of progress notifications that the host got.
    progress: Arc<AtomicU64>,
}

impl RunningScript {
    pub(super) fn new(name: &str) -> Self {
        static LAST_RUN: AtomicU64 = AtomicU64::new(0);
        let run = LAST_RUN.fetch_add(1, Ordering::Relaxed) + 1;
        Self { name: name.into(), run, progress: Arc::default() }
    }

    /// Returns the next value of the script's progress. The calls of a script share its progress
    /// token, so that the values of their servers would not rise (MCP, basic utilities).
    pub(super) fn next_progress(&self) -> u64 {
        self.progress.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the progress of a call as progress of the script.
    pub(super) fn as_own_progress(&self, params: &Raw) -> Raw {
        let params = edit::without(params, &["total"]);
        edit::set(&params, "progress", &Raw::encode(&self.next_progress()))
    }
}
