//! The state that the clients of one daemon share.

use std::{path::PathBuf, sync::Arc, time::Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    daemon::{Build, DaemonCommand, DaemonStatus, Hello, Redial, SharedServer},
    downstream::DaemonPool,
    upstream::{ProcessServices, ServerPool, Watchdog},
};

/// A process that serves hosts, as the threads of its clients see it.
pub(super) struct DaemonState {
    /// `None` for a process that serves only the host that has started it.
    daemon: Option<DaemonIdentity>,
    started: Instant,
    /// The number of hosts that are served.
    hosts: watch::Sender<usize>,
    /// Set once the daemon ends. Its clients connect to another one then.
    ending: watch::Sender<Option<Redial>>,
    /// Cancelled when the sessions must end.
    pub(super) stop: CancellationToken,
    pub(super) services: ProcessServices,
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
            hosts: watch::Sender::new(0),
            ending: watch::Sender::new(None),
            stop: CancellationToken::new(),
            services: ProcessServices::default(),
        }
    }

    /// Returns whether other hosts can be served by the same process.
    pub(super) fn is_shared(&self) -> bool {
        self.daemon.is_some()
    }

    /// Counts a host until the returned value is dropped.
    pub(super) fn count_host(&self) -> CountedHost<'_> {
        self.hosts.send_modify(|hosts| *hosts += 1);
        CountedHost(self)
    }

    pub(super) fn hosts(&self) -> watch::Receiver<usize> {
        self.hosts.subscribe()
    }

    /// Ends the daemon, unless it ends already.
    pub(super) fn end(&self, redial: Redial) {
        self.ending.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert(redial);
            is_first
        });
    }

    pub(super) fn ending(&self) -> watch::Receiver<Option<Redial>> {
        self.ending.subscribe()
    }

    /// Returns whether a client has to be served by another daemon: this one is ending. It ends if
    /// the client's program is newer.
    pub(super) fn yields_to(&self, client: &Hello) -> bool {
        let is_newer =
            |own: &DaemonIdentity| client.can_start_build && client.build.is_newer_than(&own.build);
        if self.daemon.as_ref().is_some_and(is_newer) {
            let version = client.build.version();
            tracing::info!(version, "a newer program replaces this daemon");
            self.end(Redial::Replaced);
        }
        self.ending.borrow().is_some()
    }

    /// Obeys a command. Returns the state before it.
    pub(super) fn obey(&self, command: DaemonCommand) -> Option<DaemonStatus> {
        let DaemonIdentity { config, build, pool } = self.daemon.as_ref()?;
        let shared = |(name, users)| SharedServer { name, users };
        let status = DaemonStatus {
            pid: std::process::id(),
            build: build.clone(),
            config: config.clone(),
            uptime_seconds: self.started.elapsed().as_secs(),
            hosts: *self.hosts.borrow(),
            shared: pool.users().into_iter().map(shared).collect(),
        };
        if let DaemonCommand::End(redial) = command {
            self.end(redial);
        }
        Some(status)
    }
}

/// A host that is served.
pub(super) struct CountedHost<'a>(&'a DaemonState);

impl Drop for CountedHost<'_> {
    fn drop(&mut self) {
        self.0.hosts.send_modify(|hosts| *hosts -= 1);
    }
}
