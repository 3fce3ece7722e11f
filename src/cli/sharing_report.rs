//! The end of `dormouse status`: the processes that sharing saves, or would save.

#[cfg(unix)]
use std::collections::BTreeMap;
use std::path::Path;

use crate::{base::visible, config::Config, control::StatusReport};
#[cfg(unix)]
use crate::{config::ServerConfig, daemon::SharedProcess};

/// Prints a sentence for each server that several hosts share, or could share. `path` is that of
/// the config.
pub(super) fn print(config: &Config, path: &Path, reports: &[StatusReport]) {
    for line in advice(config, reports).into_iter().chain(savings(config, path)) {
        outln!("{line}");
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

/// Returns a sentence for each server that several hosts share.
#[cfg(unix)]
fn savings(config: &Config, path: &Path) -> Vec<String> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let mut shared: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for SharedProcess { server, users } in super::daemon::shared_processes(&path) {
        let (hosts, processes) = shared.entry(server).or_default();
        *hosts += users;
        *processes += 1;
    }
    let several = shared.into_iter().filter(|(_, (hosts, _))| *hosts > 1);
    several.map(|(name, (hosts, processes))| saving(config, &name, hosts, processes)).collect()
}

/// Returns the sentence for a server that so many hosts use, in so many processes.
#[cfg(unix)]
fn saving(config: &Config, server: &str, hosts: usize, processes: usize) -> String {
    let name = visible(server);
    if processes == 1 {
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

#[cfg(not(unix))]
fn savings(_: &Config, _: &Path) -> Vec<String> {
    Vec::new()
}
