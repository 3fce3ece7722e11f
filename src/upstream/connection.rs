//! A live connection, and what carries it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    activity::Activity,
    http,
    noise::Noise,
    process::{ServerProcess, ShutdownPolicy},
};
use crate::{
    catalog::{ProtocolSupport, ServerCatalog},
    peer::Peer,
    protocol::Greeting,
};

/// A live connection to a server. Shared by all that use it.
pub(super) struct ServerConnection {
    pub(super) peer: Peer,
    pub(super) greeting: Greeting,
    /// What it was declared, and what it has been seen to speak.
    pub(super) terms: ConnectionTerms,
    pub(super) activity: Arc<Activity>,
    pub(super) noise: Arc<Noise>,
    /// Whether a host has used it. Before that nothing is lost when it is made anew in another era.
    pub(super) is_used: AtomicBool,
}

impl ServerConnection {
    /// Whether a host has used it: it is not replaced by one that would suit another host better.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

/// What a server was told of its host, and how it is spoken to: what it lists may depend on that.
#[derive(Clone, Debug)]
pub(super) struct ConnectionTerms {
    /// Names of the declared capabilities.
    pub(super) declared: Vec<String>,
    pub(super) spoken: ProtocolSupport,
}

/// A connection with what carries it, which only the actor holds.
pub(super) struct OwnedConnection {
    pub(super) connection: Arc<ServerConnection>,
    pub(super) carrier: Carrier,
    /// What the server listed when it was connected, until the actor takes it; `None` for a wake, which
    /// does not wait for the lists.
    pub(super) fetched_catalog: Option<ServerCatalog>,
}

/// The process behind a connection, or the HTTP exchanges that it consists of.
pub(super) enum Carrier {
    Process(ServerProcess),
    Http(http::HttpCarrier),
}

impl OwnedConnection {
    /// Closes the connection, which fails what is in flight, and ends what carries it.
    pub(super) async fn end(self, policy: ShutdownPolicy) {
        self.connection.activity.close();
        self.carrier.end(&self.connection.peer, policy).await;
    }

    /// How it ended and what it said last; for a server that is about to be gone.
    pub(super) async fn describe_end(&self) -> String {
        let status = self.carrier.describe_exit().await;
        format!("{status}{}", self.carrier.stderr_quote())
    }

    /// Whether it ended only because its session did, so that the next one follows at once.
    pub(super) fn is_expired(&self) -> bool {
        matches!(&self.carrier, Carrier::Http(carrier) if carrier.is_expired())
    }

    /// Whether the next connection has to wait for the end of this one: two processes may share a lock
    /// or a port.
    pub(super) fn must_end_before_next(&self) -> bool {
        matches!(self.carrier, Carrier::Process(_))
    }
}

impl Carrier {
    pub(super) async fn end(self, peer: &Peer, policy: ShutdownPolicy) {
        match self {
            Self::Process(process) => {
                peer.close();
                process.end(policy).await;
            }
            Self::Http(carrier) => {
                carrier.settle().await;
                peer.close();
                carrier.end().await;
            }
        }
    }

    /// ` with exit status …`, or nothing where there is none.
    pub(super) async fn describe_exit(&self) -> String {
        match self {
            Self::Process(process) => process.describe_exit().await,
            Self::Http(_) => String::new(),
        }
    }

    /// The end of its standard error, as the end of a sentence.
    pub(super) fn stderr_quote(&self) -> String {
        match self {
            Self::Process(process) => process.stderr_quote(),
            Self::Http(_) => String::new(),
        }
    }
}
