//! Where hosts have their files, on each operating system.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// Whom a file of a host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This user, in all projects.
    User,
    /// This user, in one project.
    Local,
    /// Everybody in one project.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    Linux,
    Mac,
    Windows,
}

/// A file of a host.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) scope: Scope,
    pub(super) root: Root,
    /// Below the root, with `/`; one step may be `*`.
    pub(super) path: &'static str,
    pub(super) on: &'static [Os],
    /// The ways to its servers where they are not those of the host's other files.
    pub(super) servers: Option<Ways>,
    /// Whether dormouse may be put there.
    pub(super) is_written: bool,
}

/// Ways to a mapping of servers; the first that leads to one is meant.
pub(super) type Ways = &'static [&'static [&'static str]];

/// Stands in a way for the directory of the project.
pub(super) const PROJECT: &str = "<project>";

#[derive(Clone, Copy, Debug)]
pub(super) enum Root {
    Home,
    /// What a variable says, else a directory in the home.
    Variable(&'static str, &'static str),
    /// `~/.config`, wherever that is said to be.
    Config,
    /// Where programs with windows keep what is theirs: `~/.config`, `~/Library/Application Support` or `%APPDATA%`.
    Application,
    /// `%LOCALAPPDATA%`.
    LocalApplication,
    Project,
}

const EVERYWHERE: &[Os] = &[Os::Linux, Os::Mac, Os::Windows];

impl Place {
    pub(super) const fn user(root: Root, path: &'static str) -> Self {
        Self { scope: Scope::User, root, path, on: EVERYWHERE, servers: None, is_written: true }
    }

    pub(super) const fn project(path: &'static str) -> Self {
        let (scope, root) = (Scope::Project, Root::Project);
        Self { scope, root, path, on: EVERYWHERE, servers: None, is_written: true }
    }

    pub(super) const fn on(self, on: &'static [Os]) -> Self {
        Self { on, ..self }
    }

    /// Read, and not written to.
    pub(super) const fn only_read(self) -> Self {
        Self { is_written: false, ..self }
    }

    /// The same file's part for one project.
    pub(super) const fn local(self, servers: Ways) -> Self {
        Self { scope: Scope::Local, servers: Some(servers), ..self }
    }
}

/// The directories of a user, as the hosts find them.
#[derive(Clone, Debug)]
pub struct Directories {
    pub os: Os,
    pub home: PathBuf,
    pub project: PathBuf,
    pub variables: HashMap<String, String>,
}

impl Directories {
    /// Those of whoever runs this; `None` without a home.
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

    fn root(&self, root: Root) -> PathBuf {
        let config =
            || self.variable("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"));
        let roaming = || {
            let usual = || self.home.join("AppData").join("Roaming");
            self.variable("APPDATA").unwrap_or_else(usual)
        };
        match (root, self.os) {
            (Root::Home, _) => self.home.clone(),
            (Root::Variable(name, usual), _) => {
                self.variable(name).unwrap_or_else(|| self.home.join(usual))
            }
            (Root::Config, _) | (Root::Application, Os::Linux) => config(),
            (Root::Application, Os::Mac) => self.home.join("Library").join("Application Support"),
            (Root::Application, Os::Windows) => roaming(),
            (Root::LocalApplication, _) => {
                let usual = || self.home.join("AppData").join("Local");
                self.variable("LOCALAPPDATA").unwrap_or_else(usual)
            }
            (Root::Project, _) => self.project.clone(),
        }
    }

    /// The files that a place stands for, whether or not they are there; with `*`, those that are.
    pub(super) fn files(&self, place: &Place) -> Vec<PathBuf> {
        if !place.on.contains(&self.os) {
            return Vec::new();
        }
        let mut found = vec![self.root(place.root)];
        for step in place.path.split('/') {
            found = match step.strip_prefix('*') {
                Some(end) => found.iter().flat_map(|directory| listed(directory, end)).collect(),
                None => found.into_iter().map(|directory| directory.join(step)).collect(),
            };
        }
        found
    }
}

/// What is in a directory and ends like this, by name.
fn listed(directory: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    paths.sort();
    paths
}
