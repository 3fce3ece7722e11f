//! The names of the servers that hosts have loaded, kept from one run to the next.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::base::lock_file;

/// A file with one name per line.
#[derive(Clone, Debug)]
pub(in crate::proxy) struct RememberedLoads(PathBuf);

impl RememberedLoads {
    pub(in crate::proxy) fn at(file: PathBuf) -> Self {
        Self(file)
    }

    pub(in crate::proxy) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the names. A file that cannot be read has none.
    pub(in crate::proxy) fn read(&self) -> BTreeSet<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Adds a name, under a lock that all processes share.
    ///
    /// # Errors
    /// When the directory or the file cannot be written.
    pub(in crate::proxy) fn add(&self, name: String) -> io::Result<()> {
        let directory = self.0.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let lock = File::create(directory.join("lock"))?;
        lock_file(&lock)?;
        let mut loaded = self.read();
        if !loaded.insert(name) {
            return Ok(());
        }
        let mut fresh = tempfile::NamedTempFile::new_in(directory)?;
        for name in loaded {
            writeln!(fresh, "{name}")?;
        }
        fresh.persist(&self.0)?;
        Ok(())
    }
}
