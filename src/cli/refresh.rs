//! `dormouse refresh`: read the servers' lists again, and update the `tools` of the config.

mod toolset_proposal;

use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::toolset_proposal::propose_toolsets;
use super::{
    arguments::RefreshArguments,
    edit::{self, rewrite},
    probe,
    probe::{ProbedServer, short},
    runtime,
    settings::{self, Chosen},
    shared_flags::Options,
};
use crate::{
    base::{counted, one_line, visible},
    catalog::{CatalogKey, Pins, ServerCatalog},
    config::{ConfigEdit, ConfigFile, ProposedToolset, ToolChanges},
    upstream::{AttemptError, LoadError},
};

pub(super) fn run(options: &Options, typed: &RefreshArguments) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    settings::say_which(&file);
    let Chosen { config, .. } = settings::choose(&file, options, &typed.servers)?;
    let names_tools = config.servers.iter().any(|server| !server.offer.tools.is_empty());
    let all = config.servers.len();
    let auth = settings::auth(Some(&file), options);
    let tell = |seen: &ProbedServer, number: usize| {
        let name = visible(&seen.config.name);
        let found = learned(seen).unwrap_or_else(|_| "failed".to_owned());
        errln!("[{number}/{all}] {name}: {found}, {}", short(seen.took));
    };
    let probed = runtime()?.block_on(probe::probe(config, auth, None, typed.limit, tell));
    if !typed.dry_run {
        keep(&file, &probed.seen);
    }
    let merges = names_tools || typed.write;
    let reports = if merges || typed.write_toolsets {
        rewrite(file, typed.dry_run, |file| {
            let (file, mut reports) = if merges {
                merge_all(file, &probed.seen)
            } else {
                (file.clone(), probed.seen.iter().map(learned).collect())
            };
            let file = if typed.write_toolsets {
                divide_all(options, file, &probed.seen, &mut reports)?
            } else {
                file
            };
            anyhow::Ok((file, reports))
        })?
    } else {
        probed.seen.iter().map(learned).collect()
    };
    probed.report_not_done();
    let mut all_went_well = probed.is_complete();
    if typed.json {
        let refreshed = probed.seen.iter().zip(&reports).map(Refreshed::of);
        outln!("{}", super::output::json(&refreshed.collect::<Vec<_>>())?);
        all_went_well &= reports.iter().all(Result::is_ok);
        return Ok(if all_went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    for (seen, report) in probed.seen.iter().zip(reports) {
        match report {
            Ok(said) => outln!("{}: {said}", seen.config.name),
            Err(error) => {
                all_went_well = false;
                errln!("{}: {}", seen.config.name, visible(&format!("{error:#}")));
            }
        }
    }
    if !typed.write_toolsets {
        probed.seen.iter().for_each(print_proposal);
    }
    if !merges && !typed.write_toolsets && !probed.seen.is_empty() {
        errln!("the config lists no tools and was not changed; --write adds them");
    }
    Ok(if all_went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcome for one server, in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refreshed<'a> {
    server: &'a str,
    milliseconds: u128,
    /// `None` if the server could not be connected.
    tools: Option<usize>,
    /// The changes of the config, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Toolsets that its entry could have.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed_toolsets: Option<Map<String, Value>>,
}

impl<'a> Refreshed<'a> {
    fn of((seen, report): (&'a ProbedServer, &'a anyhow::Result<String>)) -> Self {
        Self {
            server: &seen.config.name,
            milliseconds: seen.took.as_millis(),
            tools: seen.outcome.as_ref().ok().map(|catalog| catalog.tools.len()),
            said: report.as_ref().ok(),
            error: report.as_ref().err().map(|error| format!("{error:#}")),
            proposed_toolsets: Some(as_entry(&proposal(seen))).filter(|it| !it.is_empty()),
        }
    }
}

/// Returns the report for a server whose tools the config does not list.
fn learned(seen: &ProbedServer) -> anyhow::Result<String> {
    Ok(counted(catalog(seen)?.tools.len(), "tool"))
}

fn catalog(seen: &ProbedServer) -> anyhow::Result<&ServerCatalog> {
    let catalog = seen.outcome.as_ref().map_err(|error| match error.cause() {
        Some(cause) => anyhow!("{cause}"),
        None => anyhow!("{error}"),
    })?;
    Ok(catalog)
}

type Reports = Vec<anyhow::Result<String>>;

/// Merges all outcomes into the config, and returns the report of each server. This takes two
/// rounds: an entry that an alias shares with another can be edited once the other has its own
/// tools.
fn merge_all(before: &ConfigFile, seen: &[ProbedServer]) -> (ConfigFile, Reports) {
    let mut after = before.clone();
    let mut reports: Reports = seen.iter().map(|seen| merge(&mut after, seen)).collect();
    for (seen, report) in seen.iter().zip(&mut reports) {
        if report.is_err() {
            *report = merge(&mut after, seen);
        }
    }
    (after, reports)
}

/// Merges one server's tools into the config, and returns the report.
fn merge(file: &mut ConfigFile, seen: &ProbedServer) -> anyhow::Result<String> {
    let catalog = catalog(seen)?;
    // The file may differ from the one that was read first.
    let all = file.parse(&file.environment())?;
    let config = settings::server(&all.config, &seen.config.name)?;
    if let Some(dialect) = file.dialect().filter(|dialect| !dialect.has_tools()) {
        let count = counted(catalog.tools.len(), "tool");
        return Ok(format!("{count}; a config of {} does not list tools", dialect.name()));
    }
    let changes = catalog.tool_changes(config);
    *file = file.with_tools(&config.name, &changes)?;
    let ToolChanges { added, gone, back, left_out } = changes;
    let mut said = counted(catalog.tools.len(), "tool");
    let groups =
        [(added, "new"), (gone, "gone"), (back, "back"), (left_out, "cannot be written as keys")];
    for (names, what) in groups.into_iter().filter(|(names, _)| !names.is_empty()) {
        said.push_str(&format!("; {what}: {}", one_line(&names.join(", "))));
    }
    Ok(said)
}

/// Returns toolsets for a server with many tools that has none.
fn proposal(seen: &ProbedServer) -> Vec<ProposedToolset> {
    let (Ok(catalog), true) = (&seen.outcome, seen.config.offer.extent.toolsets().is_empty())
    else {
        return Vec::new();
    };
    let tools = catalog.tools.iter().map(|tool| tool.name.as_str());
    let shown: Vec<&str> = tools.filter(|tool| seen.config.offer.allow_tool(tool)).collect();
    propose_toolsets(&shown)
}

fn as_entry(proposed: &[ProposedToolset]) -> Map<String, Value> {
    proposed.iter().map(|toolset| (toolset.name.clone(), json!(toolset))).collect()
}

/// Prints the proposed toolsets of a server, to be pasted into its entry.
fn print_proposal(seen: &ProbedServer) {
    let proposed = proposal(seen);
    if proposed.is_empty() {
        return;
    }
    let name = visible(&seen.config.name);
    outln!("toolsets for {name}, which `dormouse refresh --write-toolsets {name}` adds:");
    let line = |(name, toolset)| format!("    {}: {toolset}", json!(name));
    let lines: Vec<String> = as_entry(&proposed).into_iter().map(line).collect();
    outln!("  \"toolsets\": {{\n{}\n  }}", lines.join(",\n"));
}

/// Adds the proposed toolsets to the config, and to the reports.
fn divide_all(
    options: &Options,
    file: ConfigFile,
    seen: &[ProbedServer],
    reports: &mut Reports,
) -> anyhow::Result<ConfigFile> {
    let mut after = file;
    for (seen, report) in seen.iter().zip(reports) {
        let Ok(said) = report else { continue };
        let toolsets = proposal(seen);
        if toolsets.is_empty() {
            said.push_str("; no toolsets to add");
            continue;
        }
        said.push_str(&format!("; added {}", counted(toolsets.len(), "toolset")));
        let edit = ConfigEdit::Divide { server: seen.config.name.clone(), toolsets };
        match after.with(&edit) {
            Ok(divided) => after = divided,
            Err(error) => *report = Err(error.into()),
        }
    }
    edit::valid(options, after)
}

/// Stores the catalogs for the next start.
pub(super) fn keep(file: &ConfigFile, seen: &[ProbedServer]) {
    let Some(cache) = settings::storage(Some(file)).catalogs else { return };
    for ProbedServer { config, outcome, .. } in seen {
        let Some(key) = CatalogKey::of(config) else { continue };
        let cause = outcome.as_ref().err().and_then(LoadError::cause);
        let is_hung = matches!(cause, Some(AttemptError::TimedOut { .. }));
        // Without this note the next start only waits for the server once more.
        let _ = cache.note_hung(&key, is_hung);
        let Ok(catalog) = outcome else { continue };
        if let Err(error) = cache.learn(&key, &config.name, catalog, &Pins::default()) {
            errln!("{}: cannot store the catalog: {error}", config.name);
        }
    }
}
