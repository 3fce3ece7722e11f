//! `dormouse refresh`: read the servers' lists again, and update the `tools` of the config.

use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;

use super::{
    arguments::RefreshArguments,
    edit::rewrite,
    probe,
    probe::{ProbedServer, short},
    runtime,
    settings::{self, Chosen},
    shared_flags::Options,
};
use crate::{
    base::{counted, one_line, visible},
    catalog::{CatalogKey, Pins, ServerCatalog},
    config::{ConfigFile, ToolChanges},
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
    let reports = if names_tools || typed.write {
        rewrite(file, typed.dry_run, |file| anyhow::Ok(merge_all(file, &probed.seen)))?
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
    if !names_tools && !typed.write && !probed.seen.is_empty() {
        errln!("the config lists no tools and was not changed; --write adds them");
    }
    Ok(if all_went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcome for one server, in `--json`.
#[derive(Serialize)]
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
}

impl<'a> Refreshed<'a> {
    fn of((seen, report): (&'a ProbedServer, &'a anyhow::Result<String>)) -> Self {
        Self {
            server: &seen.config.name,
            milliseconds: seen.took.as_millis(),
            tools: seen.outcome.as_ref().ok().map(|catalog| catalog.tools.len()),
            said: report.as_ref().ok(),
            error: report.as_ref().err().map(|error| format!("{error:#}")),
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
