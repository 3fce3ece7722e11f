//! Versions of values.

use sha2::{Digest as _, Sha256};

/// The version of a value, equal for two reads only if the value is the same. The default is the
/// version of a value that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredVersion(Option<[u8; 16]>);

impl StoredVersion {
    /// Makes a version from the mark by which a store tells versions apart: a revision number, an
    /// entity tag, the state of a file.
    pub(super) fn of(mark: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(mark).into();
        let (half, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self(Some(*half))
    }

    /// Makes the version of a value whose store gives it a new revision with each change.
    pub(super) fn of_revision(revision: [u8; 16]) -> Self {
        Self(Some(revision))
    }

    /// Returns the revision or the digest of the mark; `None` for a value that does not exist.
    pub(super) fn revision(self) -> Option<[u8; 16]> {
        self.0
    }
}
