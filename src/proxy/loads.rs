//! Whose a load is (DESIGN.md section 2): the process's, or that of the session that asked for it.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Fleet, Host, Principal};
use crate::{
    base::Lock,
    base::run_blocking,
    catalog::{Origin, Presence, ServerId, Snapshot},
    config,
};

/// Who has loaded which servers.
pub(super) struct Loads {
    policy: config::Loads,
    by_principal: Lock<HashMap<Principal, HashSet<ServerId>>>,
    /// Where what is loaded is remembered from one run to the next, if it is.
    file: Option<PathBuf>,
}

impl Loads {
    pub(super) fn new(policy: config::Loads, file: Option<PathBuf>) -> Self {
        Self { policy, by_principal: Lock::default(), file }
    }

    /// Whether a host sees what hosts have loaded of this server.
    fn are_seen_by(&self, principal: Principal, server: ServerId) -> bool {
        self.policy == config::Loads::Process
            || self
                .by_principal
                .lock()
                .get(&principal)
                .is_some_and(|loaded| loaded.contains(&server))
    }

    /// Takes note that a host has loaded a server; whether that is new to it alone.
    fn add(&self, principal: Principal, server: ServerId) -> bool {
        self.policy == config::Loads::Session
            && self.by_principal.lock().entry(principal).or_default().insert(server)
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.by_principal.lock().remove(&principal);
    }
}

impl Fleet {
    /// The snapshot as a host sees it that has loaded what it has loaded.
    pub(super) fn seen_by(&self, snapshot: Arc<Snapshot>, principal: Principal) -> Arc<Snapshot> {
        match self.loads.policy {
            config::Loads::Process => snapshot,
            config::Loads::Session => {
                let is_loaded = |server| self.loads.are_seen_by(principal, server);
                Arc::new(snapshot.seen_by(is_loaded))
            }
        }
    }

    /// Whether a host has to do with a server: it, or any other where loads are everybody's, has loaded it, or
    /// nobody had to.
    pub(super) fn has_loaded(&self, host: &dyn Host, server: ServerId) -> bool {
        let snapshot = self.snapshot();
        let view = snapshot.view(server);
        view.is_some_and(|view| self.concerns(host, server, &view.presence))
    }

    /// Whether a host is to hear of what becomes of a server.
    pub(super) fn concerns(&self, host: &dyn Host, server: ServerId, presence: &Presence) -> bool {
        let is_a_load = matches!(presence, Presence::Live { origin: Origin::HostsRequest, .. });
        host.endpoint().shows(server)
            && (!is_a_load || self.loads.are_seen_by(host.principal(), server))
    }

    /// A host has loaded a server that others may have loaded before it: it is told what that brings it.
    pub(super) fn loaded_by(&self, principal: Principal, server: ServerId) {
        if !self.loads.add(principal, server) {
            return;
        }
        let snapshot = self.snapshot();
        let Some(Presence::Live { exposed, origin: Origin::HostsRequest }) =
            snapshot.view(server).map(|view| &view.presence)
        else {
            return;
        };
        self.audience.announce(exposed.catalog.brings(), |host| {
            host.principal() == principal && host.endpoint().shows(server)
        });
    }

    /// The servers that were loaded when dormouse last ended.
    pub(super) fn remembered_loads(&self) -> BTreeSet<String> {
        self.loads.file.as_deref().map(read).unwrap_or_default()
    }

    /// Remembers that a server was loaded.
    pub(super) fn remember_load(&self, server: ServerId) {
        let Some(file) = self.loads.file.clone() else { return };
        let name = self.config_of(server).name.clone();
        self.context.tasks.spawn(run_blocking(move || {
            if let Err(error) = add(&file, name) {
                tracing::warn!(path = %file.display(), %error, "cannot remember what is loaded");
            }
        }));
    }
}

/// One name a line. A file that cannot be read has none.
fn read(file: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// While no other process or thread does.
fn add(file: &Path, name: String) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let lock = File::create(directory.join("lock"))?;
    config::lock(&lock)?;
    let mut loaded = read(file);
    if !loaded.insert(name) {
        return Ok(());
    }
    let mut fresh = tempfile::NamedTempFile::new_in(directory)?;
    for name in loaded {
        writeln!(fresh, "{name}")?;
    }
    fresh.persist(file)?;
    Ok(())
}
