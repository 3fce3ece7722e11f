//! `dormouse status`: the state of each server, and the size of its tools.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use indicatif::HumanBytes;

use super::{
    instances::running, joint_report::by_process, login::described, settings,
    shared_flags::Options, sharing_report::SharedServers, state_stores::StateStores,
};
use crate::{
    base::{counted, one_line},
    catalog::{Inventory, ToolState},
    control::{LastWake, ServerReport, StatusReport},
    telemetry::ServerTally,
    upstream::Phase,
};

pub(super) fn run(options: &Options, json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let mut reports = running(&file)?;
    if reports.is_empty() {
        let config = settings::parse(&file, options)?;
        let stores = StateStores::of(&config.settings)?;
        let (cache, auth) = (stores.catalogs(), stores.auth(Some(&file), options));
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
        let shared = SharedServers::of(&file.path);
        for mut report in by_process(&reports) {
            shared.count_processes(&mut report);
            print(&report);
        }
        // A config that has become invalid has no advice.
        if let Ok(config) = settings::parse(&file, options) {
            shared.print(&config, &reports);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &StatusReport) {
    let bold = anstyle::Style::new().bold();
    match report.pid {
        Some(pid) => outln!(
            "{bold}dormouse {}{bold:#}, process {pid}, with {}; hosts: {}",
            report.version,
            report.config.display(),
            hosts(report)
        ),
        None => outln!(
            "no running dormouse uses {}; from the stored catalogs:",
            report.config.display()
        ),
    }
    outln!("{}", table_of(report));
    for line in savings(report) {
        outln!("{line}");
    }
    for server in &report.servers {
        for note in notes(server) {
            outln!("{}: {note}", server.name);
        }
    }
}

/// Returns the table of the servers.
pub(super) fn table_of(report: &StatusReport) -> String {
    let mut table = super::table::table(&[
        "server",
        "state",
        "start",
        "tools",
        "bytes",
        "tokens",
        "calls",
        "memory",
        "last wake",
    ]);
    for server in &report.servers {
        table.add_row(row(server));
    }
    super::table::numbers(&mut table, &[3, 4, 5, 6, 7]);
    super::table::rendered(table)
}

/// Returns sentences on what was saved, if anything was.
pub(super) fn savings(report: &StatusReport) -> Vec<String> {
    let Some(savings) = &report.savings else { return Vec::new() };
    let definitions = (savings.bytes > 0).then(|| {
        format!(
            "saved: {} of definitions in {} (≈ {} tokens, at {})",
            HumanBytes(savings.bytes),
            counted(usize::try_from(savings.turns).unwrap_or(usize::MAX), "turn"),
            savings.tokens,
            savings.estimator,
        )
    });
    let results = (savings.withheld_bytes > 0).then(|| {
        format!("withheld: {} of results above maxResultBytes", HumanBytes(savings.withheld_bytes))
    });
    definitions.into_iter().chain(results).collect()
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
        calls(server),
        server.memory.map_or_else(String::new, |bytes| HumanBytes(bytes).to_string()),
        server.last_wake.map_or_else(|| "never".to_owned(), last_wake),
    ]
}

/// Returns `2 (claude-code 2.1, 2 × cursor 1)`.
pub(super) fn hosts(report: &StatusReport) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for client in &report.clients {
        match counts.iter_mut().find(|(known, _)| known == client) {
            Some((_, count)) => *count += 1,
            None => counts.push((client, 1)),
        }
    }
    let name = |(name, count): &(&str, usize)| match count {
        1 => one_line(name),
        count => format!("{count} × {}", one_line(name)),
    };
    let names: Vec<String> = counts.iter().map(name).collect();
    if names.is_empty() {
        report.hosts.to_string()
    } else {
        format!("{} ({})", report.hosts, names.join(", "))
    }
}

/// Returns `7`, or `7 (2 failed)`.
fn calls(server: &ServerReport) -> String {
    let ServerTally { calls, failed_calls, .. } = server.tally;
    if failed_calls > 0 { format!("{calls} ({failed_calls} failed)") } else { calls.to_string() }
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
    notes.extend(server.inventory.iter().flat_map(Inventory::warnings));
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
