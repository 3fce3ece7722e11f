//! `dormouse refresh`: learn anew what servers have, and bring the config's `tools` up to it.

use std::process::ExitCode;

use anyhow::anyhow;
use similar::TextDiff;

use super::{
    arguments::Options,
    plain, probe,
    probe::Seen,
    runtime,
    settings::{self, Chosen},
};
use crate::{catalog::CatalogKey, config::ConfigFile};

pub(super) fn run(options: &Options, servers: &[String], dry: bool) -> anyhow::Result<ExitCode> {
    let before = settings::find_trusted(options)?;
    let Chosen { config, .. } = settings::choose(&before, options, servers)?;
    let seen = runtime()?.block_on(probe::probe(config));
    let mut after = before.clone();
    let mut all_went_well = true;
    for seen in &seen {
        match merge(&after, seen) {
            Ok((merged, said)) => {
                after = merged;
                anstream::println!("{}: {said}", seen.config.name);
            }
            Err(error) => {
                all_went_well = false;
                anstream::eprintln!("{}: {}", seen.config.name, plain(&error.to_string()));
            }
        }
    }
    if dry {
        print_difference(&before, &after);
    } else {
        keep(&before, &seen);
        if before.text() != after.text() {
            after.replace(&before, settings::trust_store().ok().as_ref())?;
        }
    }
    Ok(if all_went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The config with what was seen of one server, and that in words.
fn merge(file: &ConfigFile, seen: &Seen) -> anyhow::Result<(ConfigFile, String)> {
    let catalog = seen.outcome.as_ref().map_err(|error| match error.cause() {
        Some(cause) => anyhow!("{cause}"),
        None => anyhow!("{error}"),
    })?;
    let changes = catalog.tool_changes(&seen.config);
    let merged = file.with_tools(&seen.config.name, &changes)?;
    let mut said = format!("{} tools", catalog.tools.len());
    for (names, what) in [(&changes.added, "new"), (&changes.gone, "gone"), (&changes.back, "back")]
    {
        if !names.is_empty() {
            said.push_str(&format!("; {what}: {}", plain(&names.join(", "))));
        }
    }
    Ok((merged, said))
}

/// Keeps the catalogs for the next start.
fn keep(file: &ConfigFile, seen: &[Seen]) {
    let Some(cache) = settings::storage(Some(file)).catalogs else { return };
    for Seen { config, outcome, .. } in seen {
        let (Ok(catalog), Some(key)) = (outcome, CatalogKey::of(config)) else { continue };
        if let Err(error) = cache.learn(&key, &config.name, catalog) {
            anstream::eprintln!("{}: what it has is not kept: {error}", config.name);
        }
    }
}

fn print_difference(before: &ConfigFile, after: &ConfigFile) {
    let (before_text, after_text) = (before.text(), after.text());
    let difference = TextDiff::from_lines(&before_text, &after_text);
    let name = before.path.display().to_string();
    let hunks = difference.unified_diff().header(&name, &name).to_string();
    for line in hunks.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => anstyle::AnsiColor::Green.on_default(),
            Some(b'-') => anstyle::AnsiColor::Red.on_default(),
            _ => anstyle::Style::new(),
        };
        let line: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
        anstream::println!("{style}{line}{style:#}");
    }
}
