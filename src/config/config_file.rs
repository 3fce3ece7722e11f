//! A config file, found and read.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use serde_json::{Map, Value};

use super::{
    ConfigError, Dialect, Environment, LaunchContext, ParsedConfig, TrustStore,
    app_file_names::AppFileNames, document::Document, env_file::EnvFile, format::Format,
    parse::parse, trust::place_fingerprint,
};
use crate::base::{read_at_most, read_bounded};

/// Maximum size of a config, in bytes.
const MAX_CONFIG_BYTES: u64 = 16 * 1024 * 1024;

/// A config file that was found or named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundConfig {
    pub path: PathBuf,
    /// True if the file was found in the working directory, so that it must be trusted.
    pub needs_trust: bool,
    pub(super) app_file_names: AppFileNames,
}

impl FoundConfig {
    /// Reads the file, and `.env` next to it. The `.env` of a config that was never trusted is not
    /// read.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(crate) fn read(self, store: Option<&TrustStore>) -> Result<ConfigFile, ConfigError> {
        let is_known = store.is_some_and(|store| store.knows(&self.path));
        let may_read_env = !self.needs_trust || is_known;
        ConfigFile::read(self, may_read_env)
    }

    /// Reads the file and `.env` next to it, for a user who decides whether to trust them.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(crate) fn read_to_trust(self) -> Result<ConfigFile, ConfigError> {
        ConfigFile::read(self, true)
    }
}

/// A config file, read once: the text that is checked for trust is the text that is run.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub(super) needs_trust: bool,
    pub(super) text: Vec<u8>,
    pub(super) env_file: EnvFile,
    /// True if the file exists.
    pub(super) is_written: bool,
    pub(super) app_file_names: AppFileNames,
}

impl ConfigFile {
    /// Reads a file, and `.env` next to it if `may_read_env` is set.
    fn read(found: FoundConfig, may_read_env: bool) -> Result<Self, ConfigError> {
        let FoundConfig { path, needs_trust, app_file_names } = found;
        // A config that the user names may be a pipe.
        let text = if needs_trust {
            read_bounded(&path, MAX_CONFIG_BYTES)
        } else {
            read_at_most(&path, MAX_CONFIG_BYTES)
        };
        let unreadable = |path| |source| ConfigError::Unreadable { path, source };
        let text = text.map_err(unreadable(path.clone()))?;
        let env_file = EnvFile::read(&path, may_read_env);
        let env_file = env_file.map_err(unreadable(EnvFile::path_next_to(&path)))?;
        Ok(Self { path, needs_trust, text, env_file, is_written: true, app_file_names })
    }

    /// Returns a file that does not exist yet. A `.env` may exist in its directory.
    pub(crate) fn unwritten(path: PathBuf, text: &str, app_file_names: AppFileNames) -> Self {
        let text = text.as_bytes().to_vec();
        let env_file = EnvFile::next_to_new(&path);
        Self { path, needs_trust: false, text, env_file, is_written: false, app_file_names }
    }

    /// Returns a file that is not on the disk, without a `.env`.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn in_memory(path: impl Into<PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        let path = path.into();
        Self {
            env_file: EnvFile::absent(&path),
            path,
            needs_trust: false,
            text: text.into(),
            is_written: true,
            app_file_names: AppFileNames::default(),
        }
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub(crate) fn read_again(&self) -> Result<Self, ConfigError> {
        let Self { needs_trust, app_file_names, .. } = *self;
        let found = FoundConfig { path: self.path.clone(), needs_trust, app_file_names };
        Self::read(found, self.env_file.may_read())
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
        parse(text, &self.path, environment)
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

    /// Returns the names of the profiles as written.
    ///
    /// # Errors
    /// If the text cannot be parsed.
    pub(crate) fn profile_names(&self) -> Result<Vec<String>, ConfigError> {
        let root = Document::parse_or_empty(&self.text(), &self.path)?.value();
        let profiles = root["profiles"].as_object();
        Ok(profiles.into_iter().flat_map(|profiles| profiles.keys().cloned()).collect())
    }

    /// Returns the `.env` next to the file.
    pub(crate) fn env_file(&self) -> &EnvFile {
        &self.env_file
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
        [&self.path, &target].into_iter().any(|path| self.app_file_names.include(path))
            && Document::parse_or_empty(&self.text(), &self.path)
                .is_ok_and(|document| document.dialect().is_none())
    }

    pub(crate) fn is_yaml(&self) -> bool {
        Format::of(&self.path) == Format::Yaml
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// Returns the variables of this process and of `.env`.
    pub(crate) fn environment(&self) -> Environment {
        self.environment_in(LaunchContext::of_process())
    }

    /// Returns the variables of a process and of `.env`.
    pub(crate) fn environment_in(&self, context: Arc<LaunchContext>) -> Environment {
        Environment::of(context).with_env_file(&self.env_file)
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
        [self.text.as_slice(), b"\0", self.env_file.lines()].concat()
    }
}
