//! A live connection, and the process behind it.

use std::sync::Arc;

use super::{
    activity::Activity,
    process::{Grace, ServerProcess},
};
use crate::{catalog::ServerCatalog, peer::Peer, protocol::Greeting};

/// A live connection to a server. Shared by all that use it.
pub(super) struct Connection {
    pub(super) peer: Peer,
    pub(super) greeting: Greeting,
    pub(super) activity: Arc<Activity>,
}

/// A connection with the process behind it, which only the actor holds.
pub(super) struct Link {
    pub(super) connection: Arc<Connection>,
    pub(super) process: ServerProcess,
    /// What the server listed when it was connected, until the actor takes it; `None` for a wake, which
    /// does not wait for the lists.
    pub(super) brought: Option<ServerCatalog>,
}

impl Link {
    /// Closes the connection, which fails what is in flight, and ends the process.
    pub(super) async fn end(self, grace: Grace) {
        self.connection.activity.close();
        self.connection.peer.close();
        self.process.end(grace).await;
    }

    /// How it ended and what it said last; for a process that is about to be gone.
    pub(super) async fn epitaph(&self) -> String {
        format!("{}{}", self.process.describe_exit().await, self.process.last_words())
    }
}
