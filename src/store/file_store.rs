//! The store in a directory: one file for each value.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::{
    PruneLimits, STORE_LEASE, Store, StoreLease, StoredVersion, lease_blocking,
    pruning::{UNFINISHED_EXTENSION, prune_directory},
};
use crate::base::{StagedFile, WriteOptions, make_private_directory, read_bounded, try_lock_file};

/// The extension of a file that reserves space for the next version of a value.
const RESERVED_EXTENSION: &str = "room";

/// A directory with the values as files, which only the current user can access.
#[derive(Clone, Debug)]
pub(crate) struct FileStore {
    directory: PathBuf,
    holds_secrets: bool,
}

/// A file that this process has locked.
struct LockedFile(File);

/// A file that takes up space on the disk until this is dropped.
struct ReservedSpace(PathBuf);

impl FileStore {
    /// Makes a store in a directory, which is created when something is written.
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), holds_secrets: false }
    }

    /// Makes a store whose directory no other user may access, also if it exists.
    pub(crate) fn for_secrets(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), holds_secrets: true }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Creates the directory if it is missing, for this user only.
    fn prepare(&self) -> io::Result<()> {
        make_private_directory(&self.directory)?;
        #[cfg(unix)]
        if self.holds_secrets {
            use std::os::unix::fs::PermissionsExt as _;
            // An existing directory may have other permissions.
            if self.directory.metadata()?.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700))?;
            }
        }
        Ok(())
    }
}

impl Store for FileStore {
    fn get(&self, name: &str, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
        match read_bounded(&self.path(name), max_bytes) {
            Ok(value) => Ok(Some(value)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.path(name).is_file())
    }

    fn version(&self, name: &str) -> io::Result<StoredVersion> {
        // A file that cannot be looked at is found to be unreadable when it is read.
        let metadata = self.path(name).metadata().ok();
        Ok(metadata.map(|metadata| file_version(&metadata)).unwrap_or_default())
    }

    fn put(&self, name: &str, value: &[u8]) -> io::Result<()> {
        self.prepare()?;
        let path = self.path(name);
        let unfinished = with_extension(name, UNFINISHED_EXTENSION);
        let options = WriteOptions {
            unfinished_name: Some(&unfinished),
            newer_than: path.metadata().and_then(|metadata| metadata.modified()).ok(),
            ..WriteOptions::default()
        };
        StagedFile::write(&path, value, options)?.replace()
    }

    fn update(&self, name: &str, seen: StoredVersion, value: &[u8]) -> io::Result<bool> {
        let _lease = lease_blocking(self, STORE_LEASE)?;
        if self.version(name)? != seen {
            return Ok(false);
        }
        self.put(name, value)?;
        Ok(true)
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        for extension in [UNFINISHED_EXTENSION, RESERVED_EXTENSION] {
            // A process that was killed may have left one.
            let _ = fs::remove_file(self.path(&with_extension(name, extension)));
        }
        was_there(fs::remove_file(self.path(name)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<bool> {
        was_there(fs::rename(self.path(from), self.path(to)))
    }

    fn try_lease(&self, name: &str) -> io::Result<Option<StoreLease>> {
        self.prepare()?;
        let place = self.path(name);
        // Opening a pipe waits for its reader.
        if place.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = private_options().create(true).truncate(false).open(place)?;
        Ok(try_lock_file(&file)?.then(|| StoreLease::of(LockedFile(file))))
    }

    fn reserve(&self, name: &str, bytes: usize) -> io::Result<Box<dyn Send + Sync>> {
        let room = self.path(&with_extension(name, RESERVED_EXTENSION));
        let mut file = create_new_file(&room)?;
        let reserved = ReservedSpace(room);
        file.write_all(&vec![b' '; bytes])?;
        Ok(Box::new(reserved))
    }

    fn prune(&self, limits: &PruneLimits) {
        prune_directory(&self.directory, limits);
    }

    fn check_writable(&self) -> io::Result<()> {
        self.prepare()?;
        tempfile::NamedTempFile::new_in(&self.directory).map(drop)
    }

    fn describe(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file unlocks it too, unless a child process has inherited it.
        let _ = self.0.unlock();
    }
}

impl Drop for ReservedSpace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn with_extension(name: &str, extension: &str) -> String {
    format!("{name}.{extension}")
}

fn was_there(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a file, in place of an old one of this name.
fn create_new_file(path: &Path) -> io::Result<File> {
    // A process that was killed may have left one.
    let _ = fs::remove_file(path);
    private_options().create_new(true).open(path)
}

/// Returns the options to open a file for writing; on Unix a new file is accessible to the current
/// user only.
fn private_options() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the version of a file: `put` makes each file newer than the one that it replaces.
fn file_version(metadata: &fs::Metadata) -> StoredVersion {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default().as_nanos();
    StoredVersion::of(format!("{modified} {} {}", metadata.len(), inode(metadata)).as_bytes())
}

/// Returns the file's inode number, which differs after a replacement even if the modification time
/// does not. Other systems than Unix get 0.
fn inode(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, FileStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::for_secrets(directory.path().join("values"));
        (directory, store)
    }

    #[test]
    fn value_is_read_back_and_has_a_version_of_its_own() {
        let (_directory, store) = store();
        assert_eq!(store.get("a.v", 10).unwrap(), None);
        let none = store.version("a.v").unwrap();
        store.put("a.v", b"one").unwrap();
        let first = store.version("a.v").unwrap();
        // This value has the same size, and may have the same modification time.
        store.put("a.v", b"two").unwrap();
        assert_eq!(store.get("a.v", 10).unwrap().as_deref(), Some(&b"two"[..]));
        assert!(none != first && first != store.version("a.v").unwrap());
        let error = store.get("a.v", 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(store.rename("a.v", "b.v").unwrap() && !store.rename("a.v", "b.v").unwrap());
        assert!(store.remove("b.v").unwrap() && !store.remove("b.v").unwrap());
    }

    #[test]
    fn update_replaces_only_the_version_that_was_seen() {
        let (_directory, store) = store();
        let none = store.version("a.v").unwrap();
        assert!(store.update("a.v", none, b"one").unwrap());
        assert!(!store.update("a.v", none, b"two").unwrap(), "the value exists now");
        let one = store.version("a.v").unwrap();
        assert!(store.update("a.v", one, b"two").unwrap());
        // These values have the same size, and may use the same inode in turns.
        assert!(store.update("a.v", store.version("a.v").unwrap(), b"one").unwrap());
        assert!(!store.update("a.v", one, b"six").unwrap(), "the value is equal, but not the same");
        assert_eq!(store.get("a.v", 10).unwrap().as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn lease_excludes_others_until_it_is_dropped() {
        let (_directory, store) = store();
        let lease = store.try_lease(STORE_LEASE).unwrap().unwrap();
        assert!(store.try_lease(STORE_LEASE).unwrap().is_none());
        assert!(store.try_lease("other.lock").unwrap().is_some());
        drop(lease);
        assert!(store.try_lease(STORE_LEASE).unwrap().is_some());
    }

    #[test]
    fn files_of_a_killed_process_are_removed_with_the_value() {
        let (_directory, store) = store();
        store.put("a.v", b"one").unwrap();
        let reserved = store.reserve("a.v", 100).unwrap();
        fs::write(store.path("a.v.new"), "unfinished").unwrap();
        store.remove("a.v").unwrap();
        drop(reserved);
        assert_eq!(fs::read_dir(store.path("")).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_access_the_values() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_directory, store) = store();
        fs::create_dir(store.path("")).unwrap();
        store.put("a.v", b"one").unwrap();
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(store.path("")), mode(store.path("a.v"))), (0o700, 0o600));
    }
}
