//! The config that a running dormouse serves: its file, and everything else that decides what the
//! file means.

use std::{path::PathBuf, sync::Arc};

use super::{settings, shared_flags::Options};
use crate::{
    auth::Auth,
    base::read_text,
    config::{ConfigError, ConfigFile, LaunchContext, ParsedConfig},
    proxy::Storage,
};

#[derive(Clone)]
pub(super) struct ConfigSource {
    pub(super) file: ConfigFile,
    /// The flags with which the host has started dormouse.
    pub(super) options: Options,
    /// The directory and the variables with which the host has started dormouse.
    context: Arc<LaunchContext>,
}

impl ConfigSource {
    /// Finds the config of this process. The file must be trusted.
    pub(super) fn of_process(options: &Options) -> anyhow::Result<Self> {
        let file = settings::find_trusted(options)?;
        let context = Arc::new(LaunchContext::of_process());
        Ok(Self { file, options: options.clone(), context })
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub(super) fn read_again(&self) -> Result<Self, ConfigError> {
        Ok(Self { file: self.file.read_again()?, ..self.clone() })
    }

    /// Returns what is in the file, with the overrides of the flags.
    ///
    /// # Errors
    /// Every problem of the file, or that of the file with variables.
    pub(super) fn parse(&self) -> Result<ParsedConfig, ConfigError> {
        settings::read(&self.file, &self.options, &self.context)
    }

    /// Checks that the file is trusted with its content.
    ///
    /// # Errors
    /// If it is not.
    pub(super) fn check_trust(&self) -> Result<(), ConfigError> {
        settings::trust_store().map_or(Ok(()), |store| self.file.check_trust(&store))
    }

    /// Returns the files that make up the config.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let env_file = self.file.path.with_file_name(".env");
        let paths = [Some(self.file.path.clone()), Some(env_file), self.options.env_file.clone()];
        paths.into_iter().flatten().collect()
    }

    /// Returns the content of all files that make up the config.
    pub(super) fn content(&self) -> Vec<u8> {
        let more = self.options.env_file.as_ref().and_then(|path| read_text(path).ok());
        [self.file.content(), more.unwrap_or_default().into_bytes()].join(&0)
    }

    pub(super) fn storage(&self) -> Storage {
        settings::storage(Some(&self.file))
    }

    pub(super) fn auth(&self) -> Auth {
        settings::auth(Some(&self.file), &self.options)
    }
}
