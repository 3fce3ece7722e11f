//! The state that the clients of one daemon share.

use std::{os::unix::net::UnixStream, path::PathBuf, sync::Arc, time::Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    base::Lock,
    daemon::{Build, DaemonCommand, DaemonStatus, EndReason, Hello, SharedProcess, Welcome},
    downstream::{DaemonPool, RunningServer},
    upstream::{GroupMemory, ProcessServices, ServerPool, Watchdog},
};

/// A process that serves hosts, as the threads of its clients see it.
pub(super) struct DaemonState {
    /// `None` for a process that serves only the host that has started it.
    daemon: Option<DaemonIdentity>,
    started: Instant,
    connections: watch::Sender<Connections>,
    /// Set once the daemon ends. Its clients connect to another one then.
    ending: watch::Sender<Option<EndReason>>,
    /// The connections of commands that wait for the end of this process.
    kept: Lock<Vec<UnixStream>>,
    /// Cancelled when the sessions must end.
    pub(super) stop: CancellationToken,
    pub(super) services: ProcessServices,
}

/// The numbers of clients that are served.
#[derive(Clone, Copy, Default)]
pub(super) struct Connections {
    pub hosts: usize,
    pub commands: usize,
}

/// A kind of client.
#[derive(Clone, Copy)]
pub(super) enum Connected {
    Host,
    /// A command that uses a server of the daemon.
    Command,
}

/// The facts about a daemon that a process for one host does not have.
pub(super) struct DaemonIdentity {
    pub(super) config: PathBuf,
    pub(super) build: Build,
    pub(super) pool: DaemonPool,
}

impl DaemonState {
    pub(super) fn new(daemon: DaemonIdentity, watchdog: Watchdog) -> Arc<Self> {
        let pool: Arc<dyn ServerPool> = Arc::new(daemon.pool.clone());
        let services = ProcessServices { watchdog, pool: Some(pool) };
        Arc::new(Self { daemon: Some(daemon), services, ..Self::of_one_host() })
    }

    /// Returns the servers that the hosts of the daemon share.
    pub(super) fn pool(&self) -> Option<&DaemonPool> {
        self.daemon.as_ref().map(|daemon| &daemon.pool)
    }

    /// Returns the state of a process that serves its own host.
    pub(super) fn of_one_host() -> Self {
        Self {
            daemon: None,
            started: Instant::now(),
            connections: watch::Sender::default(),
            ending: watch::Sender::new(None),
            kept: Lock::default(),
            stop: CancellationToken::new(),
            services: ProcessServices::default(),
        }
    }

    /// Returns whether other hosts can be served by the same process.
    pub(super) fn is_shared(&self) -> bool {
        self.daemon.is_some()
    }

    /// Counts a client until the returned value is dropped.
    pub(super) fn count(&self, kind: Connected) -> CountedClient<'_> {
        self.connections.send_modify(|connections| *connections.of(kind) += 1);
        CountedClient { state: self, kind }
    }

    pub(super) fn connections(&self) -> watch::Receiver<Connections> {
        self.connections.subscribe()
    }

    /// Ends the daemon. Returns `false` if it ends already.
    pub(super) fn end(&self, reason: EndReason) -> bool {
        self.ending.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert(reason);
            is_first
        })
    }

    pub(super) fn ending(&self) -> watch::Receiver<Option<EndReason>> {
        self.ending.subscribe()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.borrow().is_some()
    }

    /// Keeps a connection open until this process has ended, which tells the other end of it.
    pub(super) fn keep_until_end(&self, connection: UnixStream) {
        self.kept.lock().push(connection);
    }

    /// Returns the answer to a client that has to be served by another daemon: this one is ending,
    /// or ends now because the client's program is newer.
    pub(super) fn farewell(&self, client: &Hello) -> Option<Welcome> {
        let is_newer =
            |own: &DaemonIdentity| client.can_start_build && client.build.is_newer_than(&own.build);
        if self.daemon.as_ref().is_some_and(is_newer) {
            let version = client.build.version();
            tracing::info!(version, "a newer program replaces this daemon");
            self.end(EndReason::Replaced);
            return Some(Welcome::Yields);
        }
        self.is_ending().then_some(Welcome::Ending)
    }

    /// Obeys a command. Returns the state before it, or `None` if the daemon is ending already.
    pub(super) fn obey(&self, command: DaemonCommand) -> Option<DaemonStatus> {
        let DaemonIdentity { config, build, pool } = self.daemon.as_ref()?;
        let memory = GroupMemory::read();
        let shared = |RunningServer { name, users, fleet }: RunningServer| {
            let groups = fleet.operator().process_groups();
            SharedProcess { server: name, users, memory: memory.of(&groups) }
        };
        let status = DaemonStatus {
            pid: std::process::id(),
            build: build.clone(),
            config: config.clone(),
            uptime_seconds: self.started.elapsed().as_secs(),
            hosts: self.connections.borrow().hosts,
            shared: pool.running().into_iter().map(shared).collect(),
        };
        let is_obeyed = match command {
            DaemonCommand::Status => !self.is_ending(),
            DaemonCommand::End(reason) => self.end(reason),
        };
        is_obeyed.then_some(status)
    }
}

impl Connections {
    pub(super) fn are_none(&self) -> bool {
        self.hosts + self.commands == 0
    }

    fn of(&mut self, kind: Connected) -> &mut usize {
        match kind {
            Connected::Host => &mut self.hosts,
            Connected::Command => &mut self.commands,
        }
    }
}

/// A client that is served.
pub(super) struct CountedClient<'a> {
    state: &'a DaemonState,
    kind: Connected,
}

impl Drop for CountedClient<'_> {
    fn drop(&mut self) {
        self.state.connections.send_modify(|connections| *connections.of(self.kind) -= 1);
    }
}
