//! The flags that several commands share, and the commands to which each applies.

use std::ffi::OsString;

use clap::{
    Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _, error::ErrorKind,
    parser::ValueSource,
};

use clap_complete::ArgValueCandidates;

use super::{arguments::Arguments, candidates, help};

/// Returns the command line, in which each command shows the shared flags that apply to it, with
/// help of its own where their effect differs.
pub(super) fn command() -> Command {
    // Completion reads the config, which reads the shared flags: they cannot name it themselves.
    let profiles = ArgValueCandidates::new(candidates::profiles);
    let command = Arguments::command().mut_args(|flag| match flag.get_id().as_str() {
        "profile" => flag.add(profiles.clone()),
        _ => flag,
    });
    let shared: Vec<Arg> = shared(&command).cloned().collect();
    help::by_topic(command.mut_subcommands(|subcommand| {
        let name = subcommand.get_name().to_owned();
        let adapted: Vec<Arg> = shared.iter().filter_map(|flag| adapted(&name, flag)).collect();
        subcommand.args(adapted)
    }))
}

/// The variable with the name of the profile, for commands that have `--profile`.
const PROFILE_VARIABLE: &str = "DORMOUSE_PROFILE";

/// Parses a command line, which begins with the name of the program. `variable` returns the
/// variables of the process that was given it.
///
/// # Errors
/// If it is not valid.
pub(super) fn parse(
    arguments: Vec<OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    check(&mut command, &matches)?;
    let mut parsed = Arguments::from_arg_matches(&matches)?;
    let has_profile = has_meaning(matches.subcommand_name().unwrap_or("serve"), "profile");
    if parsed.options.profile.is_none() && has_profile {
        parsed.options.profile = profile_of(variable(PROFILE_VARIABLE))
            .map_err(|message| command.error(ErrorKind::InvalidUtf8, message))?;
    }
    Ok(parsed)
}

/// Returns the name in [`PROFILE_VARIABLE`]; `None` if the variable is empty.
fn profile_of(variable: Option<OsString>) -> Result<Option<String>, String> {
    let value = variable.filter(|value| !value.is_empty()).map(OsString::into_string);
    value.transpose().map_err(|_| format!("{PROFILE_VARIABLE} is not UTF-8"))
}

/// Returns the flag as the command shows it; `None` if the command shows it unchanged.
fn adapted(command: &str, flag: &Arg) -> Option<Arg> {
    let id = flag.get_id().as_str();
    if !has_meaning(command, id) {
        return Some(flag.clone().hide(true));
    }
    own_help(command, id).map(|help| flag.clone().help(help))
}

/// Returns the help of a flag whose effect in the command is not that of `serve`.
fn own_help(command: &str, flag: &str) -> Option<&'static str> {
    match (command, flag) {
        ("add" | "import", "eager") => Some("Set `startup` of the added servers to `eager`"),
        ("add" | "import", "lazy") => Some("Set `startup` of the added servers to `lazy`"),
        ("add" | "import", "hybrid") => Some("Set `startup` of the added servers to `hybrid`"),
        ("connect", "http") => {
            Some("Write the URL of the dormouse that serves on this address, not a command")
        }
        _ => None,
    }
}

fn shared(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| argument.is_global_set())
}

/// Refuses shared flags that do not apply to the command.
///
/// # Errors
/// If there is such a flag.
fn check(command: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, typed)) = matches.subcommand() else { return Ok(()) };
    let is_refused = |option: &&Arg| {
        let id = option.get_id().as_str();
        typed.value_source(id) == Some(ValueSource::CommandLine) && !has_meaning(name, id)
    };
    let refused = shared(command).find(is_refused).and_then(Arg::get_long);
    let Some(option) = refused else { return Ok(()) };
    let message = format!("--{option} does not apply to `dormouse {name}`");
    Err(command.error(ErrorKind::UnknownArgument, message))
}

fn has_meaning(command: &str, option: &str) -> bool {
    match option {
        "config" => !["trust", "completions", "man", "schema", "demo"].contains(&command),
        "env_file" | "log_level" | "log_format" => {
            !["completions", "man", "schema", "demo"].contains(&command)
        }
        "profile" => {
            ["serve", "check", "connect", "list", "status", "test", "refresh", "call", "script"]
                .contains(&command)
        }
        "eager" | "lazy" | "hybrid" => ["serve", "connect", "add", "import"].contains(&command),
        "surface" | "scripts" | "idle_timeout" | "http" => ["serve", "connect"].contains(&command),
        "stdio" | "no_daemon" => command == "serve",
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_command_and_flag() {
        let documentation = include_str!("../../docs/reference/commands.md");
        let options = |arguments: &mut dyn Iterator<Item = &Arg>| {
            let shown = arguments.filter(|argument| !argument.is_hide_set());
            let names = shown.filter_map(Arg::get_long).filter(|name| *name != "help");
            names.map(|name| format!("`--{name}`")).collect::<Vec<_>>().join(", ")
        };
        let command = command();
        let mut rows = vec![format!("| shared | {} |", options(&mut shared(&command)))];
        for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = format!("`{}`", subcommand.get_name());
            let known = subcommand.get_arguments().filter(|option| !option.is_global_set());
            rows.push(format!("| {name} | {} |", options(&mut known.into_iter())));
        }
        let table = rows.join("\n").replace("|  |", "| |");
        assert!(
            documentation.contains(&table),
            "docs/reference/commands.md lacks this table:\n{table}"
        );
    }

    #[test]
    fn inapplicable_flag_is_refused_at_any_position() {
        for (typed, is_refused) in [
            ("dormouse check --surface direct", true),
            ("dormouse --surface direct check", true),
            ("dormouse list --eager", true),
            ("dormouse status --http :80", true),
            ("dormouse schema --config x", true),
            ("dormouse --surface direct --http :80 --stdio", false),
            ("dormouse serve --surface direct", false),
            ("dormouse connect cursor --http :80 --hybrid", false),
            ("dormouse check --config x --profile p", false),
        ] {
            let mut command = command();
            let matches = command.try_get_matches_from_mut(typed.split(' ')).unwrap();
            assert_eq!(check(&mut command, &matches).is_err(), is_refused, "{typed}");
        }
    }

    #[test]
    fn help_of_each_command_shows_its_arguments_and_flags() {
        let mut command = command().term_width(80).disable_help_subcommand(true);
        command.build();
        let shown = command.get_subcommands_mut().filter(|command| !command.is_hide_set());
        let pages = shown.map(|command| command.render_help().to_string());
        insta::assert_snapshot!(pages.collect::<Vec<_>>().join("\n---\n\n"));
    }

    #[test]
    fn every_argument_has_help() {
        let mut command = command();
        command.build();
        let commands = std::iter::once(&command).chain(command.get_subcommands());
        let silent: Vec<String> = commands
            .flat_map(|command| command.get_arguments().map(move |argument| (command, argument)))
            .filter(|(_, argument)| argument.get_help().is_none())
            .map(|(command, argument)| format!("{} {argument}", command.get_name()))
            .collect();
        assert!(silent.is_empty(), "no help: {silent:?}");
    }

    #[test]
    fn start_policies_of_added_servers_exclude_each_other() {
        let typed = ["dormouse", "add", "notes", "--eager", "--lazy", "--", "notes-server"];
        assert!(command().try_get_matches_from(typed).is_err());
    }
}
