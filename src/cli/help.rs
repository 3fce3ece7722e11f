//! The help of the program, which lists its commands by topic.

use clap::Command;

/// The commands by topic, in the order of the help.
const TOPICS: [(&str, &[&str]); 6] = [
    ("Serve hosts", &["serve", "demo"]),
    ("AI tools", &["import", "connect", "disconnect"]),
    (
        "The config",
        &[
            "init", "add", "remove", "enable", "disable", "share", "get", "check", "trust",
            "store", "schema",
        ],
    ),
    (
        "Servers",
        &["test", "list", "call", "script", "refresh", "approve", "policy", "login", "logout"],
    ),
    ("The running dormouse", &["status", "top", "ui", "log", "load", "sleep", "reset", "daemon"]),
    ("The program", &["completions", "man"]),
];

/// Returns the command line with its commands by topic in the help of the program.
pub(super) fn by_topic(command: Command) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut commands = String::new();
    for (topic, names) in TOPICS {
        commands.push_str(&format!("{header}{topic}:{header:#}\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            commands.push_str(&format!("  {literal}{name:<11}{literal:#}  {about}\n"));
        }
        commands.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}\
         {header}Arguments:{header:#}\n{{positionals}}\n\n\
         {header}Options:{header:#}\n{{options}}\n\n\
         `dormouse help COMMAND` shows the options and examples of a command."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options;

    #[test]
    fn every_command_has_one_topic_and_a_short_description() {
        let command = options::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut listed: Vec<&str> = TOPICS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, shown);
        for command in command.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() <= 65, "{}: {about}", command.get_name());
        }
    }

    #[test]
    fn help_lists_commands_and_flags() {
        let mut command = options::command().term_width(80);
        command.clone().debug_assert();
        insta::assert_snapshot!(command.render_long_help().to_string());
    }
}
