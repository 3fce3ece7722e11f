//! The state that the handlers of requests share.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::http::{HeaderMap, Version};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{locality::is_from_this_machine, principals::Principals, sessions::Sessions};
use crate::{proxy::Fleet, store::StoreHealth};

/// The state that all request handlers share.
pub(super) struct HttpFront {
    pub(super) fleet: Arc<Fleet>,
    pub(super) sessions: Sessions,
    pub(super) principals: Principals,
    /// True if dormouse listens on a loopback address only.
    is_for_this_machine: bool,
    /// The state of the store that several machines share, if there is one.
    store: Option<Arc<StoreHealth>>,
    pub(super) tasks: TaskTracker,
    /// Ends the streams that hosts keep open without a limit.
    pub(super) stop: CancellationToken,
}

impl HttpFront {
    pub(super) fn new(
        fleet: Arc<Fleet>,
        address: SocketAddr,
        store: Option<Arc<StoreHealth>>,
    ) -> Self {
        Self {
            sessions: Sessions::new(fleet.settings().http.session_timeout),
            principals: Principals::default(),
            is_for_this_machine: address.ip().is_loopback(),
            fleet,
            store,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Returns the reason that the shared store cannot be used; `None` if it can, or there is none.
    pub(super) fn store_outage(&self) -> Option<String> {
        self.store.as_ref()?.outage()
    }

    /// Returns whether the user of the host that sent a request is at this machine, as far as the
    /// headers show.
    pub(super) fn is_from_this_machine(&self, headers: &HeaderMap, version: Version) -> bool {
        let trusted = &self.fleet.settings().http.trusted_proxies;
        self.is_for_this_machine && is_from_this_machine(headers, version, trusted)
    }

    /// Ends sessions that have expired, and forgets hosts without sessions that have gone, in an
    /// endless loop.
    pub(super) async fn expire(&self) {
        let timeout = self.sessions.timeout();
        if timeout.is_zero() {
            return;
        }
        let pause = (timeout / 4).clamp(Duration::from_millis(50), Duration::from_mins(1));
        loop {
            tokio::time::sleep(pause).await;
            for session in self.sessions.take_expired() {
                tracing::info!("session expired");
                session.end().await;
            }
            for principal in self.principals.take_expired(timeout) {
                self.fleet.end_instances_of(principal);
            }
        }
    }
}
