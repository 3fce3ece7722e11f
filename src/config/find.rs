//! The choice of the config file (docs/design/config.md).

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use etcetera::BaseStrategy;
use serde_json::{Map, Value};

use super::{
    ConfigError, Dialect, Environment, ParsedConfig, TrustStore,
    document::Document,
    environment::{self, assignments},
    format::Format,
    trust::place_fingerprint,
};
use crate::base::{read_at_most, read_bounded, visible};

/// A config file that was found or named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub path: PathBuf,
    /// True if the file was found in the working directory, so that it must be trusted.
    pub needs_trust: bool,
}

/// Names of a dormouse config.
const OWN_NAMES: [&str; 4] = ["dormouse.json", "dormouse.yaml", "dormouse.yml", "dormouse.toml"];
/// Names of files in which AI tools keep their servers. Such a file is used only if it is named.
const NAMES_OF_APPS: [&str; 14] = [
    ".mcp.json",
    "mcp.json",
    ".claude.json",
    "claude_desktop_config.json",
    "settings.json",
    "mcp_config.json",
    "mcp_settings.json",
    "cline_mcp_settings.json",
    "mcp-config.json",
    "kilo.json",
    "kilo.jsonc",
    "opencode.json",
    "opencode.jsonc",
    "librechat.yaml",
];

/// Maximum size of a config, in bytes.
const MAX_CONFIG: u64 = 16 * 1024 * 1024;

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
) -> Result<Found, ConfigError> {
    if let Some(path) = named {
        return Ok(Found { path: path.to_owned(), needs_trust: false });
    }
    let local =
        OWN_NAMES.map(|name| Found { path: working_directory.join(name), needs_trust: true });
    let of_user: Vec<Found> = of_user().collect();
    let first = |places: &[Found]| places.iter().find(|place| place.path.is_file()).cloned();
    let is_known = |found: &Found| store.is_some_and(|store| store.knows(&found.path));
    let found = choose(first(&local), first(&of_user), is_known);
    found.ok_or_else(|| ConfigError::NotFound {
        looked: local.into_iter().chain(of_user).map(|place| place.path).collect(),
        of_apps: NAMES_OF_APPS
            .map(|name| working_directory.join(name))
            .into_iter()
            .find(|path| path.is_file()),
    })
}

fn choose(
    local: Option<Found>,
    own: Option<Found>,
    is_known: impl Fn(&Found) -> bool,
) -> Option<Found> {
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
) -> Option<Found> {
    let own = || Some(Found { path: own_place()?, needs_trust: false });
    find(named, working_directory, store).ok().or_else(own)
}

/// Finds the config that a user wants to trust: `named`, or the one in the working directory.
///
/// # Errors
/// If there is none.
pub(crate) fn find_to_trust(
    named: Option<&Path>,
    working_directory: &Path,
) -> Result<Found, ConfigError> {
    let local = OWN_NAMES.map(|name| working_directory.join(name));
    let local = local.into_iter().find(|path| path.is_file());
    match (named, local) {
        (Some(path), _) => find(Some(path), working_directory, None),
        (None, Some(path)) => Ok(Found { path, needs_trust: true }),
        (None, None) => Err(ConfigError::NothingToTrust { directory: working_directory.into() }),
    }
}

/// Returns the place of the user's own config, if there is a directory for it.
pub(crate) fn own_place() -> Option<PathBuf> {
    Some(user_directory()?.join(OWN_NAMES[0]))
}

fn of_user() -> impl Iterator<Item = Found> {
    user_directory().into_iter().flat_map(|directory| {
        OWN_NAMES.map(|name| Found { path: directory.join(name), needs_trust: false })
    })
}

fn user_directory() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("dormouse"))
}

/// Returns whether an AI tool keeps its servers in files of this name.
pub(crate) fn is_name_of_app(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| NAMES_OF_APPS.contains(&name))
}

impl Found {
    /// Reads the file, and `.env` next to it. The `.env` of a config that was never trusted is not
    /// read.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(crate) fn read(self, store: Option<&TrustStore>) -> Result<ConfigFile, ConfigError> {
        let is_known = store.is_some_and(|store| store.knows(&self.path));
        let has_variables = !self.needs_trust || is_known;
        self.read_with(has_variables)
    }

    /// Reads the file and `.env` next to it, for a user who decides whether to trust them.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(crate) fn read_to_trust(self) -> Result<ConfigFile, ConfigError> {
        self.read_with(true)
    }

    fn read_with(self, has_variables: bool) -> Result<ConfigFile, ConfigError> {
        let Self { path, needs_trust } = self;
        let unreadable = |path: &Path, source| {
            let path = path.to_owned();
            ConfigError::Unreadable { path, source }
        };
        // A config that the user names may be a pipe.
        let text = if needs_trust {
            read_bounded(&path, MAX_CONFIG)
        } else {
            read_at_most(&path, MAX_CONFIG)
        };
        let text = text.map_err(|source| unreadable(&path, source))?;
        let beside = path.with_file_name(".env");
        let variables = if has_variables && beside.is_file() {
            read_bounded(&beside, environment::MAX_VARIABLES)
                .map_err(|source| unreadable(&beside, source))?
        } else {
            Vec::new()
        };
        Ok(ConfigFile { path, needs_trust, has_variables, text, variables, is_written: true })
    }
}

/// A config file, read once: the text that is checked for trust is the text that is run.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub(super) needs_trust: bool,
    /// True if `.env` may be read.
    pub(super) has_variables: bool,
    pub(super) text: Vec<u8>,
    /// The content of `.env` next to the file; empty if there is none.
    pub(super) variables: Vec<u8>,
    /// True if the file exists.
    pub(super) is_written: bool,
}

impl ConfigFile {
    /// Returns a file that does not exist yet. A `.env` may exist in its directory.
    pub(crate) fn unwritten(path: PathBuf, text: &str) -> Self {
        let text = text.as_bytes().to_vec();
        let variables = read_bounded(&path.with_file_name(".env"), environment::MAX_VARIABLES);
        let variables = variables.unwrap_or_default();
        Self { path, needs_trust: false, has_variables: true, text, variables, is_written: false }
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub(crate) fn read_again(&self) -> Result<Self, ConfigError> {
        let found = Found { path: self.path.clone(), needs_trust: self.needs_trust };
        found.read_with(self.has_variables)
    }

    /// Validates the file.
    ///
    /// # Errors
    /// Every problem of the text.
    pub(crate) fn parse(&self, environment: &Environment) -> Result<ParsedConfig, ConfigError> {
        let text = str::from_utf8(&self.text).map_err(|error| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            ConfigError::Unreadable { path: self.path.clone(), source }
        })?;
        super::parse(text, &self.path, environment)
    }

    /// Returns the system that the file was written for, if it is not dormouse.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        Document::parse_or_empty(&self.text(), &self.path).ok()?.dialect()
    }

    /// Returns the entries of the servers as written, with the keys of a dormouse config.
    ///
    /// # Errors
    /// If the text cannot be parsed.
    pub(crate) fn entries(&self) -> Result<Map<String, Value>, ConfigError> {
        let mut root = Document::parse_or_empty(&self.text(), &self.path)?.value();
        Ok(match root.get_mut("mcpServers").map(Value::take) {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        })
    }

    /// Returns the names of the variables in `.env`.
    pub(crate) fn variable_names(&self) -> Vec<String> {
        assignments(&self.variables).0.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the value of a variable in `.env`.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let pairs = assignments(&self.variables).0.into_iter().rev();
        pairs.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns whether the file was found in the working directory.
    pub(crate) fn needs_trust(&self) -> bool {
        self.needs_trust
    }

    /// Returns whether the file exists.
    pub(crate) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Returns whether another program keeps its servers in this file, so that dormouse never
    /// writes it.
    pub(crate) fn is_of_app(&self) -> bool {
        // A link may have another name than its target.
        let target = self.path.canonicalize().unwrap_or_default();
        [&self.path, &target].into_iter().any(|path| is_name_of_app(path))
            && Document::parse_or_empty(&self.text(), &self.path)
                .is_ok_and(|document| document.dialect().is_none())
    }

    pub(crate) fn is_yaml(&self) -> bool {
        Format::of(&self.path) == Format::Yaml
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// Returns the variables of the process and of `.env`.
    pub(crate) fn environment(&self) -> Environment {
        Environment::of_process().with_lines_beside(&self.path, &self.variables)
    }

    /// Checks that a config found in the working directory was trusted with this content.
    ///
    /// # Errors
    /// If it was not.
    pub(crate) fn check_trust(&self, store: &TrustStore) -> Result<(), ConfigError> {
        if !self.needs_trust || self.is_trusted(store) {
            return Ok(());
        }
        Err(ConfigError::Untrusted { path: self.path.clone() })
    }

    pub(super) fn is_trusted(&self, store: &TrustStore) -> bool {
        store.trusts(&self.path, &self.content())
    }

    /// Records that this content is trusted from now on.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn trust(&self, store: &TrustStore) -> Result<(), ConfigError> {
        store.trust(&self.path, &self.content())
    }

    /// Returns a name for the data that belong to the config at this place, whatever its content.
    pub(crate) fn fingerprint(&self) -> String {
        place_fingerprint(&self.path)
    }

    /// Returns the content that is trusted: with `.env`, since its values can be part of a command.
    pub(crate) fn content(&self) -> Vec<u8> {
        [self.text.as_slice(), b"\0", &self.variables].concat()
    }
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
        let found = find_to_trust(None, directory.path()).unwrap();
        let path = directory.path().join("dormouse.json");
        assert_eq!(found, Found { path, needs_trust: true });
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
        let found = find_to_trust(None, directory.path()).unwrap();
        assert_eq!(found.clone().read(Some(&store)).unwrap().variable("A"), None);
        found.clone().read_to_trust().unwrap().trust(&store).unwrap();
        assert_eq!(found.read(Some(&store)).unwrap().variable("A").as_deref(), Some("1"));
    }

    #[cfg(unix)]
    #[test]
    fn endless_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", directory.path().join(".env")).unwrap();
        let named = directory.path().join("c.json");
        std::fs::write(&named, "{}").unwrap();
        let read = |path: &Path| find(Some(path), directory.path(), None).unwrap().read_to_trust();
        assert_eq!(read(&named).unwrap().variables, b"", "a device is no .env");
        assert!(matches!(read(Path::new("/dev/zero")), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn never_trusted_config_yields_to_the_users_own() {
        let found = |name: &str| Some(Found { path: name.into(), needs_trust: name == "local" });
        let chosen = |own, is_known| choose(found("local"), own, |_| is_known);
        assert_eq!(chosen(found("own"), false), found("own"));
        assert_eq!(chosen(found("own"), true), found("local"));
        assert_eq!(chosen(None, false), found("local"));
        assert_eq!(choose(None, found("own"), |_| false), found("own"));
    }

    #[test]
    fn a_named_config_needs_no_trust() {
        let found = find(Some(Path::new("x.json")), Path::new("/"), None).unwrap();
        assert_eq!(found, Found { path: "x.json".into(), needs_trust: false });
    }
}
