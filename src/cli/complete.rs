//! Completion scripts for shells, and their requests for candidates.

use std::ffi::OsString;

use clap_complete::{CompleteEnv, Shell, env::Shells};

use super::options;

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
