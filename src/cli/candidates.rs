//! The candidates for the completion of the names of servers, profiles and apps.

use std::path::PathBuf;

use clap_complete::CompletionCandidate;

use super::{settings, shared_flags::Options};
use crate::apps::APPS;

/// Returns the names of the servers in the config that the command would use.
pub(super) fn servers() -> Vec<CompletionCandidate> {
    let file = settings::find(&Options { config: typed_config(), ..Options::default() });
    let entries = file.ok().and_then(|file| file.entries().ok());
    candidates(entries.into_iter().flatten().map(|(name, _)| name))
}

/// Returns the names of the profiles in the config that the command would use.
pub(super) fn profiles() -> Vec<CompletionCandidate> {
    let options = Options { config: typed_config(), ..Options::default() };
    let config = settings::find(&options).ok().and_then(|it| settings::parse(&it, &options).ok());
    let profiles = config.map(|config| config.settings.profiles).unwrap_or_default();
    candidates(profiles.names().map(str::to_owned))
}

/// A config found in the working directory is untrusted: its names must not control the terminal.
fn candidates(names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    names.filter(|name| !name.contains(char::is_control)).map(CompletionCandidate::new).collect()
}

/// Returns the config that `--config` names in the command line being completed.
fn typed_config() -> Option<PathBuf> {
    let words: Vec<_> = std::env::args_os().collect();
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--config="));
    let at = words.iter().position(|word| word == "--config");
    let behind = at.and_then(|at| words.get(at + 1)).map(PathBuf::from);
    joined.map(PathBuf::from).or(behind)
}

/// Returns the ids of all apps.
pub(super) fn apps() -> Vec<CompletionCandidate> {
    let candidate =
        |app: &crate::apps::App| CompletionCandidate::new(app.id).help(Some(app.name.into()));
    APPS.iter().map(candidate).collect()
}
