//! What is wrong with a config, and where.

use std::{fmt, io, path::PathBuf};

/// Problems that are reported of a config; of the others only that there are some: the place of each costs a look at the
/// whole text.
pub const MAX_PROBLEMS: usize = 100;

/// One mistake in a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// As in `mcpServers.docs.args[1]`; empty for the file as a whole.
    pub key_path: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file.display(), self.line, self.column)?;
        if !self.key_path.is_empty() {
            write!(f, "{}: ", self.key_path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why there is no config to run with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    #[error("cannot read the config {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Environment(#[from] super::environment::EnvironmentError),
    #[error(
        "no config found; looked for {}{}; run `dormouse init` or `dormouse import`, name a config with --config, or wrap one server with `dormouse -- COMMAND`",
        paths(.looked),
        left_alone(.of_apps.as_ref())
    )]
    NotFound {
        looked: Vec<PathBuf>,
        /// A file of another program in the working directory.
        of_apps: Option<PathBuf>,
    },
    #[error(
        "{path} was found in the working directory and runs commands; look at it, and if they are yours to run, say: dormouse trust {path}",
        path = path.display()
    )]
    Untrusted { path: PathBuf },
    #[error(
        "there is no dormouse.json, .yaml, .yml or .toml in {directory}; your own config needs no trust"
    )]
    NothingToTrust { directory: PathBuf },
    #[error("there is no profile {name:?}; there are: {}", if profiles.is_empty() { "none".to_owned() } else { profiles.join(", ") })]
    NoProfile { name: String, profiles: Vec<String> },
    #[error("cannot record what is trusted in {}", path.display())]
    TrustStore { path: PathBuf, source: io::Error },
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn left_alone(of_apps: Option<&PathBuf>) -> String {
    of_apps.map_or_else(String::new, |path| {
        format!("; {} belongs to another program, and is used only with --config", path.display())
    })
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
