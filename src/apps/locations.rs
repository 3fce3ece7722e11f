//! The locations of the apps' config files on each operating system.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// The users and projects that a file of an app applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileScope {
    /// The current user, in all projects.
    User,
    /// The current user, in one project.
    Local,
    /// All users of one project.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    Linux,
    Mac,
    Windows,
}

/// The location of one file of an app.
#[derive(Debug)]
pub(super) struct FileLocation {
    pub(super) scope: FileScope,
    pub(super) root: BaseDir,
    /// Path below the base directory, separated by `/`. A component may begin with `*`, which
    /// matches any prefix of a file name.
    pub(super) path: &'static str,
    pub(super) on: &'static [Os],
    /// Key paths to the servers, if they differ from those of the app's other files.
    pub(super) servers: Option<KeyPaths>,
    /// Set unless the file is only read, for example because it belongs to an older version.
    pub(super) is_writable: bool,
}

/// Alternative key paths to a mapping or list of servers. The first path that leads to one is used.
pub(super) type KeyPaths = &'static [&'static [&'static str]];

/// A placeholder in a key path for the project directory.
pub(super) const PROJECT_KEY: &str = "<project>";

#[derive(Clone, Copy, Debug)]
pub(super) enum BaseDir {
    Home,
    /// The value of an environment variable, or a directory below the home directory.
    Variable(&'static str, &'static str),
    /// `$XDG_CONFIG_HOME` or `~/.config`.
    Config,
    /// The directory for data of graphical programs: `~/.config`, `~/Library/Application Support`
    /// or `%APPDATA%`.
    Application,
    /// `%LOCALAPPDATA%`.
    LocalApplication,
    Project,
}

const EVERYWHERE: &[Os] = &[Os::Linux, Os::Mac, Os::Windows];

impl FileLocation {
    pub(super) const fn user(root: BaseDir, path: &'static str) -> Self {
        Self {
            scope: FileScope::User,
            root,
            path,
            on: EVERYWHERE,
            servers: None,
            is_writable: true,
        }
    }

    pub(super) const fn project(path: &'static str) -> Self {
        let (scope, root) = (FileScope::Project, BaseDir::Project);
        Self { scope, root, path, on: EVERYWHERE, servers: None, is_writable: true }
    }

    pub(super) const fn on(self, on: &'static [Os]) -> Self {
        Self { on, ..self }
    }

    /// Marks the file as one that dormouse reads but never writes.
    pub(super) const fn read_only(self) -> Self {
        Self { is_writable: false, ..self }
    }

    /// Selects the part of the same file that applies to one project.
    pub(super) const fn local(self, servers: KeyPaths) -> Self {
        Self { scope: FileScope::Local, servers: Some(servers), ..self }
    }
}

/// The directories in which the apps look for their files.
#[derive(Clone, Debug)]
pub struct Directories {
    pub os: Os,
    pub home: PathBuf,
    pub project: PathBuf,
    pub variables: HashMap<String, String>,
}

impl Directories {
    /// Returns the directories of the user who runs this process, or `None` without a home
    /// directory.
    pub fn of_process(project: PathBuf) -> Option<Self> {
        let os = if cfg!(windows) {
            Os::Windows
        } else if cfg!(target_os = "macos") {
            Os::Mac
        } else {
            Os::Linux
        };
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Some(Self { os, home: etcetera::home_dir().ok()?, project, variables })
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn root(&self, root: BaseDir) -> PathBuf {
        let config =
            || self.variable("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"));
        let roaming = || {
            let usual = || self.home.join("AppData").join("Roaming");
            self.variable("APPDATA").unwrap_or_else(usual)
        };
        match (root, self.os) {
            (BaseDir::Home, _) => self.home.clone(),
            (BaseDir::Variable(name, usual), _) => {
                self.variable(name).unwrap_or_else(|| self.home.join(usual))
            }
            (BaseDir::Config, _) | (BaseDir::Application, Os::Linux) => config(),
            (BaseDir::Application, Os::Mac) => {
                self.home.join("Library").join("Application Support")
            }
            (BaseDir::Application, Os::Windows) => roaming(),
            (BaseDir::LocalApplication, _) => {
                let usual = || self.home.join("AppData").join("Local");
                self.variable("LOCALAPPDATA").unwrap_or_else(usual)
            }
            (BaseDir::Project, _) => self.project.clone(),
        }
    }

    /// Returns the paths of a location: existing files if it contains `*`, otherwise a single path
    /// whose file may be missing.
    pub(super) fn files(&self, location: &FileLocation) -> Vec<PathBuf> {
        if !location.on.contains(&self.os) {
            return Vec::new();
        }
        let mut found = vec![self.root(location.root)];
        for step in location.path.split('/') {
            found = match step.strip_prefix('*') {
                Some(end) => found.iter().flat_map(|directory| listed(directory, end)).collect(),
                None => found.into_iter().map(|directory| directory.join(step)).collect(),
            };
        }
        found
    }
}

/// Returns the entries of a directory whose names end with `end`, sorted.
fn listed(directory: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    paths.sort();
    paths
}
