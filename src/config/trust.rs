//! The configs in working directories that may run commands (docs/design/security.md).

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::ConfigError;
use crate::base::hex;

/// One small file for each trusted config: its name is a hash of the path, its text a hash of the
/// content.
///
/// Separate files need no lock between processes.
#[derive(Clone, Debug)]
pub(crate) struct TrustStore {
    directory: PathBuf,
}

impl TrustStore {
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Returns whether exactly this content of this file was trusted.
    pub(crate) fn trusts(&self, config: &Path, content: &[u8]) -> bool {
        let fingerprint = fingerprint(content);
        std::fs::read_to_string(self.record_of(config))
            .is_ok_and(|recorded| recorded.lines().next() == Some(&fingerprint))
    }

    /// Returns whether any content of this file was trusted.
    pub(super) fn knows(&self, config: &Path) -> bool {
        self.record_of(config).is_file()
    }

    /// Records that this content of this file is trusted from now on.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn trust(&self, config: &Path, content: &[u8]) -> Result<(), ConfigError> {
        self.record(config, content)
            .map_err(|source| ConfigError::TrustStore { path: self.directory.clone(), source })
    }

    fn record(&self, config: &Path, content: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let mut record = tempfile::NamedTempFile::new_in(&self.directory)?;
        writeln!(record, "{}\n{}", fingerprint(content), absolute(config).display())?;
        record.persist(self.record_of(config))?;
        Ok(())
    }

    fn record_of(&self, config: &Path) -> PathBuf {
        self.directory.join(place_fingerprint(config))
    }
}

/// Returns a name for the place of a config.
pub fn place_fingerprint(config: &Path) -> String {
    fingerprint(absolute(config).as_os_str().as_encoded_bytes())
}

/// Returns the place where the config was found. A link to it elsewhere is another place, because
/// the effect of its commands depends on the directory.
fn absolute(path: &Path) -> PathBuf {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let place = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    place.join(path.file_name().unwrap_or_default())
}

fn fingerprint(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_covers_one_content_of_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = TrustStore::new(directory.path().join("trusted"));
        let config = directory.path().join("dormouse.json");
        assert!(!store.trusts(&config, b"{}"));
        store.trust(&config, b"{}").unwrap();
        assert!(store.trusts(&config, b"{}"));
        assert!(!store.trusts(&config, b"{ }"));
        assert!(!store.trusts(&directory.path().join("other.json"), b"{}"));
        #[cfg(unix)]
        {
            let link = directory.path().join("link.json");
            std::fs::write(&config, "{}").unwrap();
            std::os::unix::fs::symlink(&config, &link).unwrap();
            assert!(store.trusts(&config, b"{}") && !store.trusts(&link, b"{}"));
        }
    }
}
