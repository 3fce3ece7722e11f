//! `dormouse status`: the state of each server, and the size of its tools.

#[cfg(unix)]
use std::collections::BTreeMap;
use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    instances::running, joint_report::by_process, login::described, settings, shared_flags::Options,
};
#[cfg(unix)]
use crate::daemon::SharedProcess;
use crate::{
    base::{counted, one_line, visible},
    catalog::{Inventory, ToolState},
    config::Config,
    control::{LastWake, ServerReport, StatusReport},
    upstream::Phase,
};

pub(super) fn run(options: &Options, json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let mut reports = running(&file)?;
    if reports.is_empty() {
        let config = settings::parse(&file, options)?;
        let cache = settings::storage(Some(&file)).catalogs;
        let auth = settings::auth(Some(&file), options);
        reports.push(StatusReport::at_rest(
            &config.servers,
            cache.as_ref(),
            &auth,
            file.path.clone(),
        ));
    }
    if json {
        outln!("{}", super::output::json(&reports)?);
    } else {
        by_process(&reports).iter().for_each(print);
        // A config that has become invalid has no advice.
        let config = settings::parse(&file, options).ok();
        for advice in config.iter().flat_map(|config| sharing_advice(config, &reports)) {
            outln!("{advice}");
        }
        for saving in savings(&file.path) {
            outln!("{saving}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a sentence for each server of which several hosts have a process each.
fn sharing_advice(config: &Config, reports: &[StatusReport]) -> Vec<String> {
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
fn savings(config: &Path) -> Vec<String> {
    let Ok(config) = std::path::absolute(config) else { return Vec::new() };
    let mut shared: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for SharedProcess { server, users } in super::daemon::shared_processes(&config) {
        let (hosts, processes) = shared.entry(server).or_default();
        *hosts += users;
        *processes += 1;
    }
    let several = shared.into_iter().filter(|(_, (hosts, _))| *hosts > 1);
    several.map(|(name, (hosts, processes))| saving(&visible(&name), hosts, processes)).collect()
}

/// Returns the sentence for a server that so many hosts use, in so many processes.
#[cfg(unix)]
fn saving(name: &str, hosts: usize, processes: usize) -> String {
    if processes == 1 {
        return format!("{name}: one process for {hosts} hosts saves {}", hosts - 1);
    }
    format!(
        "{name}: {processes} processes for {hosts} hosts, which differ in directory or \
            environment; `cwd` in the server's entry gives all of them one directory"
    )
}

#[cfg(not(unix))]
fn savings(_: &Path) -> Vec<String> {
    Vec::new()
}

fn print(report: &StatusReport) {
    let bold = anstyle::Style::new().bold();
    match report.pid {
        Some(pid) => outln!(
            "{bold}dormouse {}{bold:#}, process {pid}, with {}; hosts: {}",
            report.version,
            report.config.display(),
            report.hosts
        ),
        None => outln!(
            "no running dormouse uses {}; from the stored catalogs:",
            report.config.display()
        ),
    }
    let mut table =
        super::table::table(&["server", "state", "start", "tools", "bytes", "tokens", "last wake"]);
    for server in &report.servers {
        table.add_row(row(server));
    }
    super::table::numbers(&mut table, &[3, 4, 5]);
    outln!("{}", super::table::rendered(table));
    for server in &report.servers {
        for note in notes(server) {
            outln!("{}: {note}", server.name);
        }
    }
}

fn row(server: &ServerReport) -> Vec<String> {
    let known = |of: &dyn Fn(&Inventory) -> String| {
        server.inventory.as_ref().map_or_else(|| "?".to_owned(), of)
    };
    vec![
        server.name.clone(),
        state(server),
        server.startup.clone(),
        known(&tools),
        known(&|inventory| inventory.bytes.to_string()),
        known(&|inventory| format!("≈ {}", inventory.tokens())),
        server.last_wake.map_or_else(|| "never".to_owned(), last_wake),
    ]
}

pub(super) fn state(server: &ServerReport) -> String {
    let word = match server.state {
        None => "not running",
        Some(Phase::Unloaded) => "unloaded",
        Some(Phase::Loading) => "loading",
        Some(Phase::Awake) => "awake",
        Some(Phase::Asleep) => "asleep",
        Some(Phase::BackingOff) => "backing off",
        Some(Phase::AwaitingLogin) => "awaiting login",
        Some(Phase::Evicted) => "evicted",
        Some(Phase::Disabled) => "disabled",
    };
    match server.awake {
        0 | 1 => word.to_owned(),
        instances => format!("{word} × {instances}"),
    }
}

/// Returns `12`, or `12 (2 hidden, 1 stale)`.
fn tools(inventory: &Inventory) -> String {
    let kinds = [
        (ToolState::Hidden, "hidden"),
        (ToolState::Stale, "stale"),
        (ToolState::Blocked, "blocked"),
    ];
    let counted = kinds.map(|(state, word)| (inventory.count(state), word));
    let others: Vec<String> = counted
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let shown = inventory.count(ToolState::Shown);
    if others.is_empty() { shown.to_string() } else { format!("{shown} ({})", others.join(", ")) }
}

fn last_wake(wake: LastWake) -> String {
    let at = UNIX_EPOCH + Duration::from_secs(wake.at);
    let ago = SystemTime::now().duration_since(at).unwrap_or_default().as_secs();
    let ago = match ago {
        0..60 => format!("{ago} s"),
        60..3600 => format!("{} min", ago / 60),
        3600..172_800 => format!("{} h", ago / 3600),
        _ => counted(usize::try_from(ago / 86_400).unwrap_or(usize::MAX), "day"),
    };
    format!("{ago} ago, took {} ms", wake.took)
}

/// Returns the problems and peculiarities of a server.
fn notes(server: &ServerReport) -> Vec<String> {
    let mut notes = Vec::new();
    if server.state == Some(Phase::Evicted) {
        notes.push(
            "three consecutive loads failed; run `dormouse reset` to offer it again".to_owned(),
        );
    } else if server.strikes > 0 {
        notes.push(format!("{} of 3 consecutive loads failed", server.strikes));
    }
    if let Some(error) = &server.last_error {
        notes.push(one_line(error));
    }
    if let Some(login) = &server.login {
        notes.push(format!("logged in: {}", described(login)));
    }
    if let Some(milliseconds) = server.retry_in {
        notes.push(format!("next attempt in {} s", milliseconds.div_ceil(1000)));
    }
    if let Some(noise) = &server.noise {
        notes.push(one_line(noise));
    }
    let tools = server.inventory.iter().flat_map(|inventory| &inventory.tools);
    for tool in tools {
        let name = one_line(&tool.name);
        if tool.changed {
            notes.push(format!(
                "the definition of {name} has changed since it was first seen: run `dormouse \
                    approve {} {name}`",
                server.name
            ));
        }
        if let Some(character) = &tool.hidden_character {
            notes.push(format!(
                "the definition of {name} contains the invisible character {character}"
            ));
        }
    }
    notes
}
