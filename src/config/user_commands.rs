//! The commands that messages advise the user to run.

use std::path::PathBuf;

use crate::base::shell_command;

/// The options that the user's commands need to find what this process has found. Each method
/// returns a command for a POSIX shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserCommands {
    /// The config, if commands find it only by its path.
    pub config: Option<PathBuf>,
    pub env_file: Option<PathBuf>,
}

impl UserCommands {
    pub(crate) fn login(&self, server: &str) -> String {
        self.command(&["login"], &[server], &[])
    }

    pub(crate) fn enable(&self, server: &str) -> String {
        self.command(&["enable"], &[server], &[])
    }

    pub(crate) fn reset(&self, server: &str) -> String {
        self.command(&["reset"], &[server], &[])
    }

    pub(crate) fn refresh(&self, server: &str) -> String {
        self.command(&["refresh"], &[server], &[])
    }

    /// Returns the command that adds the proposed toolsets of a server to the config.
    pub(crate) fn write_toolsets(&self, server: &str) -> String {
        self.command(&["refresh", "--write-toolsets"], &[server], &[])
    }

    /// Returns the command that approves the changes of a tool, or of all tools of a server.
    pub(crate) fn approve(&self, server: &str, tool: Option<&str>) -> String {
        let operands: Vec<&str> = [server].into_iter().chain(tool).collect();
        self.command(&["approve"], &operands, &[])
    }

    /// Returns the command that allows `tool`, as `server/tool`, in spite of the rules at these
    /// places.
    pub(crate) fn allow(&self, tool: &str, places: impl Iterator<Item: ToString>) -> String {
        let rules: Vec<_> = places.map(|place| ("--rule", place.to_string())).collect();
        self.command(&["policy", "allow"], &[tool], &rules)
    }

    fn command(&self, names: &[&str], operands: &[&str], own: &[(&str, String)]) -> String {
        let paths = [("--config", &self.config), ("--env-file", &self.env_file)];
        let paths = paths
            .into_iter()
            .filter_map(|(flag, path)| Some((flag, path.as_ref()?.display().to_string())));
        let options = own.iter().cloned().chain(paths);
        let options = options.flat_map(|(flag, value)| [flag.to_owned(), value]);
        let operands = operands.iter().map(|&operand| operand.to_owned());
        let words = ["dormouse"].iter().chain(names).map(|&word| word.to_owned());
        if operands.clone().any(|operand| operand.starts_with('-')) {
            shell_command(words.chain(options).chain(["--".to_owned()]).chain(operands))
        } else {
            shell_command(words.chain(operands).chain(options))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell_and_name_the_files_that_they_need() {
        let plain = UserCommands::default();
        assert_eq!(plain.login("linear"), "dormouse login linear");
        assert_eq!(plain.approve("a", Some("two words")), "dormouse approve a 'two words'");
        let elsewhere = UserCommands {
            config: Some("/a b/dormouse.json".into()),
            env_file: Some("/c/.env".into()),
        };
        assert_eq!(
            elsewhere.login("my $x"),
            "dormouse login 'my $x' --config '/a b/dormouse.json' --env-file /c/.env"
        );
    }

    #[test]
    fn a_name_like_an_option_follows_a_double_dash() {
        let elsewhere = UserCommands { config: Some("/c.json".into()), env_file: None };
        let places = ["policy[0]", "servers.-s.policy[1]"];
        assert_eq!(
            elsewhere.allow("-s/tool", places.iter()),
            "dormouse policy allow --rule 'policy[0]' --rule 'servers.-s.policy[1]' --config \
                /c.json -- -s/tool"
        );
    }
}
