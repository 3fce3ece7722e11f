//! The command lines that a thin client understands, without the parser of all others: that parser
//! would be a third of the client's memory.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// The flags of `serve` that have a value.
const WITH_VALUE: [&str; 7] = [
    "--config",
    "--env-file",
    "--profile",
    "--surface",
    "--idle-timeout",
    "--log-level",
    "--log-format",
];
/// The flags of `serve` without a value.
const WITHOUT_VALUE: [&str; 7] = [
    "--eager",
    "--lazy",
    "--hybrid",
    "--eager-startup",
    "--pure-lazy",
    "--hybrid-lazy",
    "--scripts",
];

/// A command line that serves a host on standard streams. The daemon reads the flags.
#[derive(Debug, PartialEq)]
pub(super) struct Invocation {
    /// The value of `--config`.
    pub config: Option<PathBuf>,
}

impl Invocation {
    /// Reads a command line, which begins with the name of the program. Returns `None` for another
    /// command, and for anything that the parser of all commands has to decide.
    pub(super) fn read(arguments: &[OsString]) -> Option<Self> {
        let mut config = None;
        let mut words = arguments.iter().skip(1).map(OsString::as_os_str);
        let mut has_command = false;
        while let Some(word) = words.next() {
            if !has_command && (word == "serve" || word == "start") {
                has_command = true;
                continue;
            }
            if WITHOUT_VALUE.iter().any(|flag| word == *flag) {
                continue;
            }
            let (flag, value) = split(word)?;
            if !WITH_VALUE.contains(&flag) {
                return None;
            }
            let value = value.or_else(|| words.next())?;
            if flag == "--config" && config.replace(PathBuf::from(value)).is_some() {
                return None;
            }
        }
        Some(Self { config })
    }
}

/// Splits `--flag=value`. Returns `None` for text that is not Unicode, which the parser of all
/// commands reads.
fn split(word: &OsStr) -> Option<(&str, Option<&OsStr>)> {
    let word = word.to_str()?;
    Some(match word.split_once('=') {
        Some((flag, value)) => (flag, Some(OsStr::new(value))),
        None => (word, None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options;

    fn read(typed: &str) -> Option<Invocation> {
        let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        Invocation::read(&words)
    }

    #[test]
    fn serving_is_understood_with_all_of_its_flags() {
        let config = |path: &str| Some(Invocation { config: Some(path.into()) });
        for (typed, expected) in [
            ("dormouse", Some(Invocation { config: None })),
            ("dormouse serve --eager", Some(Invocation { config: None })),
            ("dormouse --config c.json", config("c.json")),
            ("dormouse start --profile p --config=c.json", config("c.json")),
            ("dormouse --profile serve serve --config c", config("c")),
            ("dormouse --config", None),
            ("dormouse --config a --config b", None),
            ("dormouse --http :80", None),
            ("dormouse --no-daemon", None),
            ("dormouse --help", None),
            ("dormouse serve serve", None),
            ("dormouse status", None),
            ("dormouse -- server", None),
            ("dormouse --unknown x", None),
        ] {
            assert_eq!(read(typed), expected, "{typed}");
        }
    }

    #[test]
    fn every_flag_of_serve_is_carried_or_keeps_the_host_in_its_process() {
        let kept = ["--http", "--stdio", "--no-daemon", "--help"];
        let mut command = options::command();
        command.build();
        let serve = command.find_subcommand("serve").unwrap();
        for argument in serve.get_arguments() {
            let Some(long) = argument.get_long() else { continue };
            let flag = format!("--{long}");
            let has_value = argument.get_action().takes_values();
            let known: &[&str] = if has_value { &WITH_VALUE } else { &WITHOUT_VALUE };
            assert!(known.contains(&&*flag) || kept.contains(&&*flag), "{flag}");
        }
    }
}
