//! `dormouse refresh`: read the servers' lists again, and update the `tools` and `toolsets` of the
//! config.

mod proposals;
mod toolset_proposal;

use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;
use serde_json::{Map, Value};

use self::proposals::{add_toolsets, as_entry, print_proposal, proposal};
use super::{
    arguments::RefreshArguments,
    edit::rewrite,
    probe,
    probe::{ProbedServer, short},
    runtime,
    settings::{self, Chosen},
    shared_flags::Options,
    state_stores::StateStores,
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
    let has_lists = config.servers.iter().any(|server| !server.offer.tools.is_empty());
    let update = ConfigUpdate {
        merges_tools: has_lists || typed.write,
        writes_toolsets: typed.write_toolsets,
    };
    let commands = config.settings.launch.commands.clone();
    let all = config.servers.len();
    let stores = StateStores::of(&config.settings)?;
    let auth = stores.auth(Some(&file), options);
    let tell = |seen: &ProbedServer, number: usize| {
        let name = visible(&seen.config.name);
        let found = learned(seen).unwrap_or_else(|_| "failed".to_owned());
        errln!("[{number}/{all}] {name}: {found}, {}", short(seen.took));
    };
    let probed = runtime()?.block_on(probe::probe(config, auth, None, typed.limit, tell));
    if !typed.dry_run {
        keep(&stores, &probed.seen);
    }
    let reports = update.apply(options, file, typed.dry_run, &probed.seen)?;
    probed.report_not_done();
    let went_well = reports.iter().all(Result::is_ok);
    if typed.json {
        let refreshed = probed.seen.iter().zip(&reports).map(Refreshed::of);
        outln!("{}", super::output::json(&refreshed.collect::<Vec<_>>())?);
    } else {
        print(&probed.seen, reports);
        if !update.writes_toolsets {
            probed.seen.iter().for_each(|seen| print_proposal(seen, &commands));
        }
        if !update.is_needed() && !probed.seen.is_empty() {
            errln!("the config lists no tools and was not changed; --write adds them");
        }
    }
    let went_well = went_well && probed.is_complete();
    Ok(if went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(seen: &[ProbedServer], reports: Reports) {
    for (seen, report) in seen.iter().zip(reports) {
        match report {
            Ok(said) => outln!("{}: {said}", seen.config.name),
            Err(error) => errln!("{}: {}", seen.config.name, visible(&format!("{error:#}"))),
        }
    }
}

/// The parts of the config that are updated.
struct ConfigUpdate {
    merges_tools: bool,
    writes_toolsets: bool,
}

impl ConfigUpdate {
    fn is_needed(&self) -> bool {
        self.merges_tools || self.writes_toolsets
    }

    /// Updates the config, and returns the report of each server.
    fn apply(
        &self,
        options: &Options,
        file: ConfigFile,
        dry_run: bool,
        seen: &[ProbedServer],
    ) -> anyhow::Result<Reports> {
        if !self.is_needed() {
            return Ok(seen.iter().map(learned).collect());
        }
        rewrite(file, dry_run, |file| {
            let (mut file, mut reports) = if self.merges_tools {
                merge_all(file, seen)
            } else {
                (file.clone(), seen.iter().map(learned).collect())
            };
            if self.writes_toolsets {
                file = add_toolsets(options, file, seen, &mut reports)?;
            }
            anyhow::Ok((file, reports))
        })
    }
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

/// Stores the catalogs for the next start.
pub(super) fn keep(stores: &StateStores, seen: &[ProbedServer]) {
    let Some(cache) = stores.catalogs() else { return };
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
