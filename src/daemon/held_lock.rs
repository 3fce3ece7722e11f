//! A lock between processes, on a file that its holder removes.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::base::{LockError, try_lock_file, wait_for_lock_on_thread};

/// A lock that ends when it is dropped or its process ends. Only the lock on the file counts, never
/// its existence: a process that was killed leaves the file, which the next one takes.
#[derive(Debug)]
pub(crate) struct HeldLock {
    file: File,
    path: PathBuf,
}

impl HeldLock {
    /// Takes the lock. Returns `None` if another process has it.
    ///
    /// # Errors
    /// If the file cannot be created or locked.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).write(true).truncate(false).mode(0o600).open(path)?;
            if !try_lock_file(&file)? {
                return Ok(None);
            }
            let lock = Self { file, path: path.to_owned() };
            // The process that had the lock before has removed the file on its way out.
            if lock.is_in_place() {
                return Ok(Some(lock));
            }
        }
    }

    /// Waits on this thread for the lock.
    ///
    /// # Errors
    /// If another process keeps it for this time, or the file cannot be created or locked.
    pub(crate) fn wait(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        wait_for_lock_on_thread(timeout, || Self::try_take(path))
    }

    /// Returns whether the file is still at its path, so that other processes see the lock.
    pub(crate) fn is_in_place(&self) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let held = self.file.metadata().map(identity);
        let found = fs::metadata(&self.path).map(identity);
        matches!((held, found), (Ok(held), Ok(found)) if held == found)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_held_by_one_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = HeldLock::try_take(&path).unwrap().expect("no process has it");
        assert!(HeldLock::try_take(&path).unwrap().is_none());
        drop(held);
        assert!(!path.exists());
        assert!(HeldLock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn file_of_a_killed_process_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "").unwrap();
        assert!(HeldLock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn removed_file_is_noticed_and_not_removed_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lost = HeldLock::try_take(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!lost.is_in_place());
        let held = HeldLock::try_take(&path).unwrap().expect("the file is another one");
        drop(lost);
        assert!(held.is_in_place());
    }
}
