//! The hosts for which a result was cut. A host sees `read_result` in its list from then on.

use std::collections::HashSet;

use crate::{base::Lock, proxy::Principal};

#[derive(Default)]
pub(super) struct CutResults(Lock<HashSet<Principal>>);

impl CutResults {
    /// Notes a host. Returns whether it is new.
    pub(super) fn note(&self, host: Principal) -> bool {
        self.0.lock().insert(host)
    }

    pub(super) fn has(&self, host: Principal) -> bool {
        self.0.lock().contains(&host)
    }

    pub(super) fn forget(&self, host: Principal) {
        self.0.lock().remove(&host);
    }
}
