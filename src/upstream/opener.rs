//! The way to open a connection: start a process, make HTTP exchanges, or join a shared server.

use std::{pin::Pin, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    AttemptError,
    carrier::Carrier,
    http::{HttpClient, HttpConnector},
    inbound::ServerInbound,
    process::{ServerProcess, StdioPipes},
    server_pool::{JoinedServer, Joining, PooledConnection, ProcessServices},
    stderr::{StderrOutput, StderrTail},
};
use crate::{
    catalog::ServerCatalog,
    config::{Framing, Launch, Mask, ServerConfig, Transport},
    peer::{Peer, read_messages},
    wire::{LineReader, Outbox, credentials::Credentials, write_messages},
};

/// Maximum time for which the output of a process is read after it has exited or closed its input.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Opens connections to servers. Clones are cheap.
#[derive(Clone)]
pub(crate) struct Opener(Arc<dyn OpenConnection>);

pub(super) type OpeningFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn Carrier>, AttemptError>> + Send + 'a>>;

/// The one operation of an opener. Tests implement it with servers in memory.
pub(super) trait OpenConnection: Send + Sync {
    fn open<'a>(&'a self, opening: Opening<'a>) -> OpeningFuture<'a>;
}

/// The parameters of a new connection.
pub(super) struct Opening<'a> {
    pub(super) config: &'a ServerConfig,
    /// The framing that the server was seen to use; `None` if it is unknown.
    pub(super) framing: Option<Framing>,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// The server's catalog, as soon as it is known.
    pub(super) catalog: Arc<ArcSwapOption<ServerCatalog>>,
    /// Receives the lines of standard error.
    pub(super) stderr: Arc<StderrTail>,
    /// Receives the messages of the server.
    pub(super) inbound: ServerInbound,
    /// The queue of messages to the server.
    pub(super) outbox: Outbox,
    pub(super) tasks: &'a TaskTracker,
    pub(super) shutdown: &'a CancellationToken,
}

/// Opens real connections.
struct SystemOpener {
    max_message_bytes: usize,
    /// The configs that this process and its ancestors serve, for `LINEAGE_VARIABLE`.
    lineage: Option<String>,
    services: ProcessServices,
    http: HttpClient,
}

impl Opener {
    pub(crate) fn new(
        max_message_bytes: usize,
        lineage: Option<String>,
        services: ProcessServices,
    ) -> Self {
        let http = HttpClient::default();
        Self(Arc::new(SystemOpener { max_message_bytes, lineage, services, http }))
    }

    #[cfg(test)]
    pub(super) fn of(operation: impl OpenConnection + 'static) -> Self {
        Self(Arc::new(operation))
    }

    pub(super) async fn open(
        &self,
        opening: Opening<'_>,
    ) -> Result<Box<dyn Carrier>, AttemptError> {
        self.0.open(opening).await
    }
}

impl OpenConnection for SystemOpener {
    fn open<'a>(&'a self, opening: Opening<'a>) -> OpeningFuture<'a> {
        Box::pin(async move {
            let Opening { config, stderr, inbound, outbox, tasks, .. } = opening;
            let transport = config.transport.as_ref().map_err(Clone::clone)?;
            let carrier: Box<dyn Carrier> = match transport {
                Transport::Stdio(launch) => {
                    if let Some(joined) = self.join_pool(config).await {
                        let JoinedServer { stream, stderr: lines } = joined;
                        if let Some(lines) = lines {
                            stderr.follow(lines);
                        }
                        let limit = self.max_message_bytes;
                        let pooled = PooledConnection::start(stream, inbound, outbox, limit, tasks);
                        return Ok(Box::new(pooled) as Box<dyn Carrier>);
                    }
                    let output = StderrOutput { mask: Mask::of(config), recent: stderr.lines() };
                    Box::new(run_process(launch, output, inbound, outbox, self, tasks)?)
                }
                Transport::Http(remote) => {
                    let connector = HttpConnector {
                        remote,
                        client: &self.http,
                        credentials: opening.credentials,
                        inbound,
                        outbox,
                        catalog: opening.catalog,
                        max_message_bytes: self.max_message_bytes,
                        tasks,
                        shutdown: opening.shutdown,
                    };
                    Box::new(connector.open(opening.framing.unwrap_or(remote.framing)).await?)
                }
            };
            Ok(carrier)
        })
    }
}

impl SystemOpener {
    /// Connects the server in the pool of the process, if it is shared.
    async fn join_pool(&self, config: &ServerConfig) -> Option<JoinedServer> {
        let pool = self.services.pool.as_ref()?;
        let (lineage, max_message_bytes) = (self.lineage.as_deref(), self.max_message_bytes);
        pool.join(Joining { config, lineage, max_message_bytes }).await
    }
}

/// Starts a process, and the tasks that carry messages between its pipes and the connection.
fn run_process(
    launch: &Launch,
    output: StderrOutput,
    inbound: ServerInbound,
    outbox: Outbox,
    system: &SystemOpener,
    tasks: &TaskTracker,
) -> Result<ServerProcess, AttemptError> {
    let SystemOpener { max_message_bytes, lineage, services, .. } = system;
    let watchdog = &services.watchdog;
    let peer = inbound.peer().clone();
    let (process, StdioPipes { stdin, stdout }) = ServerProcess::spawn(
        inbound.server(),
        launch,
        output,
        lineage.as_deref(),
        watchdog,
        tasks,
    )?;
    let lines = LineReader::new(stdout, *max_message_bytes);
    // Both tasks end with the pipes: the writer when the outbox closes, the reader when the process
    // is gone.
    let reading = read_messages(lines, *max_message_bytes, peer.clone(), Arc::new(inbound));
    let reader = CloseOnDrop(peer.clone());
    tasks.spawn(async move {
        tokio::select! {
            // A grandchild may hold the pipe open after dormouse has given up the connection.
            () = reader.0.closed() => {}
            // The end of the stream, a read error or a panic ends the connection.
            _ = reading => {}
        }
    });
    tasks.spawn(write_until_closed(outbox, stdin, peer.clone()));
    let exited = process.exited();
    tasks.spawn(async move {
        exited.await;
        // The last output is read first. The stream may never end, since children of the process
        // may hold it open.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, peer.closed()).await;
        peer.close();
    });
    Ok(process)
}

/// Closes the connection when its task ends, even by a panic.
struct CloseOnDrop(Peer);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn write_until_closed(outbox: Outbox, stdin: tokio::process::ChildStdin, peer: Peer) {
    tokio::select! {
        written = write_messages(outbox.clone(), stdin) => {
            if written.is_err() {
                // As after an exit of the process, the last output is read first.
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, peer.closed()).await;
                peer.close();
            }
        }
        // The queue is written for a moment; a server that does not read is not waited for.
        () = async {
            peer.closed().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        } => {}
    }
}
