//! The last calls, in memory.

use std::{collections::VecDeque, sync::Arc};

use super::CallRecord;
use crate::base::Lock;

/// Maximum number of calls that are kept.
const MAX_CALLS: usize = 500;
/// Maximum size of the arguments and results that are kept with them, in bytes.
const MAX_CONTENT_BYTES: usize = 8 * 1024 * 1024;

/// The last calls, oldest first. Bounded in number and in size.
#[derive(Default)]
pub(super) struct CallRing(Lock<RingState>);

#[derive(Default)]
struct RingState {
    calls: VecDeque<Arc<CallRecord>>,
    content_bytes: usize,
}

impl CallRing {
    pub(super) fn push(&self, call: Arc<CallRecord>) {
        let mut ring = self.0.lock();
        ring.content_bytes += call.content_bytes();
        ring.calls.push_back(call);
        while ring.calls.len() > MAX_CALLS || ring.content_bytes > MAX_CONTENT_BYTES {
            let Some(oldest) = ring.calls.pop_front() else { break };
            ring.content_bytes -= oldest.content_bytes();
        }
    }

    /// Returns the calls, oldest first.
    pub(super) fn calls(&self) -> Vec<Arc<CallRecord>> {
        self.0.lock().calls.iter().cloned().collect()
    }
}
