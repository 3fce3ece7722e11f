//! The names of the offers that hosts have loaded, kept from one run to the next.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::store::{FileStore, Store, lease_blocking};

/// Maximum size of the value, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A stored value with one name per line.
#[derive(Clone, Debug)]
pub(in crate::proxy) struct RememberedLoads {
    store: Arc<dyn Store>,
    name: String,
}

impl RememberedLoads {
    /// Keeps the loads in a file.
    pub(in crate::proxy) fn at(file: &Path) -> Self {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let directory = file.parent().unwrap_or(Path::new("."));
        Self { store: Arc::new(FileStore::new(directory)), name }
    }

    pub(in crate::proxy) fn path(&self) -> PathBuf {
        self.store.place(&self.name)
    }

    /// Reads the names. A value that cannot be read has none.
    pub(in crate::proxy) fn read(&self) -> BTreeSet<String> {
        let value = self.store.get(&self.name, MAX_BYTES).ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&value);
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Adds a name.
    ///
    /// # Errors
    /// When the value cannot be written.
    pub(in crate::proxy) fn add(&self, name: String) -> io::Result<()> {
        let _lease = lease_blocking(self.store.as_ref(), "lock")?;
        let mut loaded = self.read();
        if !loaded.insert(name) {
            return Ok(());
        }
        let lines: String = loaded.into_iter().map(|name| name + "\n").collect();
        self.store.put(&self.name, lines.as_bytes())
    }
}
