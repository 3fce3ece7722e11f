//! The choice of the config file (docs/design/config.md).

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::{ConfigError, TrustStore, app_file_names::AppFileNames, config_file::FoundConfig};
use crate::base::visible;

/// Names of a dormouse config.
const OWN_NAMES: [&str; 4] = ["dormouse.json", "dormouse.yaml", "dormouse.yml", "dormouse.toml"];

/// Finds the config: `named` (`--config` or `DORMOUSE_CONFIG`), then a dormouse config in the
/// working directory, then the user's own. A config in the working directory that was never trusted
/// is used only if the user has none, so that dormouse serves hosts in the directory of any
/// project.
///
/// # Errors
/// If there is none, with the places that were searched.
pub(crate) fn find(
    named: Option<&Path>,
    working_directory: &Path,
    store: Option<&TrustStore>,
    app_file_names: AppFileNames,
) -> Result<FoundConfig, ConfigError> {
    let found = |path, needs_trust| FoundConfig { path, needs_trust, app_file_names };
    if let Some(path) = named {
        return Ok(found(path.to_owned(), false));
    }
    let local = OWN_NAMES.map(|name| found(working_directory.join(name), true));
    let of_user: Vec<FoundConfig> = of_user().map(|path| found(path, false)).collect();
    let first = |places: &[FoundConfig]| places.iter().find(|place| place.path.is_file()).cloned();
    let is_known = |found: &FoundConfig| store.is_some_and(|store| store.knows(&found.path));
    choose(first(&local), first(&of_user), is_known).ok_or_else(|| ConfigError::NotFound {
        looked: local.into_iter().chain(of_user).map(|place| place.path).collect(),
        of_apps: app_file_names
            .0
            .iter()
            .map(|name| working_directory.join(name))
            .find(|path| path.is_file()),
    })
}

fn choose(
    local: Option<FoundConfig>,
    own: Option<FoundConfig>,
    is_known: impl Fn(&FoundConfig) -> bool,
) -> Option<FoundConfig> {
    match (local, own) {
        (Some(local), Some(own)) if !is_known(&local) => {
            let path = visible(&local.path.display().to_string());
            tracing::warn!(%path, "ignored an untrusted config in the working directory; to allow \
                its commands, run `dormouse trust`");
            Some(own)
        }
        (local, own) => local.or(own),
    }
}

/// Finds the config that commands change: the one that [`find`] finds, or, if there is none, the
/// user's own, which is then created. `None` if the user has no directory for it.
pub(crate) fn find_own(
    named: Option<&Path>,
    working_directory: &Path,
    store: Option<&TrustStore>,
    app_file_names: AppFileNames,
) -> Option<FoundConfig> {
    let own = || Some(FoundConfig { path: own_place()?, needs_trust: false, app_file_names });
    find(named, working_directory, store, app_file_names).ok().or_else(own)
}

/// Finds the config that a user wants to trust: `named`, or the one in the working directory.
///
/// # Errors
/// If there is none.
pub(crate) fn find_to_trust(
    named: Option<&Path>,
    working_directory: &Path,
    app_file_names: AppFileNames,
) -> Result<FoundConfig, ConfigError> {
    let local = OWN_NAMES.map(|name| working_directory.join(name));
    let local = local.into_iter().find(|path| path.is_file());
    match (named, local) {
        (Some(path), _) => find(Some(path), working_directory, None, app_file_names),
        (None, Some(path)) => Ok(FoundConfig { path, needs_trust: true, app_file_names }),
        (None, None) => Err(ConfigError::NothingToTrust { directory: working_directory.into() }),
    }
}

/// Returns the place of the user's own config, if there is a directory for it.
pub(crate) fn own_place() -> Option<PathBuf> {
    Some(user_directory()?.join(OWN_NAMES[0]))
}

/// Returns whether a path is that of the user's own config, which commands find by themselves.
pub(crate) fn is_of_user(path: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let own = of_user().find(|path| path.is_file()).or_else(own_place);
    own.is_some_and(|own| absolute(&own) == absolute(path))
}

fn of_user() -> impl Iterator<Item = PathBuf> {
    let directory = user_directory().into_iter();
    directory.flat_map(|directory| OWN_NAMES.map(|name| directory.join(name)))
}

fn user_directory() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("dormouse"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::FileStore;

    fn trust_store_in(directory: &Path) -> TrustStore {
        TrustStore::new(Arc::new(FileStore::new(directory.join("store"))))
    }

    #[test]
    fn working_directory_precedes_the_users_config_and_needs_trust() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("dormouse.json"), "{}").unwrap();
        let found = find_to_trust(None, directory.path(), AppFileNames::default()).unwrap();
        let path = directory.path().join("dormouse.json");
        assert_eq!((found.path.clone(), found.needs_trust), (path, true));
        let store = trust_store_in(directory.path());
        let read = || found.clone().read(Some(&store)).unwrap();
        assert!(matches!(read().check_trust(&store), Err(ConfigError::Untrusted { .. })));
        found.clone().read_to_trust().unwrap().trust(&store).unwrap();
        read().check_trust(&store).unwrap();
        std::fs::write(directory.path().join(".env"), "TOOL=evil").unwrap();
        assert!(read().check_trust(&store).is_err(), "variables can be part of a command");
    }

    #[test]
    fn variables_of_an_untrusted_config_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        write("dormouse.json", "{}");
        write(".env", "A=1");
        let store = trust_store_in(directory.path());
        let found = find_to_trust(None, directory.path(), AppFileNames::default()).unwrap();
        assert_eq!(found.clone().read(Some(&store)).unwrap().env_file().value("A"), None);
        found.clone().read_to_trust().unwrap().trust(&store).unwrap();
        assert_eq!(found.read(Some(&store)).unwrap().env_file().value("A").as_deref(), Some("1"));
    }

    #[cfg(unix)]
    #[test]
    fn endless_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", directory.path().join(".env")).unwrap();
        let named = directory.path().join("c.json");
        std::fs::write(&named, "{}").unwrap();
        let read = |path: &Path| {
            find(Some(path), directory.path(), None, AppFileNames::default())
                .unwrap()
                .read_to_trust()
        };
        assert_eq!(read(&named).unwrap().env_file.lines(), b"", "a device is no .env");
        assert!(matches!(read(Path::new("/dev/zero")), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn never_trusted_config_yields_to_the_users_own() {
        let found = |name: &str| {
            let (path, needs_trust) = (name.into(), name == "local");
            Some(FoundConfig { path, needs_trust, app_file_names: AppFileNames::default() })
        };
        let chosen = |own, is_known| choose(found("local"), own, |_| is_known);
        assert_eq!(chosen(found("own"), false), found("own"));
        assert_eq!(chosen(found("own"), true), found("local"));
        assert_eq!(chosen(None, false), found("local"));
        assert_eq!(choose(None, found("own"), |_| false), found("own"));
    }

    #[test]
    fn a_named_config_needs_no_trust() {
        let found =
            find(Some(Path::new("x.json")), Path::new("/"), None, AppFileNames::default()).unwrap();
        assert_eq!((found.path, found.needs_trust), ("x.json".into(), false));
    }
}
