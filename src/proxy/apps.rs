//! Which app each host shows (MCP Apps, SEP-1865): the server whose interface it has read last.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use super::Principal;
use crate::catalog::ServerId;

/// An app calls its server's tools by their bare names, which servers may share; nothing else in such a call says
/// whose app it is.
#[derive(Default)]
// A std mutex: held for a look or a change.
pub(super) struct AppReads(Mutex<HashMap<Principal, ServerId>>);

impl AppReads {
    /// Takes note that a host reads a resource of a server.
    pub(super) fn note(&self, host: Principal, server: ServerId, uri: &str) {
        if uri.starts_with("ui://") {
            self.lock().insert(host, server);
        }
    }

    pub(super) fn last(&self, host: Principal) -> Option<ServerId> {
        self.lock().get(&host).copied()
    }

    pub(super) fn forget(&self, host: Principal) {
        self.lock().remove(&host);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, ServerId>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
