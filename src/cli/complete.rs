//! What a shell completes: commands and options, and the names of servers and hosts.

use std::{ffi::OsString, path::PathBuf};

use clap_complete::{CompleteEnv, CompletionCandidate, Shell, env::Shells};

use super::{arguments::Options, options, settings};
use crate::apps::APPS;

/// Set by the script for the shell when it asks what can be typed.
const VARIABLE: &str = "DORMOUSE_COMPLETE";

/// Answers a shell that asks what can be typed. Returns whether one did.
pub(super) fn answer(arguments: &[OsString]) -> Result<bool, clap::Error> {
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return Ok(false);
    }
    let directory = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(options::command).var(VARIABLE);
    complete.try_complete(arguments.iter().cloned(), directory.as_deref())
}

/// The script that makes a shell ask.
pub(super) fn script(shell: Shell) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or(std::io::ErrorKind::Unsupported)?;
    shell.write_registration(VARIABLE, "dormouse", "dormouse", "dormouse", &mut script)?;
    Ok(script)
}

/// The servers of the config that a command would use here.
pub(super) fn servers() -> Vec<CompletionCandidate> {
    let file = settings::find(&Options { config: typed_config(), ..Options::default() });
    let entries = file.ok().and_then(|file| file.entries().ok());
    let names = entries.into_iter().flatten().map(|(name, _)| name);
    // A name in a config that was only found must not control the terminal.
    let names = names.filter(|name| !name.contains(char::is_control));
    names.map(CompletionCandidate::new).collect()
}

/// The config that the line which is completed names so far.
fn typed_config() -> Option<PathBuf> {
    let words: Vec<_> = std::env::args_os().collect();
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--config="));
    let at = words.iter().position(|word| word == "--config");
    let behind = at.and_then(|at| words.get(at + 1)).map(PathBuf::from);
    joined.map(PathBuf::from).or(behind)
}

/// The AI tools.
pub(super) fn apps() -> Vec<CompletionCandidate> {
    let candidate =
        |app: &crate::apps::App| CompletionCandidate::new(app.id).help(Some(app.name.into()));
    APPS.iter().map(candidate).collect()
}
