//! The app that each host shows (MCP Apps, SEP-1865): the server whose interface it has read last.

use std::collections::HashMap;

use crate::{base::Lock, catalog::ServerId, proxy::Principal};

/// The last interface that each host has read. An app calls its server's tools by their bare names,
/// which servers may share, and a call says nothing else about its app.
#[derive(Default)]
pub(super) struct AppReads(Lock<HashMap<Principal, ServerId>>);

impl AppReads {
    /// Notes that a host reads a resource of a server.
    pub(super) fn note(&self, host: Principal, server: ServerId, uri: &str) {
        if uri.starts_with("ui://") {
            self.0.lock().insert(host, server);
        }
    }

    pub(super) fn last(&self, host: Principal) -> Option<ServerId> {
        self.0.lock().get(&host).copied()
    }

    pub(super) fn forget(&self, host: Principal) {
        self.0.lock().remove(&host);
    }
}
