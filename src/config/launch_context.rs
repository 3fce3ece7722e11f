//! The directory and the variables that servers inherit.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::Arc,
};

/// Variables that programs need to run at all; all others must be named by the server's config.
const NEEDED_VARIABLES: [&str; 44] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PYENV_ROOT",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "DOCKER_HOST",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "NUMBER_OF_PROCESSORS",
];

/// The inheritance of servers: the directory and the variables of the process that a host started.
/// The variables may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LaunchContext {
    /// `None`: the working directory of this process.
    directory: Option<PathBuf>,
    variables: HashMap<OsString, OsString>,
    is_of_this_process: bool,
}

impl LaunchContext {
    /// Returns the context of this process.
    pub fn of_process() -> Arc<Self> {
        Arc::new(Self { is_of_this_process: true, ..Self::new(None, std::env::vars_os()) })
    }

    /// Returns the context of another process; `directory` is `None` for the directory of this one.
    pub(crate) fn new(
        directory: Option<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self { directory, variables: variables.into_iter().collect(), is_of_this_process: false }
    }

    /// Returns the directory in which servers start; `None` if it cannot be determined.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.directory.clone().or_else(|| std::env::current_dir().ok())
    }

    /// Returns the directory to change to before a server is started, if it has to be changed.
    pub(super) fn changed_directory(&self) -> Option<&PathBuf> {
        self.directory.as_ref()
    }

    /// Returns whether a child process that is given no variables has these.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.is_of_this_process
    }

    /// Returns a variable, whatever its value is.
    pub(crate) fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(|value| &**value)
    }

    /// Returns a variable whose value is UTF-8.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name))?.to_str()
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the variables without which programs do not run.
    pub(crate) fn needed_variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let is_needed = |name: &str| {
            NEEDED_VARIABLES.iter().any(|needed| needed.eq_ignore_ascii_case(name))
                || name.starts_with("LC_")
        };
        self.variables().filter(move |(name, _)| name.to_str().is_some_and(is_needed))
    }
}

impl std::fmt::Debug for LaunchContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchContext")
            .field("directory", &self.directory)
            .field("variables", &self.variables.len())
            .field("is_of_this_process", &self.is_of_this_process)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> LaunchContext {
        let variables = [("Path", "/bin"), ("LC_ALL", "C"), ("TOKEN", "canary")];
        let variables = variables.map(|(name, value)| (OsString::from(name), value.into()));
        LaunchContext::new(None, variables)
    }

    #[test]
    fn needed_variables_are_told_without_case() {
        let context = context();
        let mut names: Vec<_> = context.needed_variables().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, ["LC_ALL", "Path"]);
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert!(!format!("{:?}", context()).contains("canary"));
    }

    #[cfg(unix)]
    #[test]
    fn value_that_is_not_utf_8_is_inherited_but_cannot_be_named() {
        use std::os::unix::ffi::OsStringExt as _;
        let value = OsString::from_vec(vec![0xff]);
        let context = LaunchContext::new(None, [("LANG".into(), value.clone())]);
        assert_eq!(context.get("LANG"), None);
        assert_eq!(context.needed_variables().next(), Some((OsStr::new("LANG"), &*value)));
    }
}
