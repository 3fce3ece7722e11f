//! `dormouse approve`: accept the present definitions of a server's tools, although they have
//! changed.

use std::process::ExitCode;

use anyhow::bail;
use similar::TextDiff;

use super::{
    arguments::ApproveArguments, ask, settings, shared_flags::Options, state_stores::StateStores,
};
use crate::{
    base::{one_line, visible},
    catalog::{CatalogKey, DefinitionChange, watched_part},
};

pub(super) fn run(options: &Options, typed: &ApproveArguments) -> anyhow::Result<ExitCode> {
    let tool = typed.tool.as_deref();
    let file = settings::find(options)?;
    settings::say_which(&file);
    let config = settings::parse(&file, options)?;
    let server = settings::server(&config, &typed.server)?;
    let commands = &config.settings.launch.commands;
    let Some(cache) = StateStores::of(&config.settings)?.catalogs() else {
        bail!("no catalogs are stored: HOME is not set");
    };
    let Some(key) = CatalogKey::of(server) else {
        let command = commands.refresh(&server.name);
        bail!("no catalog of {:?} is known: run `{command}`", server.name)
    };
    if let Some(tool) = tool {
        let records = cache.stored(&key).records;
        let is_known = |record: &crate::catalog::Record| {
            record.catalog.tools.iter().any(|known| known.name == tool)
        };
        if !records.iter().any(is_known) {
            bail!("server {:?} has no tool {tool:?} in its last known catalog", server.name);
        }
    }
    let changes =
        if typed.dry_run { cache.changes(&key, tool) } else { cache.approve(&key, tool)? };
    let name = &server.name;
    if cache.pins(&key).is_incomplete() && changes.is_empty() {
        bail!(
            "the tools of {name:?} are not known: run `{}`, review them, and approve them then. A \
                catalog above 16 MB is not stored, so its tools cannot be approved: set \"pin\": \
                \"warn\" for such a server",
            commands.refresh(name)
        );
    }
    if changes.is_empty() {
        outln!("{name}: nothing has changed");
    }
    let did = if typed.dry_run { "has changed" } else { "is approved" };
    for change in &changes {
        outln!("{name}: {} {did}", one_line(&change.now.name));
        show(change);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the changes of a tool's definition, or all of it if the earlier one is unknown.
fn show(change: &DefinitionChange) {
    let now = watched_part(&change.now);
    let Some(before) = &change.before else {
        outln!("  the earlier definition is not known; the present one is");
        now.lines().for_each(|line| outln!("  {}", visible(line)));
        return;
    };
    let before = watched_part(before);
    let difference = TextDiff::from_lines(&before, &now);
    let hunks = difference.unified_diff().to_string();
    ask::print_hunks(&hunks);
}
