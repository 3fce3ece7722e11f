//! The state that the handlers of requests share.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::http::{HeaderMap, Version};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    forwarding::is_forwarded,
    locality::is_from_this_machine,
    person_login_steps::PersonLogins,
    principals::{HostKey, Principals},
    session_ticket::SessionTicket,
    sessions::Sessions,
    token_hash::TokenHash,
};
use crate::{
    base::random_token,
    proxy::{Endpoint, Fleet},
    store::{HostNumber, Replicas},
    wire::Raw,
};

/// Maximum size of all POSTs that are forwarded while their hosts do not wait, in KiB. Further ones
/// are lost.
const MAX_FORWARDING_KIB: usize = 64 * 1024;

/// The state that all request handlers share.
pub(super) struct HttpFront {
    pub(super) fleet: Arc<Fleet>,
    pub(super) sessions: Sessions,
    pub(super) principals: Principals,
    /// True if dormouse listens on a loopback address only.
    is_for_this_machine: bool,
    /// The replicas that share a store with this process; `None` without a store.
    pub(super) replicas: Option<Arc<Replicas>>,
    /// The pages at which people log in to servers; `None` if they cannot.
    pub(super) person_logins: Option<PersonLogins>,
    pub(super) tasks: TaskTracker,
    /// The room for POSTs that are forwarded while their hosts do not wait: a permit for each KiB.
    pub(super) room_for_forwarding: Arc<Semaphore>,
    /// Ends the streams that hosts keep open without a limit.
    pub(super) stop: CancellationToken,
}

impl HttpFront {
    pub(super) fn new(
        fleet: Arc<Fleet>,
        address: SocketAddr,
        replicas: Option<Arc<Replicas>>,
        person_logins: Option<PersonLogins>,
    ) -> Self {
        Self {
            sessions: Sessions::new(fleet.settings().http.listening.session_timeout),
            principals: Principals::default(),
            is_for_this_machine: address.ip().is_loopback(),
            fleet,
            replicas,
            person_logins,
            tasks: TaskTracker::new(),
            room_for_forwarding: Arc::new(Semaphore::new(MAX_FORWARDING_KIB)),
            stop: CancellationToken::new(),
        }
    }

    /// Returns the id of a new session. It has only characters that a header may carry (2025-11-25,
    /// basic/transports, Session Management). `params`: those of `initialize`.
    pub(super) fn new_session_id(
        &self,
        token_hash: TokenHash,
        endpoint: &Endpoint,
        params: Option<&Raw>,
        is_primed: bool,
    ) -> String {
        let Some(replicas) = &self.replicas else { return random_token::<24>() };
        let ticket = SessionTicket::new(replicas.mark(), endpoint, params, is_primed);
        ticket.seal(replicas.keys(), token_hash)
    }

    /// Returns the key of a host for which something is kept, and the number by which replicas know
    /// it; `None` without other replicas, or if nothing is.
    pub(super) fn kept_host(
        &self,
        endpoint: &Endpoint,
        key: impl FnOnce() -> HostKey,
    ) -> Option<(HostKey, HostNumber)> {
        let has_replicas = self.replicas.is_some();
        let is_kept =
            has_replicas && self.fleet.operator().replication().keeps_state_of_hosts(endpoint);
        is_kept.then(|| {
            let key = key();
            let number = key.number(&self.fleet);
            (key, number)
        })
    }

    /// Returns whether another replica has forwarded a request with these headers.
    pub(super) fn is_forwarded(&self, headers: &HeaderMap) -> bool {
        self.replicas.as_ref().is_some_and(|replicas| is_forwarded(replicas.keys(), headers))
    }

    /// Returns the reason that the shared store cannot be used; `None` if it can, or there is none.
    pub(super) fn store_outage(&self) -> Option<String> {
        self.replicas.as_ref()?.health().outage()
    }

    /// Returns whether the user of the host that sent a request is at this machine, as far as the
    /// headers show.
    pub(super) fn is_from_this_machine(&self, headers: &HeaderMap, version: Version) -> bool {
        let trusted = &self.fleet.settings().http.access.trusted_proxies;
        // Another replica may have forwarded the request.
        self.replicas.is_none()
            && self.is_for_this_machine
            && is_from_this_machine(headers, version, trusted)
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
                self.sessions.note_ended(&session);
                session.end().await;
            }
            for (key, principal) in self.principals.take_expired(timeout) {
                if let Some(replicas) =
                    self.replicas.as_ref().filter(|_| !self.principals.has(&key))
                {
                    replicas.forget_host(key.number(&self.fleet));
                }
                self.fleet.end_instances_of(principal);
            }
        }
    }
}
