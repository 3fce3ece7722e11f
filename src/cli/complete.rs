//! Completion for shells: commands and options, and the names of servers and apps.

use std::{ffi::OsString, path::PathBuf};

use clap_complete::{CompleteEnv, CompletionCandidate, Shell, env::Shells};

use super::{arguments::Options, options, settings};
use crate::apps::APPS;

/// Environment variable that the completion script sets when it asks for candidates.
const VARIABLE: &str = "DORMOUSE_COMPLETE";

/// Prints the candidates if a completion script asks for them. Returns whether it did.
pub(super) fn answer(arguments: &[OsString]) -> Result<bool, clap::Error> {
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return Ok(false);
    }
    let directory = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(options::command).var(VARIABLE);
    complete.try_complete(arguments.iter().cloned(), directory.as_deref())
}

/// Returns the completion script for a shell.
pub(super) fn script(shell: Shell) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or(std::io::ErrorKind::Unsupported)?;
    shell.write_registration(VARIABLE, "dormouse", "dormouse", "dormouse", &mut script)?;
    Ok(script)
}

/// Returns the names of the servers in the config that the command would use.
pub(super) fn servers() -> Vec<CompletionCandidate> {
    let file = settings::find(&Options { config: typed_config(), ..Options::default() });
    let entries = file.ok().and_then(|file| file.entries().ok());
    let names = entries.into_iter().flatten().map(|(name, _)| name);
    // A config found in the working directory is untrusted: its names must not control the terminal.
    let names = names.filter(|name| !name.contains(char::is_control));
    names.map(CompletionCandidate::new).collect()
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
