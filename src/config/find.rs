//! Which config file to use (DESIGN.md section 6).

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::{ConfigError, TrustStore};

/// A config file, and whether somebody named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    /// It merely lay in the working directory, so that it needs to be trusted.
    pub needs_trust: bool,
}

/// Names looked for in the working directory.
const LOCAL_NAMES: [&str; 3] = ["dormouse.json", ".mcp.json", "mcp.json"];

/// Finds the config: `named` (`--config` or `DORMOUSE_CONFIG`), then the working directory, then the user's own.
///
/// # Errors
/// When there is none, with the places that were looked at.
pub fn find(named: Option<&Path>, working_directory: &Path) -> Result<Found, ConfigError> {
    if let Some(path) = named {
        return Ok(Found { path: path.to_owned(), needs_trust: false });
    }
    let local = LOCAL_NAMES.iter().map(|name| working_directory.join(name));
    let mut looked = Vec::new();
    for path in local {
        if path.is_file() {
            return Ok(Found { path, needs_trust: true });
        }
        looked.push(path);
    }
    if let Some(path) = user_config() {
        if path.is_file() {
            return Ok(Found { path, needs_trust: false });
        }
        looked.push(path);
    }
    Err(ConfigError::NotFound { looked })
}

fn user_config() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("dormouse").join("dormouse.json"))
}

impl Found {
    /// Checks that a config found in the working directory was trusted with its present content.
    ///
    /// # Errors
    /// When it was not, or cannot be read.
    pub fn check_trust(&self, store: &TrustStore) -> Result<(), ConfigError> {
        if !self.needs_trust {
            return Ok(());
        }
        let content = std::fs::read(&self.path)
            .map_err(|source| ConfigError::Unreadable { path: self.path.clone(), source })?;
        if store.trusts(&self.path, &content) {
            Ok(())
        } else {
            Err(ConfigError::Untrusted { path: self.path.clone() })
        }
    }
}

impl TrustStore {
    /// The store in the user's data directory.
    pub fn of_user() -> Option<Self> {
        let strategy = etcetera::choose_base_strategy().ok()?;
        Some(Self::new(strategy.data_dir().join("dormouse").join("trusted")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_comes_before_the_users_own_and_needs_trust() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("mcp.json"), "{}").unwrap();
        let found = find(None, directory.path()).unwrap();
        assert_eq!(found, Found { path: directory.path().join("mcp.json"), needs_trust: true });
        std::fs::write(directory.path().join("dormouse.json"), "{}").unwrap();
        assert!(find(None, directory.path()).unwrap().path.ends_with("dormouse.json"));
        let store = TrustStore::new(directory.path().join("store"));
        assert!(matches!(found.check_trust(&store), Err(ConfigError::Untrusted { .. })));
        store.trust(&found.path, b"{}").unwrap();
        found.check_trust(&store).unwrap();
    }

    #[test]
    fn a_named_config_needs_no_trust() {
        let found = find(Some(Path::new("x.json")), Path::new("/")).unwrap();
        assert_eq!(found, Found { path: "x.json".into(), needs_trust: false });
    }
}
