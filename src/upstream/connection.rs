//! A live connection, and the process or HTTP exchange that carries it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    activity::Activity,
    carrier::{Carrier, ShutdownPolicy},
    noise::Noise,
};
use crate::{
    catalog::{ProtocolSupport, ServerCatalog},
    peer::Peer,
    protocol::Greeting,
};

/// A live connection to a server, shared by all its users.
pub(super) struct ServerConnection {
    pub(super) peer: Peer,
    pub(super) greeting: Greeting,
    /// The declared capabilities, and the eras and framings that the server was seen to use.
    pub(super) terms: ConnectionTerms,
    pub(super) activity: Arc<Activity>,
    pub(super) noise: Arc<Noise>,
    /// True once a host has used the connection. Before that, it can be replaced by one in another
    /// era without loss.
    is_used: AtomicBool,
}

impl ServerConnection {
    pub(super) fn new(
        peer: Peer,
        greeting: Greeting,
        terms: ConnectionTerms,
        activity: Arc<Activity>,
        noise: Arc<Noise>,
    ) -> Self {
        Self { peer, greeting, terms, activity, noise, is_used: AtomicBool::new(false) }
    }

    /// Returns whether a host has used the connection, so that it is not replaced by one that suits
    /// another host better.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Marks the connection as used by a host, which fixes its era.
    pub(super) fn mark_used(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }
}

/// The capabilities declared to a server, and the era and framing in use. The server's lists may
/// depend on them.
#[derive(Clone, Debug)]
pub(super) struct ConnectionTerms {
    /// Names of the declared capabilities.
    pub(super) declared: Vec<String>,
    pub(super) spoken: ProtocolSupport,
}

/// A connection with its carrier, which only the actor holds.
pub(super) struct OwnedConnection {
    pub(super) connection: Arc<ServerConnection>,
    pub(super) carrier: Box<dyn Carrier>,
    /// The lists that the server gave when it was connected, until the actor takes them; `None` for
    /// a wake, which does not wait for the lists.
    pub(super) fetched_catalog: Option<ServerCatalog>,
}

impl OwnedConnection {
    /// Closes the connection, which fails the requests in flight, and ends its carrier.
    pub(super) async fn end(self, policy: ShutdownPolicy) {
        self.connection.activity.close();
        self.carrier.end(self.connection.peer.clone(), policy).await;
    }

    /// Describes the end of the server and its last output.
    pub(super) async fn describe_end(&self) -> String {
        let status = self.carrier.describe_exit().await;
        format!("{status}{}", self.carrier.stderr_quote())
    }

    /// Returns whether only the session has expired, so that a new connection follows at once.
    pub(super) fn is_expired(&self) -> bool {
        self.carrier.is_expired()
    }

    /// Returns whether the next connection has to wait for the end of this one: two processes may
    /// use the same lock or port.
    pub(super) fn must_end_before_next(&self) -> bool {
        self.carrier.must_end_before_next()
    }
}
