//! The configs in working directories that may run commands (docs/design/security.md).

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};

use super::ConfigError;
use crate::{base::hex, store::Store};

/// Maximum size of a record: two hashes and a path.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// The trusted configs. A record is named by a hash of the path, and its first line is a hash of
/// the content.
#[derive(Clone, Debug)]
pub(crate) struct TrustStore {
    store: Arc<dyn Store>,
}

impl TrustStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Returns whether exactly this content of this file was trusted.
    pub(crate) fn trusts(&self, config: &Path, content: &[u8]) -> bool {
        let record = self.store.get(&place_fingerprint(config), MAX_RECORD_BYTES);
        record.ok().flatten().is_some_and(|record| is_record_of(&record, content))
    }

    /// Returns whether any content of this file was trusted.
    pub(super) fn knows(&self, config: &Path) -> bool {
        self.store.exists(&place_fingerprint(config)).unwrap_or(false)
    }

    /// Records that this content of this file is trusted from now on.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn trust(&self, config: &Path, content: &[u8]) -> Result<(), ConfigError> {
        let name = place_fingerprint(config);
        self.record(&name, config, content).map_err(|source| {
            let place = self.store.describe(&name);
            ConfigError::TrustStore { place, source }
        })
    }

    fn record(&self, name: &str, config: &Path, content: &[u8]) -> io::Result<()> {
        let record = record_of(content, &absolute(config));
        // A value that another process writes meanwhile is replaced too.
        while !self.store.update(name, self.store.version(name)?, &record)? {}
        Ok(())
    }
}

/// Returns the record of the trust in a content. The path is for people.
pub(super) fn record_of(content: &[u8], path: &Path) -> Vec<u8> {
    let mut record = format!("{}\n", fingerprint(content)).into_bytes();
    record.extend_from_slice(path.as_os_str().as_encoded_bytes());
    record.push(b'\n');
    record
}

/// Returns whether a record is about this content.
pub(super) fn is_record_of(record: &[u8], content: &[u8]) -> bool {
    // The path after it need not be Unicode.
    record.split(|byte| *byte == b'\n').next() == Some(fingerprint(content).as_bytes())
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
    use crate::store::FileStore;

    #[test]
    fn trust_covers_one_content_of_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = TrustStore::new(Arc::new(FileStore::new(directory.path().join("trusted"))));
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

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_unicode_can_be_trusted() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
        let directory = tempfile::tempdir().unwrap();
        let store = TrustStore::new(Arc::new(FileStore::new(directory.path().join("trusted"))));
        let config = directory.path().join(OsStr::from_bytes(b"\xff.json"));
        store.trust(&config, b"{}").unwrap();
        assert!(store.trusts(&config, b"{}"));
    }

    #[cfg(unix)]
    #[test]
    fn trust_of_0_1_0_is_read() {
        // The config was at this path when it was trusted. Nothing is there now.
        let config = Path::new("/tmp/dormouse-golden/project/dormouse.json");
        let name = "a35cf13f1635c1c5abeda829327fe850393c9aa5224a9928fb403579708758c8";
        let record = include_bytes!(concat!(
            "../../tests/golden/0.1.0/data/dormouse/trusted/",
            "a35cf13f1635c1c5abeda829327fe850393c9aa5224a9928fb403579708758c8"
        ));
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), record).unwrap();
        let store = TrustStore::new(Arc::new(FileStore::new(directory.path())));
        let text = include_bytes!("../../tests/golden/0.1.0/project/dormouse.json");
        // There was no `.env`.
        let content = [&text[..], b"\0"].concat();
        assert!(store.trusts(config, &content) && !store.trusts(config, b"{}\0"));
    }
}
