//! `dormouse test`: connect each server, measure the time, and report problems.

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::{
    arguments::TimeLimit,
    probe,
    probe::{ProbedServer, short},
    refresh, runtime,
    settings::{self, Chosen},
    shared_flags::Options,
    shared_pool::shared_pool,
    state_stores::StateStores,
};
use crate::{
    base::{counted, one_line},
    catalog::Inventory,
    peer::CallError,
    upstream::AttemptError,
};

pub(super) fn run(
    options: &Options,
    servers: &[String],
    is_json: bool,
    limit: TimeLimit,
) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    settings::say_which(&file);
    let Chosen { config, skipped } = settings::choose(&file, options, servers)?;
    let stores = StateStores::of(&config.settings)?;
    let (auth, all) = (stores.auth(Some(&file), options), config.servers.len());
    let tell = |seen: &ProbedServer, number: usize| {
        if !is_json {
            print(seen, &format!("[{number}/{all}]"));
        }
    };
    let pool = shared_pool(&file, options, &config.settings);
    let probed = runtime()?.block_on(probe::probe(config, auth, pool, limit, tell));
    refresh::keep(&stores, &probed.seen);
    let failed = probed.seen.iter().filter(|seen| seen.outcome.is_err()).count();
    if is_json {
        outln!("{}", super::output::json(&probed.seen.iter().map(Tested::of).collect::<Vec<_>>())?);
    } else {
        for name in skipped {
            outln!("- {name}: disabled");
        }
        let all = probed.seen.len();
        let verb = if all == 1 { "works" } else { "work" };
        outln!("{} of {} {verb}", all - failed, counted(all, "server"));
    }
    probed.report_not_done();
    let is_good = probed.is_complete() && failed == 0;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcome for one server, in `--json`.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tested {
    server: String,
    #[serde(rename = "ok")]
    is_ok: bool,
    milliseconds: u128,
    /// True if the server is a process of the daemon, which hosts share.
    in_daemon: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    tools: usize,
    resources: usize,
    resource_templates: usize,
    prompts: usize,
    /// The version of MCP that the server speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
}

impl Tested {
    fn of(seen: &ProbedServer) -> Self {
        let server = seen.config.name.clone();
        let milliseconds = seen.took.as_millis();
        match &seen.outcome {
            Ok(catalog) => Self {
                server,
                is_ok: true,
                milliseconds,
                in_daemon: seen.status.is_pooled,
                error: None,
                tools: catalog.tools.len(),
                resources: catalog.resources.len(),
                resource_templates: catalog.templates.len(),
                prompts: catalog.prompts.len(),
                protocol: Some(catalog.greeting.version.clone()),
            },
            Err(_) => Self { server, milliseconds, error: seen.error(), ..Self::default() },
        }
    }
}

fn print(seen: &ProbedServer, position: &str) {
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let name = &seen.config.name;
    match &seen.outcome {
        Ok(catalog) => {
            let timing = seen.status.last_wake.map(|(_, timing)| timing).unwrap_or_default();
            let place = if seen.status.is_pooled { "in the daemon; " } else { "" };
            outln!(
                "{good}✔{good:#} {position} {name}: {} ({place}start {}, handshake {}, lists {}); \
                    {}, {}, {}; MCP {}",
                short(timing.total()),
                short(timing.opening),
                short(timing.handshake),
                short(timing.lists.unwrap_or_default()),
                counted(catalog.tools.len(), "tool"),
                counted(catalog.resources.len() + catalog.templates.len(), "resource"),
                counted(catalog.prompts.len(), "prompt"),
                catalog.greeting.version,
            );
            let inventory = Inventory::of(&seen.config, catalog, &BTreeSet::new());
            inventory.warnings().for_each(|warning| print_advice(&warning));
            if let Some(noise) = &seen.status.noise {
                print_advice(&one_line(noise));
            }
        }
        Err(error) => {
            let cause = error.cause();
            let said = cause.map_or_else(|| error.to_string(), ToString::to_string);
            let took = short(seen.took);
            outln!("{bad}✘{bad:#} {position} {name}: {took}: {}", one_line(&said));
            if let Some(advice) = cause.and_then(advice) {
                print_advice(&advice);
            }
        }
    }
}

fn print_advice(advice: &str) {
    let dim = Style::new().dimmed();
    outln!("  {dim}{advice}{dim:#}");
}

/// Returns what the user can do about a failure.
fn advice(cause: &AttemptError) -> Option<String> {
    match cause {
        AttemptError::CommandNotFound { command } => {
            let near = near_commands(command);
            (!near.is_empty()).then(|| format!("similar programs on PATH: {}", near.join(", ")))
        }
        AttemptError::Call { cause: CallError::Refused { status: 401 | 403, .. }, .. } => {
            Some("its \"headers\" or its login may have expired".to_owned())
        }
        _ => None,
    }
}

/// Returns programs on `PATH` with similar names.
fn near_commands(command: &str) -> Vec<String> {
    const MAX_SIMILAR: usize = 3;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).filter_map(|path: PathBuf| path.read_dir().ok());
    let entries = directories.flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut near: Vec<(usize, String)> = names
        .map(|name| (strsim::damerau_levenshtein(&name, command), name))
        .filter(|(distance, name)| *distance <= 2 && name.len() > 2)
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(MAX_SIMILAR).map(|(_, name)| name).collect()
}
