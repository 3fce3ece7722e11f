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
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    Digests, Inventory, Kept, Pins, Record, RecordError, ServerCatalog,
    change::{Change, changes, keep_former},
    cleanup::{DAMAGED, EXTENSION, HUNG, WRITING, clean},
};
use crate::config::{self, Launch, ServerConfig, Transport, make_private_directory, read_bounded};

/// A larger catalog is not kept.
const MAX_CATALOG_BYTES: usize = 16 * 1024 * 1024;
/// New files between two looks through the directory.
const CLEANUP_INTERVAL: usize = 100;
/// Records of one server, for hosts that declare different things.
const MAX_RECORDS: usize = 4;

/// Which catalog is meant: equal for entries that start the same server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CatalogKey(String);

impl CatalogKey {
    /// `None` for a server that cannot be reached as it is configured. Of the values of variables and headers
    /// nothing goes in, and of the rest no more than a hash.
    pub fn of(config: &ServerConfig) -> Option<Self> {
        let decisive = match config.transport.as_ref().ok()? {
            Transport::Stdio(launch) => json!({
                "command": launch.command, "args": launch.args, "cwd": directory(launch, || std::env::current_dir().ok()),
                "env": launch.env.keys().collect::<Vec<_>>(), "inheritEnv": launch.inherit_env,
            }),
            Transport::Http(remote) => json!({
                "url": remote.url.as_str(), "headers": remote.headers.keys().collect::<Vec<_>>(),
            }),
        };
        let protocol = config.protocol.name();
        let digest = Sha256::digest(format!("{protocol} {decisive}"));
        Some(Self(super::hex(&digest[..16])))
    }
}

/// Where it is started, as far as that decides what it is: `./server`, or `server.py` where there is one, is another
/// one elsewhere.
fn directory(launch: &Launch, here: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    if launch.cwd.is_some() {
        return launch.cwd.clone();
    }
    let here = here()?;
    let is_relative = |word: &str| {
        matches!(word, "." | "..") || word.starts_with("./") || word.starts_with("../")
    };
    let names_file =
        |word: &str| !word.is_empty() && Path::new(word).is_relative() && here.join(word).exists();
    let mut words = launch.args.iter().chain([&launch.command]);
    words.any(|word| is_relative(word) || names_file(word)).then_some(here)
}

/// The directory of the catalogs.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    /// Files that this process has added.
    added: Arc<AtomicUsize>,
}

/// Why something cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cannot use {path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("cannot read {path}: {reason}")]
    Unreadable { path: PathBuf, reason: RecordError },
}

impl Cache {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), added: Arc::default() }
    }

    /// What is known of a server, as it showed itself to those who declared the same; else to those who
    /// declared more; else whatever is known last, also where nobody has declared anything yet.
    pub fn read(&self, key: &CatalogKey, declared: Option<&[String]>) -> Option<Record> {
        Self::best(self.records(key), declared)
    }

    /// All that is known of a server, the newest first; one for each set of declared capabilities.
    pub fn records(&self, key: &CatalogKey) -> Vec<Record> {
        self.known(key).records
    }

    /// The one of a server's records that [`Cache::read`] returns.
    pub fn best(mut records: Vec<Record>, declared: Option<&[String]>) -> Option<Record> {
        let best = declared.and_then(|declared| {
            let exact = records.iter().position(|record| record.is_for(declared));
            exact.or_else(|| records.iter().position(|record| record.covers(declared)))
        });
        let best = best.unwrap_or(0);
        (best < records.len()).then(|| records.swap_remove(best))
    }

    /// What was seen of a server last, and what that comes to.
    pub fn last(&self, config: &ServerConfig) -> Option<(Record, Inventory)> {
        let Kept { records, pins, .. } = self.known(&CatalogKey::of(config)?);
        let last = records.into_iter().next()?;
        let digests = Digests::of(&last.catalog);
        let changed = pins.suspicious(config.pin, &digests);
        let inventory = Inventory::of(config, &last.catalog, &changed);
        Some((last, inventory))
    }

    /// The tools of a server as they were when they were first seen, and approved since.
    pub fn pins(&self, key: &CatalogKey) -> Pins {
        self.known(key).pins
    }

    /// All that is known of a server. A file that cannot be read is reported, and tells that what its tools
    /// were is lost.
    pub fn known(&self, key: &CatalogKey) -> Kept {
        self.load(key).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read what is known of a server");
            Kept { pins: Pins::lost(), ..Kept::default() }
        })
    }

    fn load(&self, key: &CatalogKey) -> Result<Kept, CacheError> {
        let path = self.path(key);
        // One that has been written by a build with a larger limit is read all the same.
        let file = match read_bounded(&path, 4 * MAX_CATALOG_BYTES as u64) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // One that was set aside was not written again.
                let was_damaged = path.with_extension(DAMAGED).exists();
                let pins = if was_damaged { Pins::lost() } else { Pins::default() };
                return Ok(Kept { pins, ..Kept::default() });
            }
            // A directory, a pipe, or a file that is far too large.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge
                ) =>
            {
                return Err(CacheError::Unreadable { path, reason: RecordError::Damaged });
            }
            Err(cause) => return Err(CacheError::Io { path, cause }),
        };
        Kept::decode(file).map_err(|reason| CacheError::Unreadable { path, reason })
    }

    /// Keeps a catalog as it has just been seen. What its tools were when they were first seen stays known, as does
    /// what this process has `seen` before; returned are those that are not what they were.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn learn(
        &self,
        key: &CatalogKey,
        server: &str,
        catalog: &ServerCatalog,
        seen: &Pins,
    ) -> Result<BTreeSet<String>, CacheError> {
        let digests = Digests::of(catalog);
        self.change(key, |Kept { records, pins, former }| {
            let is_replaced = |record: &Record| record.is_for(&catalog.discovery.declared);
            let replaced: Vec<Record> =
                records.extract_if(.., |record| is_replaced(record)).collect();
            let (server, catalog) = (server.to_owned(), catalog.clone());
            pins.add_missing(seen);
            pins.see(&digests);
            let changed = pins.changed(&digests);
            for old in &replaced {
                keep_former(former, &old.catalog, &catalog, pins);
            }
            records.insert(0, Record { server, learned: SystemTime::now(), catalog });
            records.truncate(MAX_RECORDS);
            changed
        })
    }

    /// The tools that are not what they were: this one, or all. [`Cache::approve`] takes them as they are.
    pub fn changes(&self, key: &CatalogKey, tool: Option<&str>) -> Vec<Change> {
        changes(&self.known(key), tool)
    }

    /// Takes tools as they are now: this one, or all. Returns those that had changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn approve(&self, key: &CatalogKey, tool: Option<&str>) -> Result<Vec<Change>, CacheError> {
        self.change(key, |kept| {
            let changes = changes(kept, tool);
            for change in &changes {
                kept.pins.approve(&change.now);
                kept.former.retain(|former| former.name != change.now.name);
            }
            // Where nothing is known of its tools now, nothing has been looked at.
            if tool.is_none() && !kept.records.is_empty() {
                kept.pins.approve_all();
            }
            changes
        })
    }

    /// Changes what is kept of a server, while no other process does.
    fn change<T>(
        &self,
        key: &CatalogKey,
        change: impl FnOnce(&mut Kept) -> T,
    ) -> Result<T, CacheError> {
        let failed = |cause| CacheError::Io { path: self.directory.clone(), cause };
        // Instructions and definitions may be confidential.
        make_private_directory(&self.directory).map_err(failed)?;
        let place = self.directory.join("lock");
        if place.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        let lock = File::create(place).map_err(failed)?;
        config::lock(&lock).map_err(failed)?;
        let mut kept = match self.load(key) {
            Err(CacheError::Unreadable { path, reason: RecordError::Damaged }) => {
                set_aside(&path);
                Kept { pins: Pins::lost(), ..Kept::default() }
            }
            loaded => loaded?,
        };
        let outcome = change(&mut kept);
        let mut encoded = kept.encode();
        let size = encoded.len();
        if size > MAX_CATALOG_BYTES {
            kept.former.clear();
            encoded = kept.encode();
        }
        while encoded.len() > MAX_CATALOG_BYTES && kept.records.pop().is_some() {
            encoded = kept.encode();
        }
        if encoded.len() > MAX_CATALOG_BYTES {
            kept.pins = Pins::lost();
            encoded = kept.encode();
        }
        if kept.records.is_empty() && size > MAX_CATALOG_BYTES {
            tracing::warn!(
                size,
                "a catalog is too large to be stored; only the digests for `pin` are"
            );
        }
        let is_new = !self.path(key).exists();
        self.write(key, &encoded).map_err(failed)?;
        if is_new {
            self.clean();
        }
        Ok(outcome)
    }

    /// Whether the server did not say in time what it has when it was last connected for that.
    pub fn is_hung(&self, key: &CatalogKey) -> bool {
        self.hung(key).is_file()
    }

    /// Records for later runs whether the server did not say in time what it has.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn note_hung(&self, key: &CatalogKey, is_hung: bool) -> io::Result<()> {
        if is_hung {
            make_private_directory(&self.directory)?;
            return File::create(self.hung(key)).map(|_| ());
        }
        match fs::remove_file(self.hung(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn hung(&self, key: &CatalogKey) -> PathBuf {
        self.directory.join(&key.0).with_extension(HUNG)
    }

    fn write(&self, key: &CatalogKey, encoded: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(WRITING).tempfile_in(&self.directory)?;
        file.write_all(encoded)?;
        file.as_file().sync_data()?;
        file.persist(self.path(key))?;
        Ok(())
    }

    /// Keeps the directory within bounds: it is looked through for the first of some new files.
    fn clean(&self) {
        if self.added.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEANUP_INTERVAL) {
            clean(&self.directory);
        }
    }

    fn path(&self, key: &CatalogKey) -> PathBuf {
        self.directory.join(&key.0).with_extension(EXTENSION)
    }
}

fn set_aside(path: &Path) {
    let aside = path.with_extension(DAMAGED);
    match fs::rename(path, &aside) {
        Ok(()) => {
            tracing::warn!(path = %aside.display(), "a catalog was damaged; it has been set aside. With `pin: block` its tools are blocked until `dormouse approve`");
        }
        // Another process has done so.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(path = %path.display(), %error, "a catalog is damaged"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{Item as _, Tool},
        wire::Raw,
    };

    fn names(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| change.now.name.as_str()).collect()
    }

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
    fn the_directory_counts_where_a_word_of_the_command_is_a_file_in_it() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("server.py"), "").unwrap();
        let counts = |argument: &str| {
            let mut config = config("python3", &[]);
            let Ok(Transport::Stdio(launch)) = &mut config.transport else { panic!() };
            launch.args.push(argument.to_owned());
            directory(launch, || Some(here.path().to_owned())).is_some()
        };
        for (argument, expected) in [
            ("server.py", true),
            ("./other.py", true),
            ("..", true),
            ("other.py", false),
            ("/server.py", false),
            ("-m", false),
            ("", false),
        ] {
            assert_eq!(counts(argument), expected, "{argument:?}");
        }
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_learned_anew() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("catalogs"));
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        assert!(cache.read(&key, None).is_none());
        let catalog = ServerCatalog::unknown();
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert_eq!(cache.read(&key, None).unwrap().catalog, catalog);
        fs::write(cache.path(&key), "{").unwrap();
        assert!(cache.read(&key, None).is_none());
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert!(cache.path(&key).with_extension(DAMAGED).exists());
        assert_eq!(cache.read(&key, None).unwrap().catalog, catalog);
    }

    #[test]
    fn tools_of_a_damaged_file_are_unverified_until_all_are_approved() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        let catalog = tool("good", "roots");
        let unverified = || Vec::from_iter(cache.pins(&key).unverified(&Digests::of(&catalog)));
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert!(unverified().is_empty());
        fs::write(cache.path(&key), "{").unwrap();
        assert_eq!(unverified(), ["a"]);
        cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        assert_eq!(unverified(), ["a"], "what was lost is not learned again");
        assert_eq!(names(&cache.approve(&key, None).unwrap()), ["a"]);
        assert!(unverified().is_empty());
    }

    #[test]
    fn pins_of_a_catalog_that_is_too_large_are_kept_without_it() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        let large = tool(&"x".repeat(MAX_CATALOG_BYTES), "roots");
        cache.learn(&key, "s", &large, &Pins::default()).unwrap();
        assert!(cache.read(&key, None).is_none());
        let changed = cache.pins(&key).unverified(&Digests::of(&tool("other", "roots")));
        assert_eq!(Vec::from_iter(changed), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_sparse_file_of_many_gigabytes_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        File::create(cache.path(&key)).unwrap().set_len(20 << 30).unwrap();
        assert!(cache.read(&key, None).is_none());
        assert!(cache.pins(&key).is_incomplete());
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
            cache.learn(&key, "s", &catalog, &Pins::default()).unwrap();
        }
        for (wanted, expected) in [
            (vec![], sets[2].clone()),
            (vec!["roots"], sets[1].clone()),
            (vec!["sampling"], sets[0].clone()),
            (vec!["elicitation"], sets[2].clone()),
        ] {
            let names: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            let read = cache.read(&key, Some(&names)).unwrap().catalog.discovery.declared;
            assert_eq!(read, expected, "{wanted:?}");
        }
    }

    fn tool(description: &str, declared: &str) -> ServerCatalog {
        let mut catalog = ServerCatalog::unknown();
        let definition = json!({"name": "a", "description": description, "inputSchema": {}});
        catalog.tools = vec![Tool::read(&Raw::encode(&definition)).unwrap()];
        catalog.discovery.declared = vec![declared.to_owned()];
        catalog
    }

    #[test]
    fn a_tool_that_changes_is_noticed_whatever_the_host_declares_until_it_is_approved() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        let learn = |catalog: &ServerCatalog| {
            Vec::from_iter(cache.learn(&key, "s", catalog, &Pins::default()).unwrap())
        };
        assert!(learn(&tool("good", "roots")).is_empty());
        for number in 0..MAX_RECORDS + 2 {
            assert_eq!(learn(&tool("evil", &number.to_string())), ["a"]);
        }
        assert_eq!(names(&cache.approve(&key, None).unwrap()), ["a"]);
        assert!(learn(&tool("evil", "another")).is_empty());
        assert_eq!(learn(&tool("worse", "another")), ["a"]);
    }

    #[test]
    fn what_a_newer_program_has_written_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("a", &[])).unwrap();
        let newer = "{\"dormouse-catalog\":99,\"sha256\":\"\"}\n{}\n";
        fs::write(cache.path(&key), newer).unwrap();
        assert!(cache.read(&key, None).is_none());
        assert!(cache.learn(&key, "s", &ServerCatalog::unknown(), &Pins::default()).is_err());
        assert_eq!(fs::read_to_string(cache.path(&key)).unwrap(), newer);
    }

    #[test]
    fn what_was_left_by_a_killed_process_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let abandoned = directory.path().join(".writing-1");
        let file = File::create(&abandoned).unwrap();
        file.set_modified(SystemTime::now() - std::time::Duration::from_hours(2)).unwrap();
        let cache = Cache::new(directory.path());
        let key = CatalogKey::of(&config("new", &[])).unwrap();
        cache.learn(&key, "s", &ServerCatalog::unknown(), &Pins::default()).unwrap();
        assert!(!abandoned.exists() && cache.read(&key, None).is_some());
    }
}
