//! The end of `dormouse status`: the processes that sharing saves, or would save.

use std::{collections::BTreeMap, path::Path};

use crate::{
    base::visible,
    config::{Config, ServerConfig},
    control::StatusReport,
};

/// The servers that hosts of a config share now, by name.
pub(super) struct SharedServers(BTreeMap<String, Sharing>);

#[derive(Default)]
struct Sharing {
    hosts: usize,
    processes: usize,
    memory: Option<u64>,
}

impl SharedServers {
    /// Asks the daemons of a config.
    #[cfg(unix)]
    pub(super) fn of(config: &Path) -> Self {
        let mut shared: BTreeMap<String, Sharing> = BTreeMap::new();
        let path = std::path::absolute(config);
        for process in path.iter().flat_map(|path| super::daemon::shared_processes(path)) {
            let sharing = shared.entry(process.server).or_default();
            sharing.hosts += process.users;
            sharing.processes += 1;
            sharing.memory = sharing.memory.or(Some(0)).zip(process.memory).map(|(a, b)| a + b);
        }
        Self(shared)
    }

    #[cfg(not(unix))]
    pub(super) fn of(_: &Path) -> Self {
        Self(BTreeMap::new())
    }

    /// Has the report of a daemon count the processes of shared servers, and not their hosts.
    pub(super) fn count_processes(&self, report: &mut StatusReport) {
        for server in &mut report.servers {
            if let Some(Sharing { hosts, processes, memory }) = self.0.get(&server.name) {
                let others = server.awake.saturating_sub(*hosts);
                server.awake = server.awake.min(others + processes);
                server.memory = server.memory.or(*memory);
            }
        }
    }

    /// Prints a sentence for each server that several hosts share, or could share.
    pub(super) fn print(&self, config: &Config, reports: &[StatusReport]) {
        let several = self.0.iter().filter(|(_, sharing)| sharing.hosts > 1);
        let savings = several.map(|(name, sharing)| saving(config, name, sharing));
        for line in advice(config, reports).into_iter().chain(savings) {
            outln!("{line}");
        }
    }
}

/// Returns a sentence for each server of which several hosts have a process each.
fn advice(config: &Config, reports: &[StatusReport]) -> Vec<String> {
    // Hosts of one daemon can share, and no others.
    let daemon = reports.first().and_then(|report| report.pid);
    if reports.iter().any(|report| report.pid != daemon) {
        return Vec::new();
    }
    let processes = |name: &str| {
        let servers = reports.iter().flat_map(|report| &report.servers);
        servers.filter(|server| server.name == name).map(|server| server.awake).sum::<usize>()
    };
    let may_share = config.servers.iter().filter(|server| server.may_be_shareable());
    let several = may_share.map(|server| (&server.name, processes(&server.name)));
    several
        .filter(|(_, processes)| *processes > 1)
        .map(|(name, processes)| {
            let name = visible(name);
            format!(
                "{name}: {processes} processes, one per host; if it keeps nothing for one \
                    host, `dormouse share {name}` saves up to {}",
                processes - 1
            )
        })
        .collect()
}

/// Returns the sentence for a server that several hosts use.
fn saving(config: &Config, server: &str, sharing: &Sharing) -> String {
    let Sharing { hosts, processes, .. } = sharing;
    let name = visible(server);
    if *processes == 1 {
        let server = config.servers.iter().find(|known| known.name == server);
        let reason = server.and_then(ServerConfig::reason_to_share);
        let reason = reason.map(|reason| format!(" (it {reason})")).unwrap_or_default();
        return format!("{name}: one process for {hosts} hosts saves {}{reason}", hosts - 1);
    }
    format!(
        "{name}: {processes} processes for {hosts} hosts, which differ in directory or \
            environment; `cwd` in the server's entry gives all of them one directory"
    )
}
