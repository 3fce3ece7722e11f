//! The command with which a user logs in.

use std::path::PathBuf;

use crate::base::shell_command;

/// The parts of the login command that errors tell the user to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginCommand {
    /// Set if the config is found only when the command names it.
    pub config: Option<PathBuf>,
    pub env_file: Option<PathBuf>,
}

impl LoginCommand {
    pub(super) fn login(&self, server: &str) -> String {
        let mut words = vec!["dormouse".to_owned(), "login".to_owned(), server.to_owned()];
        for (flag, path) in [("--config", &self.config), ("--env-file", &self.env_file)] {
            if let Some(path) = path {
                words.extend([flag.to_owned(), path.display().to_string()]);
            }
        }
        shell_command(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_command_is_quoted_for_a_shell() {
        let plain = LoginCommand::default();
        assert_eq!(plain.login("linear"), "dormouse login linear");
        let config = Some("/a b/dormouse.json".into());
        let elsewhere = LoginCommand { config, env_file: None };
        assert_eq!(
            elsewhere.login("my $x"),
            "dormouse login 'my $x' --config '/a b/dormouse.json'"
        );
    }
}
