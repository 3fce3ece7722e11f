//! The choice between the daemon and serving in the process that a host has started.

use crate::{
    cli::{settings::is_ci, shared_flags::Options},
    config::Settings,
};

/// The variable that turns the daemon on or off: `1` or `0`, or a word for that.
const VARIABLE: &str = "DORMOUSE_DAEMON";
/// The variable that systemd sets if it passes sockets to this process.
const SOCKETS: &str = "LISTEN_FDS";

/// Returns whether the daemon serves a host. `variable` returns the variables of the host.
pub(super) fn is_for_daemon(
    options: &Options,
    settings: &Settings,
    variable: impl Fn(&str) -> Option<String>,
) -> bool {
    if options.http.is_some() || settings.http.listening.listen.is_some() || options.no_daemon {
        return false;
    }
    match EnvironmentChoice::read(variable) {
        EnvironmentChoice::On => true,
        EnvironmentChoice::Off => false,
        EnvironmentChoice::Unset => settings.daemon.daemon,
    }
}

/// Returns whether the daemon may serve a host with these variables, whatever the config says.
pub(super) fn may_be_for_daemon(variable: impl Fn(&str) -> Option<String>) -> bool {
    EnvironmentChoice::read(variable) != EnvironmentChoice::Off
}

/// Returns whether the text of a config may contain a key that [`is_for_daemon`] looks at.
pub(super) fn is_decided_by(config: &str) -> bool {
    // A key may be written with escapes.
    ["daemon", "listen", "\\"].iter().any(|word| config.contains(word))
}

/// The decision of the environment.
#[derive(PartialEq, Eq)]
enum EnvironmentChoice {
    On,
    Off,
    Unset,
}

impl EnvironmentChoice {
    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = variable(VARIABLE).map(|value| value.to_lowercase());
        match value.as_deref() {
            Some("0" | "false" | "off" | "no") => Self::Off,
            Some("1" | "true" | "on" | "yes") => Self::On,
            // A service of systemd serves its socket itself.
            _ if variable(SOCKETS).is_some() => Self::Off,
            // A job must not leave a process behind.
            _ if is_ci(variable("CI")) => Self::Off,
            _ => Self::Unset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_precedes_the_variable_and_the_variable_precedes_the_config() {
        let on = |flag: bool, variables: &[(&str, &str)], key: bool| {
            let options = Options { no_daemon: flag, ..Options::default() };
            let mut settings = Settings::default();
            settings.daemon.daemon = key;
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            is_for_daemon(&options, &settings, value)
        };
        assert!(on(false, &[], true));
        assert!(!on(false, &[], false));
        assert!(on(false, &[("DORMOUSE_DAEMON", "1"), ("CI", "true")], false));
        assert!(!on(false, &[("DORMOUSE_DAEMON", "0")], true));
        assert!(!on(false, &[("DORMOUSE_DAEMON", "False")], true));
        assert!(!on(false, &[("CI", "true")], true));
        for not_ci in ["", "0", "false", "False"] {
            assert!(on(false, &[("CI", not_ci)], true), "{not_ci}");
        }
        assert!(!on(true, &[("DORMOUSE_DAEMON", "1")], true));
    }
}
