//! Values by name that outlive a process. All processes of a user share them.
//!
//! This layer does not know what the values are: catalogs, logins, loads and trusted configs are
//! on top of it, each in the layer that uses them.

mod file_store;
mod pruning;
mod store_lease;

use std::{fmt, io, path::PathBuf};

pub(crate) use file_store::FileStore;
pub(crate) use pruning::PruneLimits;
pub(crate) use store_lease::{StoreLease, lease, lease_blocking};

/// A collection of values by name. Every method may block.
///
/// A value is replaced as a whole, so that a reader sees either the old or the new one. A name has
/// an extension that tells the kind of its value, and is a valid file name.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    /// Returns a value; `None` if there is none.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] if the value has more bytes, [`io::ErrorKind::InvalidInput`]
    /// if something else has its name; others if it cannot be read.
    fn get(&self, name: &str, max_bytes: u64) -> io::Result<Option<Vec<u8>>>;

    fn exists(&self, name: &str) -> bool;

    /// Returns the version of a value, which changes with it. The value is not read.
    fn version(&self, name: &str) -> StoredVersion;

    /// Replaces a value. The caller holds a lease that covers its name.
    ///
    /// # Errors
    /// If the value cannot be written; the old one stays.
    fn put(&self, name: &str, value: &[u8]) -> io::Result<()>;

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
    /// If leases cannot be had here.
    fn try_lease(&self, name: &str) -> io::Result<Option<StoreLease>>;

    /// Reserves space for the next version of a value, until the result is dropped.
    ///
    /// # Errors
    /// If there is no space.
    fn reserve(&self, name: &str, bytes: usize) -> io::Result<Box<dyn Send + Sync>>;

    /// Removes the oldest values beyond the limits.
    fn prune(&self, limits: &PruneLimits);

    /// Checks that values can be written.
    ///
    /// # Errors
    /// If they cannot.
    fn check_writable(&self) -> io::Result<()>;

    /// Returns the place of a value, for messages.
    fn place(&self, name: &str) -> PathBuf;
}

/// The version of a value, equal for two reads only if the value is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredVersion(Option<(std::time::SystemTime, u64, u64)>);
