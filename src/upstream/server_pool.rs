//! Servers that several fleets of this process use together.

use std::{pin::Pin, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use super::{
    Watchdog,
    carrier::{Carrier, CarrierFuture, ShutdownPolicy},
    inbound::ServerInbound,
    stderr::RecentLines,
};
use crate::{
    config::ServerConfig,
    peer::{Peer, read_messages},
    wire::{LineReader, Outbox, write_messages},
};

/// The servers that a process runs for all of its fleets. A fleet is connected to one as a host is
/// to a server that it has alone.
pub(crate) trait ServerPool: Send + Sync {
    /// Returns the pool's instance of a server. Returns `None` if the fleet has to
    /// connect the server itself.
    fn join<'a>(&'a self, joining: Joining<'a>) -> PoolFuture<'a>;
}

/// The parameters of a connection to the pool.
pub(crate) struct Joining<'a> {
    pub config: &'a ServerConfig,
    /// The configs that this process and its ancestors serve.
    pub lineage: Option<&'a str>,
    pub max_message_bytes: usize,
}

/// A server of the pool.
pub(crate) struct JoinedServer {
    pub stream: PoolStream,
    /// Its standard error; `None` if it is in another process.
    pub stderr: Option<RecentLines>,
}

pub(crate) type PoolFuture<'a> = Pin<Box<dyn Future<Output = Option<JoinedServer>> + Send + 'a>>;

/// A stream to a server of the pool, with one message per line.
pub(crate) type PoolStream = Box<dyn BothWays>;

/// A stream in both directions.
pub(crate) trait BothWays: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> BothWays for T {}

/// The services of a process for the servers of all its fleets.
#[derive(Clone, Default)]
pub(crate) struct ProcessServices {
    pub watchdog: Watchdog,
    /// `None` if the process has only one fleet.
    pub pool: Option<Arc<dyn ServerPool>>,
}

/// A connection to a server of the pool.
pub(super) struct PooledConnection;

impl PooledConnection {
    /// Starts the tasks that carry messages between the stream and the connection.
    pub(super) fn start(
        stream: PoolStream,
        inbound: ServerInbound,
        outbox: Outbox,
        max_message_bytes: usize,
        tasks: &TaskTracker,
    ) -> Self {
        let peer = inbound.peer().clone();
        let (input, output) = tokio::io::split(stream);
        let lines = LineReader::new(input, max_message_bytes);
        let reading = read_messages(lines, max_message_bytes, peer.clone(), Arc::new(inbound));
        tasks.spawn(async move {
            tokio::select! {
                // The pool has ended, or the server's messages cannot be read any more.
                _ = reading => {}
                () = peer.closed() => {}
            }
            peer.close();
        });
        // Ends when the outbox is closed, with the connection.
        tasks.spawn(async move {
            // The reader notices that the pool has ended.
            let _ = write_messages(outbox, output).await;
        });
        Self
    }
}

impl Carrier for PooledConnection {
    fn end(self: Box<Self>, peer: Peer, _: ShutdownPolicy) -> CarrierFuture<'static, ()> {
        peer.close();
        Box::pin(std::future::ready(()))
    }

    fn is_pooled(&self) -> bool {
        true
    }
}
