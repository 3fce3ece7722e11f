//! The problems of a config, and their places.

use std::{fmt, io, path::PathBuf};

/// Maximum number of problems that are reported of a config, since locating each costs a pass over
/// the text. Of further ones only their existence is reported.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// One problem in a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// For example `mcpServers.docs.args[1]`; empty for the file as a whole.
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

/// The reason that there is no config to run with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    #[error("cannot read the config {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Environment(#[from] super::environment::EnvironmentError),
    #[error(
        "no config found; searched {}{}; run `dormouse init` or `dormouse import`, name a config \
            with --config, or wrap one server with `dormouse -- COMMAND`",
        paths(.looked),
        left_alone(.of_apps.as_ref())
    )]
    NotFound {
        looked: Vec<PathBuf>,
        /// A file of another program in the working directory.
        of_apps: Option<PathBuf>,
    },
    #[error(
        "{path} is not trusted: it was found in the working directory and runs commands; review \
            it, and run `dormouse trust {path}` to allow them",
        path = path.display()
    )]
    Untrusted { path: PathBuf },
    #[error(
        "no dormouse.json, .yaml, .yml or .toml in {directory}; the user's own config needs no \
            trust"
    )]
    NothingToTrust { directory: PathBuf },
    /// `known`: the names of the first profiles, as text.
    #[error("unknown profile {name:?}; known: {known}")]
    NoProfile { name: String, known: String },
    #[error("cannot save the trust record at {place}")]
    TrustStore { place: String, source: io::Error },
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
