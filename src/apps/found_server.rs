//! The servers in the files of apps, and where each was found.

use std::path::PathBuf;

use super::{app::App, entry::TranslatedEntry};

/// The file in which a server was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSource {
    /// Name of the app, or of the other proxy whose config it is.
    pub app: &'static str,
    /// Id of the app on the command line.
    pub id: &'static str,
    pub path: PathBuf,
    /// Set if the file applies to all users of a project.
    pub is_project: bool,
}

impl std::fmt::Display for ServerSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.app)?;
        if self.is_project { f.write_str(" (project)") } else { Ok(()) }
    }
}

/// The servers that an app keeps for one project other than the current one. They stand in a file
/// of the user that holds the servers of several projects.
#[derive(Clone, Debug)]
pub struct OtherProjectServers {
    pub app: &'static App,
    pub project: String,
    pub servers: Vec<String>,
}

impl std::fmt::Display for OtherProjectServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { app, project, servers } = self;
        write!(f, "{} has servers for the project {project}: {}", app.name, servers.join(", "))
    }
}

/// A server that was found in a file.
#[derive(Clone, Debug)]
pub struct FoundServer {
    pub name: String,
    pub source: ServerSource,
    pub entry: FoundEntry,
}

/// An entry, classified by whether it can be imported.
#[derive(Clone, Debug)]
pub enum FoundEntry {
    Ready(TranslatedEntry),
    Disabled,
    /// The entry starts or connects to dormouse itself.
    Dormouse,
    /// The entry cannot be used, for this reason.
    Unusable(String),
}
