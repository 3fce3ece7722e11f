//! The `.env` file next to a config, whose variables the config can name.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::base::{ReplaceError, create_file, make_private, read_bounded, replace_file};

/// Maximum size of a `.env` file, in bytes.
pub(super) const MAX_VARIABLES: u64 = 1024 * 1024;
/// Maximum size of a value in `.env`, in bytes: values may be composed of each other.
pub(super) const MAX_VALUE: usize = 64 * 1024;
/// Maximum number of references to variables in `.env`.
pub(super) const MAX_REFERENCES: usize = 1000;

/// The lines of a `.env` file, read once. There may be no file, and then there are no lines.
#[derive(Clone, Debug)]
pub(crate) struct EnvFile {
    path: PathBuf,
    /// False for a config that was never trusted, whose `.env` is not read.
    may_read: bool,
    lines: Vec<u8>,
}

impl EnvFile {
    /// Reads the file next to a config if `may_read` is set.
    ///
    /// # Errors
    /// If there is a file that cannot be read.
    pub(super) fn read(config: &Path, may_read: bool) -> io::Result<Self> {
        let path = Self::path_next_to(config);
        let lines = if may_read && path.is_file() { Self::lines_of(&path)? } else { Vec::new() };
        Ok(Self { path, may_read, lines })
    }

    /// Reads the file next to a config that is to be written. One that cannot be read is left out.
    pub(super) fn next_to_new(config: &Path) -> Self {
        let path = Self::path_next_to(config);
        let lines = Self::lines_of(&path).unwrap_or_default();
        Self { path, may_read: true, lines }
    }

    /// Returns a file that does not exist.
    #[cfg(any(test, fuzzing))]
    pub(super) fn absent(config: &Path) -> Self {
        Self { path: Self::path_next_to(config), may_read: true, lines: Vec::new() }
    }

    pub(super) fn path_next_to(config: &Path) -> PathBuf {
        config.with_file_name(".env")
    }

    fn lines_of(path: &Path) -> io::Result<Vec<u8>> {
        read_bounded(path, MAX_VARIABLES)
    }

    pub(super) fn may_read(&self) -> bool {
        self.may_read
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Returns the names of the variables, in the order of their lines.
    pub(crate) fn names(&self) -> Vec<String> {
        assignments(&self.lines).0.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the value of a variable.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let pairs = assignments(&self.lines).0.into_iter().rev();
        pairs.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the file with more lines at its end.
    #[must_use]
    pub(super) fn with_lines(mut self, added: &str) -> Self {
        if !added.is_empty() && self.lines.last().is_some_and(|last| *last != b'\n') {
            self.lines.push(b'\n');
        }
        self.lines.extend(added.as_bytes());
        self
    }

    /// Writes this in place of `before`, for its user alone, since it contains secrets from now on.
    ///
    /// # Errors
    /// If the file has changed since it was read, or cannot be written.
    pub(super) fn replace(&self, before: &Self) -> Result<(), ReplaceError> {
        if self.lines == before.lines {
            return Ok(());
        }
        let failed = |cause| ReplaceError::write(&self.path, cause);
        if !self.path.exists() {
            return create_file(&self.path, &self.lines).map_err(failed);
        }
        make_private(&self.path).map_err(failed)?;
        replace_file(&self.path, &before.lines, &self.lines)
    }
}

/// Returns the assignments of a `.env` file in order, and the number of other lines. Values are
/// bounded.
pub(super) fn assignments(lines: &[u8]) -> (Vec<(String, String)>, usize) {
    let lines = lines.strip_prefix(b"\xef\xbb\xbf").unwrap_or(lines);
    if memchr::memchr_iter(b'$', lines).count() > MAX_REFERENCES {
        return (Vec::new(), lines.split(|byte| *byte == b'\n').count());
    }
    let (mut found, mut malformed) = (Vec::new(), 0);
    for pair in dotenvy::from_read_iter(lines) {
        match pair {
            // Each line may double the previous one, so that later lines are not read.
            Ok((_, value)) if value.len() > MAX_VALUE => return (found, malformed + 1),
            Ok(pair) => found.push(pair),
            Err(_) => malformed += 1,
        }
    }
    (found, malformed)
}
