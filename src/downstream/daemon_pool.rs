//! The servers that all hosts of the daemon share, each behind a fleet of its own.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::line_host::LineHost;
use crate::{
    auth::Auth,
    base::Lock,
    config::{
        Config, LaunchFacts, LaunchIdentity, ListSettings, ServerConfig, Settings, Surface,
        Wrapping,
    },
    proxy::{Fleet, Storage},
    upstream::{
        JoinedServer, Joining, PoolFuture, PoolStream, ProcessServices, ServerPool, Watchdog,
    },
};

/// Time for which a server stays connected after its last user has left, so that commands that
/// follow each other find it awake.
const LINGER: Duration = Duration::from_secs(10);
/// Maximum time for all servers to end with the daemon.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Capacity of the pipe between a fleet and the pool, in bytes.
const MAX_PIPE_BYTES: usize = 256 * 1024;

/// A server of the pool that is not ending.
pub(crate) struct RunningServer {
    pub name: String,
    /// The number of the fleets and commands that use it.
    pub users: usize,
    pub fleet: Arc<Fleet>,
}

/// The pool of a daemon. Its servers run on one runtime, whichever fleet connects them.
#[derive(Clone)]
pub(crate) struct DaemonPool(Arc<PoolInner>);

struct PoolInner {
    runtime: Handle,
    services: ProcessServices,
    auth: Auth,
    servers: Lock<Vec<PooledServer>>,
    tasks: TaskTracker,
    ending: CancellationToken,
}

/// A process of a server, from its first user until it has ended.
struct PooledServer {
    identity: LaunchIdentity,
    /// The name that its first user gave it.
    name: String,
    life: Life,
}

enum Life {
    /// Connected, or being connected.
    Running {
        fleet: Arc<Fleet>,
        /// The number of fleets that use it.
        users: usize,
        /// Incremented whenever a fleet joins or leaves, so that only the last departure ends the
        /// server.
        changes: u64,
    },
    /// The token is cancelled when the process has ended.
    Ending(CancellationToken),
}

/// The use of a server by a fleet, which ends when it is dropped.
struct ServerUse {
    pool: DaemonPool,
    /// The fleet behind which the server is.
    fleet: Arc<Fleet>,
    /// The ends of earlier processes of the server. No two run at a time.
    earlier: Vec<CancellationToken>,
}

impl Drop for ServerUse {
    fn drop(&mut self) {
        let (pool, fleet) = (self.pool.clone(), self.fleet.clone());
        let PoolInner { tasks, runtime, .. } = &*self.pool.0;
        tasks.spawn_on(async move { pool.leave(&fleet).await }, runtime);
    }
}

impl DaemonPool {
    /// Creates an empty pool whose servers run on the present runtime.
    pub(crate) fn new(watchdog: Watchdog, auth: Auth) -> Self {
        Self(Arc::new(PoolInner {
            runtime: Handle::current(),
            services: ProcessServices { watchdog, pool: None },
            auth,
            servers: Lock::default(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        }))
    }

    /// Returns the servers that run.
    pub(crate) fn running(&self) -> Vec<RunningServer> {
        let servers = self.0.servers.lock();
        let running = servers.iter().filter_map(|server| match &server.life {
            Life::Running { fleet, users, .. } => Some(RunningServer {
                name: server.name.clone(),
                users: *users,
                fleet: fleet.clone(),
            }),
            Life::Ending(_) => None,
        });
        running.collect()
    }

    /// Ends all servers, and waits for them.
    pub(crate) async fn stop(&self) {
        self.0.ending.cancel();
        let servers = std::mem::take(&mut *self.0.servers.lock());
        let running = servers.into_iter().filter_map(|server| match server.life {
            Life::Running { fleet, .. } => Some(fleet),
            Life::Ending(_) => None,
        });
        for fleet in running {
            self.0.tasks.spawn(async move { fleet.stop().await });
        }
        self.0.tasks.close();
        if tokio::time::timeout(STOP_TIMEOUT, self.0.tasks.wait()).await.is_err() {
            tracing::error!("some shared servers did not stop in time");
        }
    }

    /// Serves another process of the user as the host of one server, on this thread, until the
    /// process closes its end or `stop` is cancelled.
    ///
    /// # Errors
    /// If the stream cannot be used.
    #[cfg(unix)]
    pub(crate) fn serve_process(
        &self,
        identity: LaunchIdentity,
        joining: &Joining<'_>,
        stream: std::os::unix::net::UnixStream,
        stop: &CancellationToken,
    ) -> std::io::Result<()> {
        self.0.runtime.block_on(async {
            stream.set_nonblocking(true)?;
            let stream = tokio::net::UnixStream::from_std(stream)?;
            let used = self.admit(identity, settings_of(joining), joining.config.pooled());
            // The task ends with the stream; a panic has been logged.
            let _ = self.0.tasks.spawn(serve(used, stream, stop.clone())).await;
            Ok(())
        })
    }

    /// Counts one more user of the server with this identity, which is made for its first user.
    fn admit(
        &self,
        identity: LaunchIdentity,
        settings: Settings,
        server: ServerConfig,
    ) -> ServerUse {
        let mut servers = self.0.servers.lock();
        let mut earlier = Vec::new();
        for server in servers.iter_mut().filter(|server| server.identity == identity) {
            match &mut server.life {
                Life::Running { fleet, users, changes } => {
                    *users += 1;
                    *changes += 1;
                    let (pool, fleet) = (self.clone(), fleet.clone());
                    return ServerUse { pool, fleet, earlier: Vec::new() };
                }
                Life::Ending(ended) => earlier.push(ended.clone()),
            }
        }
        let PoolInner { services, auth, .. } = &*self.0;
        let name = server.name.clone();
        let config = Config { settings, servers: vec![server] };
        let fleet = Fleet::new(config, services, Storage::default(), auth.clone());
        let life = Life::Running { fleet: fleet.clone(), users: 1, changes: 0 };
        servers.push(PooledServer { identity, name, life });
        ServerUse { pool: self.clone(), fleet, earlier }
    }

    /// Counts a fleet as gone, and ends the server if no other fleet joins for a time.
    async fn leave(&self, fleet: &Arc<Fleet>) {
        let Some(changes) = self.note_departure(fleet) else { return };
        // The next fleet gets another attempt, and not the strikes of this one.
        let has_failed = fleet.operator().overview().iter().any(|server| server.status.strikes > 0);
        if !has_failed {
            self.0.ending.run_until_cancelled(tokio::time::sleep(LINGER)).await;
        }
        if let Some(ended) = self.begin_end(fleet, changes) {
            fleet.stop().await;
            ended.cancel();
            let is_over = |life: &Life| matches!(life, Life::Ending(ended) if ended.is_cancelled());
            self.0.servers.lock().retain(|server| !is_over(&server.life));
        }
    }

    /// Counts a user less, and returns the number of changes so far.
    fn note_departure(&self, of: &Arc<Fleet>) -> Option<u64> {
        self.0.servers.lock().iter_mut().find_map(|server| match &mut server.life {
            Life::Running { fleet, users, changes } if Arc::ptr_eq(fleet, of) => {
                *users -= 1;
                *changes += 1;
                Some(*changes)
            }
            _ => None,
        })
    }

    /// Notes that a server is being ended, if it has no user and has not changed since. Returns the
    /// token for its end.
    fn begin_end(&self, of: &Arc<Fleet>, since: u64) -> Option<CancellationToken> {
        let mut servers = self.0.servers.lock();
        let unused = servers.iter_mut().find(|server| match &server.life {
            Life::Running { fleet, users: 0, changes } => {
                Arc::ptr_eq(fleet, of) && *changes == since
            }
            _ => false,
        })?;
        let ended = CancellationToken::new();
        unused.life = Life::Ending(ended.clone());
        Some(ended)
    }
}

impl ServerPool for DaemonPool {
    fn join<'a>(&'a self, joining: Joining<'a>) -> PoolFuture<'a> {
        Box::pin(async move {
            let identity = joining.config.shared_identity()?;
            let (settings, server) = (settings_of(&joining), joining.config.pooled());
            let pool = self.clone();
            let joined = self.0.runtime.spawn(async move {
                let used = pool.admit(identity, settings, server);
                let stderr = used.fleet.operator().stderr_of_only_server();
                let (near, far) = tokio::io::duplex(MAX_PIPE_BYTES);
                let tasks = pool.0.tasks.clone();
                let stop = pool.0.ending.clone();
                tasks.spawn(serve(used, far, stop));
                JoinedServer { stream: Box::new(near) as PoolStream, stderr }
            });
            // No outcome means that the daemon ends; then the fleet's own connection ends soon.
            joined.await.ok()
        })
    }
}

/// Serves a fleet as the host of one server until it closes its end or `stop` is cancelled.
async fn serve<S>(mut used: ServerUse, stream: S, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    for ended in std::mem::take(&mut used.earlier) {
        if stop.run_until_cancelled(ended.cancelled()).await.is_none() {
            return;
        }
    }
    let (input, output) = tokio::io::split(stream);
    let host = LineHost::attach(used.fleet.clone(), output);
    // The fleet is gone, however the stream ended.
    let _ = stop.run_until_cancelled(host.read(input)).await;
    host.end().await;
}

/// Returns the settings of a fleet that has only this server, and passes everything through. Rules
/// for hosts are those of the fleets that use it.
fn settings_of(joining: &Joining<'_>) -> Settings {
    let Joining { lineage, max_message_bytes, .. } = joining;
    let mut settings = Settings {
        lists: ListSettings { surface: Surface::Direct, ..ListSettings::default() },
        launch: LaunchFacts {
            lineage: lineage.map(str::to_owned),
            wrapping: Wrapping::Pooled,
            ..LaunchFacts::default()
        },
        ..Settings::default()
    };
    settings.limits.max_message_bytes = *max_message_bytes;
    settings
}
