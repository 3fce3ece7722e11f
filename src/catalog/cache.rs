//! Catalogs on disk: one file for each server, named after a hash of what decides the catalog. The one file of
//! this module with I/O.
//!
//! Several processes use one directory at once. A file is replaced as a whole, so that a reader sees the one
//! or the other; who replaces one holds the lock of the directory, so that no approval is lost.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Inventory, Pins, Record, RecordError, ServerCatalog};
use crate::config::{ServerConfig, Transport};

/// A larger catalog is not kept.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Files beyond this number are removed, the longest unused first.
const MOST_FILES: usize = 500;
/// Records of one server, for hosts that declare different things.
const MOST_RECORDS: usize = 4;
/// What a process has left behind that was killed while it wrote.
const ABANDONED: Duration = Duration::from_hours(1);

const EXTENSION: &str = "catalog";

/// Which catalog is meant: equal for entries that start the same server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CatalogKey(String);

impl CatalogKey {
    /// `None` for a server that cannot be reached as it is configured. Of what may be secret, the values of
    /// variables and headers, nothing goes in.
    pub fn of(config: &ServerConfig) -> Option<Self> {
        let decisive = match config.transport.as_ref().ok()? {
            Transport::Stdio(launch) => json!({
                "command": launch.command, "args": launch.args, "cwd": launch.cwd,
                "env": launch.env.keys().collect::<Vec<_>>(), "inheritEnv": launch.inherit_env,
            }),
            Transport::Http(remote) => json!({
                "url": remote.url.as_str(), "headers": remote.headers.keys().collect::<Vec<_>>(),
            }),
        };
        let protocol = format!("{:?}", config.protocol);
        let digest = Sha256::digest(format!("{protocol} {decisive}"));
        Some(Self(super::hex(&digest[..16])))
    }
}

/// The directory of the catalogs.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// Why something cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cannot use {path}")]
    Io { path: PathBuf, source: io::Error },
    #[error("a catalog of {size} bytes is too large to be kept")]
    TooLarge { size: usize },
}

impl Cache {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// What is known of a server, as it showed itself to those who declared the same; else to those who
    /// declared more; else whatever is known last.
    pub fn read(&self, key: &CatalogKey, declared: &[String]) -> Option<Record> {
        let mut records = self.records(key);
        let exact = records.iter().position(|record| record.is_for(declared));
        let covering = || records.iter().position(|record| record.covers(declared));
        let best = exact.or_else(covering).unwrap_or(0);
        (best < records.len()).then(|| records.swap_remove(best))
    }

    /// All that is known of a server, the newest first. A damaged file is set aside, and by that reported once.
    pub fn records(&self, key: &CatalogKey) -> Vec<Record> {
        let path = self.path(key);
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read a catalog");
                return Vec::new();
            }
        };
        match Record::decode(file) {
            Ok(records) => records,
            Err(RecordError::OtherFormat) => Vec::new(),
            Err(RecordError::Damaged) => {
                set_aside(&path);
                Vec::new()
            }
        }
    }

    /// What is known of a server from when it was last connected.
    pub fn inventory(&self, config: &ServerConfig) -> Option<Inventory> {
        let record = self.last(config)?;
        Some(Inventory::of(config, &record.catalog, &record.changed()))
    }

    /// The newest of what is known of a server.
    pub fn last(&self, config: &ServerConfig) -> Option<Record> {
        let records = self.records(&CatalogKey::of(config)?);
        records.into_iter().max_by_key(|record| record.learned)
    }

    /// Keeps a catalog as it has just been seen. What its tools were when they were first seen stays known.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn learn(
        &self,
        key: &CatalogKey,
        server: &str,
        catalog: &ServerCatalog,
    ) -> Result<(), CacheError> {
        self.change(key, |records| {
            let declared = &catalog.discovery.declared;
            let known = records.iter().position(|record| record.is_for(declared));
            let mut pins = known.map(|at| records.remove(at).pins).unwrap_or_default();
            pins.see(catalog);
            let (server, catalog) = (server.to_owned(), catalog.clone());
            records.insert(0, Record { server, learned: SystemTime::now(), pins, catalog });
            records.truncate(MOST_RECORDS);
        })
    }

    /// Takes tools as they are now: this one, or all. Returns the names of those that had changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn approve(
        &self,
        key: &CatalogKey,
        tool: Option<&str>,
    ) -> Result<BTreeSet<String>, CacheError> {
        let mut approved = BTreeSet::new();
        self.change(key, |records| {
            for Record { pins, catalog, .. } in records {
                let mut changed = pins.changed(catalog);
                changed.retain(|name| tool.is_none_or(|tool| tool == name));
                for tool in catalog.tools.iter().filter(|tool| changed.contains(&tool.name)) {
                    pins.approve(tool);
                }
                approved.append(&mut changed);
            }
        })?;
        Ok(approved)
    }

    /// What the tools of a server were when those who declared the same first saw them.
    pub fn pins(&self, key: &CatalogKey, declared: &[String]) -> Pins {
        let mut records = self.records(key).into_iter();
        records.find(|record| record.is_for(declared)).map(|record| record.pins).unwrap_or_default()
    }

    /// Replaces the records of a server, while no other process does.
    fn change(
        &self,
        key: &CatalogKey,
        change: impl FnOnce(&mut Vec<Record>),
    ) -> Result<(), CacheError> {
        let failed = |source| CacheError::Io { path: self.directory.clone(), source };
        private_directory(&self.directory).map_err(failed)?;
        let lock = File::create(self.directory.join("lock")).map_err(failed)?;
        // Given back when the file is closed, also by a process that is killed.
        lock.lock().map_err(failed)?;
        let mut records = self.records(key);
        change(&mut records);
        let encoded = Record::encode(&records);
        if encoded.len() > MOST_BYTES {
            return Err(CacheError::TooLarge { size: encoded.len() });
        }
        let is_new = !self.path(key).exists();
        self.write(key, &encoded).map_err(failed)?;
        if is_new {
            self.tidy();
        }
        Ok(())
    }

    fn write(&self, key: &CatalogKey, encoded: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(&self.directory)?;
        file.write_all(encoded)?;
        file.as_file().sync_data()?;
        file.persist(self.path(key))?;
        Ok(())
    }

    /// Removes what was abandoned, and the oldest files where there are too many.
    fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut catalogs = Vec::new();
        for entry in entries.filter_map(Result::ok) {
            let Ok(written) = entry.metadata().and_then(|metadata| metadata.modified()) else {
                continue;
            };
            let path = entry.path();
            let is_old = written.elapsed().is_ok_and(|age| age > ABANDONED);
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                catalogs.push((written, path));
            } else if is_old && entry.file_name().to_string_lossy().starts_with(".writing-") {
                // Another process may have done so.
                let _ = fs::remove_file(path);
            }
        }
        catalogs.sort();
        let surplus = catalogs.len().saturating_sub(MOST_FILES);
        for (_, path) in &catalogs[..surplus] {
            // As above.
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, key: &CatalogKey) -> PathBuf {
        self.directory.join(&key.0).with_extension(EXTENSION)
    }
}

/// Makes a directory that nobody else can look into: instructions and definitions may be confidential.
fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn set_aside(path: &Path) {
    let aside = path.with_extension("damaged");
    match fs::rename(path, &aside) {
        Ok(()) => {
            tracing::warn!(path = %aside.display(), "a catalog was damaged; it has been set aside");
        }
        // Another process has done so.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(path = %path.display(), %error, "a catalog is damaged"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Launch;

    fn config(command: &str, env: &[(&str, &str)]) -> ServerConfig {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let launch = Launch {
            command: command.to_owned(),
            args: Vec::new(),
            env: env.collect(),
            cwd: None,
            inherit_env: false,
        };
        ServerConfig::new("s", Transport::Stdio(launch))
    }

    #[test]
    fn the_key_knows_names_of_variables_and_not_their_values() {
        let key = |command, env: &[(&str, &str)]| CatalogKey::of(&config(command, env)).unwrap();
        assert_eq!(key("a", &[("TOKEN", "x")]), key("a", &[("TOKEN", "y")]));
        assert_ne!(key("a", &[("TOKEN", "x")]), key("a", &[]));
        assert_ne!(key("a", &[]), key("b", &[]));
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_learned_anew() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("catalogs"));
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        assert!(cache.read(&key, &[]).is_none());
        let catalog = ServerCatalog::unknown();
        cache.learn(&key, "s", &catalog).unwrap();
        assert_eq!(cache.read(&key, &[]).unwrap().catalog, catalog);
        fs::write(cache.path(&key), "{").unwrap();
        assert!(cache.read(&key, &[]).is_none());
        assert!(cache.path(&key).with_extension("damaged").exists());
        cache.learn(&key, "s", &catalog).unwrap();
        assert_eq!(cache.read(&key, &[]).unwrap().catalog, catalog);
    }

    #[test]
    fn the_catalog_for_the_same_capabilities_is_best_and_that_for_more_of_them_next() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        let sets = [vec!["roots", "sampling"], vec!["roots"], vec![]];
        for declared in &sets {
            let mut catalog = ServerCatalog::unknown();
            catalog.discovery.declared = declared.iter().map(|name| (*name).to_owned()).collect();
            cache.learn(&key, "s", &catalog).unwrap();
        }
        for (wanted, expected) in [
            (vec![], sets[2].clone()),
            (vec!["roots"], sets[1].clone()),
            (vec!["sampling"], sets[0].clone()),
            (vec!["elicitation"], sets[2].clone()),
        ] {
            let names: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            let read = cache.read(&key, &names).unwrap().catalog.discovery.declared;
            assert_eq!(read, expected, "{wanted:?}");
        }
    }

    #[test]
    fn the_directory_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        for number in 0..MOST_FILES + 20 {
            let key = CatalogKey::of(&config(&number.to_string(), &[])).unwrap();
            fs::write(cache.path(&key), "{}").unwrap();
        }
        let key = CatalogKey::of(&config("new", &[])).unwrap();
        cache.learn(&key, "s", &ServerCatalog::unknown()).unwrap();
        let is_catalog =
            |entry: &fs::DirEntry| entry.path().extension().is_some_and(|e| e == EXTENSION);
        let left =
            fs::read_dir(directory.path()).unwrap().filter_map(Result::ok).filter(is_catalog);
        assert_eq!(left.count(), MOST_FILES);
        assert!(cache.read(&key, &[]).is_some());
    }
}
