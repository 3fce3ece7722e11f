//! The interface of all stores.

use std::{fmt, io, time::Duration};

use super::{PruneLimits, StoreLease, StoredVersion};

/// The name of the lease that covers all values of a store. [`Store::update`] takes it.
pub(crate) const STORE_LEASE: &str = "lock";

/// A collection of values by name. Every method may block.
///
/// A value is replaced as a whole, so that a reader sees either the old or the new one. A name is a
/// valid file name. If a store is pruned, the names of its values have an extension, by which
/// [`PruneLimits`] chooses them.
///
/// Users of a value change it in one of two ways: with [`put`](Self::put) under a lease that covers
/// the name, or with [`update`](Self::update) without any lease of the store.
/// [`STORE_LEASE`] covers all names.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    /// Returns a value; `None` if there is none.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] if the value has more bytes, [`io::ErrorKind::InvalidInput`]
    /// if something else has its name; others if it cannot be read.
    fn get(&self, name: &str, max_bytes: u64) -> io::Result<Option<Vec<u8>>>;

    /// Returns whether there is such a value.
    ///
    /// # Errors
    /// If the store cannot be used.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// Returns the version of a value, which changes with it. The value is not read.
    ///
    /// # Errors
    /// If the store cannot be used.
    fn version(&self, name: &str) -> io::Result<StoredVersion>;

    /// Returns the version of a value as it was at most `max_age` ago, without waiting for a
    /// network; `None` if it is not known.
    fn known_version(&self, name: &str, _max_age: Duration) -> Option<StoredVersion> {
        self.version(name).ok()
    }

    /// Returns whether values may vanish without having been removed, because the store can be
    /// emptied or lose its memory. A removed value has a version then.
    fn loses_values(&self) -> bool {
        false
    }

    /// Replaces a value. The caller holds a lease that covers its name.
    ///
    /// # Errors
    /// If the value cannot be written; the old one stays.
    fn put(&self, name: &str, value: &[u8]) -> io::Result<()>;

    /// Replaces a value that still has the version `seen`. Returns `false` if another process or
    /// task has changed it since; the caller then reads it again. The caller holds no lease,
    /// because the store takes [`STORE_LEASE`].
    ///
    /// # Errors
    /// If the value cannot be written; the old one stays.
    fn update(&self, name: &str, seen: StoredVersion, value: &[u8]) -> io::Result<bool>;

    /// Removes a value. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, name: &str) -> io::Result<bool>;

    /// Gives a value another name. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<bool>;

    /// Takes the lease of this name; `None` while another process or task has it.
    ///
    /// # Errors
    /// If leases are not available.
    fn try_lease(&self, name: &str) -> io::Result<Option<StoreLease>>;

    /// Ensures, until the result is dropped, that a value of this size can replace the present one.
    /// A store that cannot ensure it returns at once.
    ///
    /// # Errors
    /// If there is no space.
    fn reserve(&self, _name: &str, _bytes: usize) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }

    /// Removes the oldest values beyond the limits.
    fn prune(&self, limits: &PruneLimits);

    /// Checks that values can be written.
    ///
    /// # Errors
    /// If they cannot.
    fn check_writable(&self) -> io::Result<()>;

    /// Returns where a value is, for messages: a path or a URL.
    fn describe(&self, name: &str) -> String;
}
