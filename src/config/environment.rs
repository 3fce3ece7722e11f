//! The variables that `${VAR}` in a config can name: those of the process from which servers
//! inherit, and those of `.env`.

use super::{
    LaunchContext,
    env_file::{EnvFile, MAX_VARIABLES, assignments},
};
use crate::base::read_at_most;
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The variables of `.env`. They take precedence over the process, since the file belongs to
    /// the config.
    file: HashMap<String, String>,
    /// The process whose variables `${VAR}` can name, and from which servers inherit.
    process: Arc<LaunchContext>,
    /// True if `${VAR}` cannot name the variables of the process.
    hides_process: bool,
}

/// The reason that a `.env` file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    #[error("cannot read the environment file {path}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}: lines that are not NAME=value: {malformed}")]
    Malformed { path: PathBuf, malformed: usize },
}

impl Environment {
    /// Returns the variables of this process alone. A value that is not UTF-8 is omitted.
    pub fn of_process() -> Self {
        Self::of(LaunchContext::of_process())
    }

    /// Returns the variables of a process alone.
    pub(crate) fn of(process: Arc<LaunchContext>) -> Self {
        Self { file: HashMap::new(), process, hides_process: false }
    }

    pub fn from_pairs<K: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        let variables = pairs.map(|(name, value): (String, String)| (name.into(), value.into()));
        Self::of(Arc::new(LaunchContext::new(None, variables)))
    }

    /// Adds the variables of a `.env` file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is not an assignment.
    pub fn with_file(mut self, path: &Path) -> Result<Self, EnvironmentError> {
        let lines = read_at_most(path, MAX_VARIABLES)
            .map_err(|source| EnvironmentError::Unreadable { path: path.to_owned(), source })?;
        match self.add(&lines) {
            0 => Ok(self),
            malformed => Err(EnvironmentError::Malformed { path: path.to_owned(), malformed }),
        }
    }

    /// Adds the lines of the `.env` file next to the config. It may belong to another program, so
    /// that other lines cause only a warning.
    #[must_use]
    pub(super) fn with_env_file(mut self, file: &EnvFile) -> Self {
        let malformed = self.add(file.lines());
        if malformed > 0 {
            tracing::warn!(
                path = %file.path().display(), malformed,
                "skipped lines that are not NAME=value",
            );
        }
        self
    }

    /// Adds assignments, and counts the other lines. They may hold secrets, so that they are never
    /// shown.
    fn add(&mut self, lines: &[u8]) -> usize {
        let (pairs, malformed) = assignments(lines);
        self.file.extend(pairs);
        malformed
    }

    /// Returns the variables of `.env` alone.
    pub(super) fn of_file(&self) -> Self {
        Self { hides_process: true, ..self.clone() }
    }

    /// Returns the variables of the process alone.
    pub(super) fn without_file(&self) -> Self {
        Self { file: HashMap::new(), ..self.clone() }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let of_process = || if self.hides_process { None } else { self.process.get(name) };
        self.file.get(name).map(String::as_str).or_else(of_process)
    }

    pub(super) fn launch_context(&self) -> &Arc<LaunchContext> {
        &self.process
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::env_file::{MAX_REFERENCES, MAX_VALUE},
        *,
    };

    #[test]
    fn variables_that_double_each_other_stay_small() {
        let mut lines = "A0=0123456789\n".to_owned();
        for number in 0..60 {
            lines.push_str(&format!("A{}=${{A{number}}}${{A{number}}}\n", number + 1));
        }
        let mut environment = Environment::default();
        assert_eq!(environment.add(lines.as_bytes()), 1);
        assert_eq!(environment.get("A3").map(str::len), Some(80));
        assert!(environment.file.values().all(|value| value.len() <= MAX_VALUE));
        let many = format!("A=x\nB={}", "$A".repeat(MAX_REFERENCES + 1));
        assert_eq!(Environment::default().add(many.as_bytes()), 2);
    }
}
