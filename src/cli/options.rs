//! The flags that several commands share, and the commands to which each applies.

use clap::{Arg, ArgMatches, Command, CommandFactory as _, error::ErrorKind, parser::ValueSource};

use super::arguments::Arguments;

/// Returns the command line, in which each command shows the shared flags that apply to it.
pub(super) fn command() -> Command {
    let command = Arguments::command();
    let shared: Vec<Arg> = shared(&command).cloned().collect();
    command.mut_subcommands(|subcommand| {
        let name = subcommand.get_name().to_owned();
        let is_meaningless = |option: &&Arg| !has_meaning(&name, option.get_id().as_str());
        let hidden = shared.iter().filter(is_meaningless);
        let hidden: Vec<Arg> = hidden.map(|option| option.clone().hide(true)).collect();
        subcommand.args(hidden)
    })
}

fn shared(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| argument.is_global_set())
}

/// Refuses shared flags that do not apply to the command.
///
/// # Errors
/// If there is such a flag.
pub(super) fn check(matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, typed)) = matches.subcommand() else { return Ok(()) };
    let mut command = command();
    let is_refused = |option: &&Arg| {
        let id = option.get_id().as_str();
        typed.value_source(id) == Some(ValueSource::CommandLine) && !has_meaning(name, id)
    };
    let refused = shared(&command).find(is_refused).and_then(Arg::get_long);
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
        "profile" => ["serve", "check", "connect", "list", "status", "test", "refresh", "call"]
            .contains(&command),
        "eager" | "lazy" | "hybrid" => ["serve", "connect", "add", "import"].contains(&command),
        "surface" | "idle_timeout" | "http" => ["serve", "connect"].contains(&command),
        "stdio" => command == "serve",
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
            let matches = command().try_get_matches_from(typed.split(' ')).unwrap();
            assert_eq!(check(&matches).is_err(), is_refused, "{typed}");
        }
    }

    #[test]
    fn help_of_a_command_shows_its_flags() {
        let mut command = command();
        command.build();
        let help = |name: &str| {
            command.clone().find_subcommand_mut(name).unwrap().render_help().to_string()
        };
        assert!(help("list").contains("--config") && !help("list").contains("--http"));
        assert!(help("connect").contains("--http") && !help("connect").contains("--stdio"));
    }
}
