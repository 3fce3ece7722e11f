//! The directory and the variables that servers inherit.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// Variables that programs need to run at all; all others must be named by the server's config.
const INHERITED_VARIABLES: [&str; 44] = [
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

/// The directory and the variables of the process that a host started, which its servers inherit.
/// The variables may be secret.
#[derive(Clone, Default, PartialEq)]
pub struct LaunchContext {
    /// `None`: the working directory of this process.
    directory: Option<PathBuf>,
    variables: HashMap<OsString, OsString>,
}

impl LaunchContext {
    /// Returns the context of this process.
    pub fn of_process() -> Self {
        Self::new(None, std::env::vars_os())
    }

    /// Returns the context of a process; `directory` is `None` for the directory of this process.
    pub(crate) fn new(
        directory: Option<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self { directory, variables: variables.into_iter().collect() }
    }

    /// Returns the directory in which servers start; `None` if it cannot be determined.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.directory.clone().or_else(|| std::env::current_dir().ok())
    }

    /// Returns the directory to change to before a server is started, if it has to be changed.
    pub(super) fn other_directory(&self) -> Option<&PathBuf> {
        self.directory.as_ref()
    }

    /// Returns a variable whose value is UTF-8.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name))?.to_str()
    }

    /// Returns the variables that a server inherits: all, or those without which programs do not
    /// run.
    pub(super) fn inherited(&self, all: bool) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let is_needed = |name: &str| {
            INHERITED_VARIABLES.iter().any(|needed| needed.eq_ignore_ascii_case(name))
                || name.starts_with("LC_")
        };
        let variables = self.variables.iter().map(|(name, value)| (&**name, &**value));
        variables.filter(move |(name, _)| all || name.to_str().is_some_and(is_needed))
    }
}

impl std::fmt::Debug for LaunchContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchContext")
            .field("directory", &self.directory)
            .field("variables", &self.variables.len())
            .finish()
    }
}
