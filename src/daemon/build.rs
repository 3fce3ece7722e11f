//! The identity of a build of the program.

use std::{cmp::Ordering, io, path::Path, time::UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A build of the program, in the order in which builds replace each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Build {
    version: String,
    /// The time at which its file was written, in nanoseconds since 1970, which tells two builds of
    /// one version apart.
    written: u128,
}

impl Build {
    /// Returns the build of this process.
    ///
    /// # Errors
    /// If the program's file cannot be found, for example because an update has replaced it.
    pub(crate) fn of_process() -> io::Result<Self> {
        Self::at(&std::env::current_exe()?)
    }

    /// Returns the build at a path, if it has the version of this process.
    ///
    /// # Errors
    /// If there is no file.
    pub(crate) fn at(program: &Path) -> io::Result<Self> {
        let file = program.metadata()?;
        let written = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), written: written.as_nanos() })
    }

    /// Returns whether this build replaces another one.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        let order = numbers(&self.version).cmp(&numbers(&other.version));
        order.then(self.written.cmp(&other.written)) == Ordering::Greater
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// Returns the numbers of a version such as `1.20.3`.
fn numbers(version: &str) -> Vec<u64> {
    let digits = version.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|number| number.parse().ok()).take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, written: u128) -> Build {
        Build { version: version.to_owned(), written }
    }

    #[test]
    fn version_precedes_the_time_of_the_file() {
        assert!(build("0.10.0", 1).is_newer_than(&build("0.9.1", 2)));
        assert!(build("1.0.0", 2).is_newer_than(&build("1.0.0", 1)));
        assert!(!build("1.0.0", 1).is_newer_than(&build("1.0.0", 1)));
        assert!(!build("0.9.0", 9).is_newer_than(&build("0.10.0", 1)));
    }
}
