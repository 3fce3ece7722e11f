//! A server that is awake, and stays awake while it is in use.

use std::{sync::Arc, time::Duration};

use super::{AttemptError, activity::ActivityGuard, connection::ServerConnection, fetch};
use crate::{peer::Peer, protocol::Greeting, wire::Raw};

/// A server that is awake, and stays awake while this lives.
pub(crate) struct Lease {
    connection: Arc<ServerConnection>,
    _in_use: ActivityGuard,
}

impl Lease {
    pub(super) fn on(connection: &Arc<ServerConnection>) -> Option<Self> {
        let in_use = connection.activity.begin()?;
        Some(Self { connection: connection.clone(), _in_use: in_use })
    }

    /// Marks the connection as used by a host, which fixes its era.
    pub(super) fn mark_used(self) -> Self {
        self.connection.mark_used();
        self
    }

    /// Returns one more lease on the same connection; `None` if that is being closed.
    pub(crate) fn another(&self) -> Option<Self> {
        Self::on(&self.connection)
    }

    /// Reads a list of the server that is not part of its catalog, to its last page.
    ///
    /// # Errors
    /// If the server refuses or does not answer, or the list is too long.
    pub(crate) async fn list(
        &self,
        method: &'static str,
        member: &str,
        silence: Duration,
    ) -> Result<Vec<Raw>, AttemptError> {
        let ServerConnection { peer, greeting, .. } = self.connection.as_ref();
        fetch::fetch_list(peer, greeting, (method, member), silence).await
    }

    pub(super) fn connection(&self) -> &Arc<ServerConnection> {
        &self.connection
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.connection.peer
    }

    pub(crate) fn greeting(&self) -> &Greeting {
        &self.connection.greeting
    }
}
