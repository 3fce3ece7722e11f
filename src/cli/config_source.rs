//! The config that a running dormouse serves: its file, and everything else that decides what the
//! file means.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{settings, shared_flags::Options};
use crate::{
    base::read_text,
    config::{ConfigError, ConfigFile, LaunchContext, ParsedConfig},
    telemetry::ExportSettings,
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
    /// Finds the config of this process.
    ///
    /// # Errors
    /// If there is none, or it is not trusted.
    pub(super) fn of_process(options: &Options) -> anyhow::Result<Self> {
        let file = settings::find_trusted(options)?;
        let context = LaunchContext::of_process();
        Ok(Self { file, options: options.clone(), context })
    }

    /// Finds the config of another process of this user, which runs in `directory`.
    ///
    /// # Errors
    /// As [`Self::of_process`].
    #[cfg(unix)]
    pub(super) fn of_client(
        options: Options,
        directory: &Path,
        context: Arc<LaunchContext>,
    ) -> anyhow::Result<Self> {
        let named = settings::named_in(&options, context.get_os(settings::CONFIG_VARIABLE));
        let named = named.map(|path| directory.join(path));
        let file = settings::find_trusted_in(named.as_deref(), directory)?;
        Ok(Self { file, options, context })
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub(super) fn read_again(&self) -> Result<Self, ConfigError> {
        let Self { file, options, context } = self;
        let (file, options) = (file.read_again()?, options.clone());
        Ok(Self { file, options, context: context.clone() })
    }

    /// Returns where telemetry is exported to; `None` if it is not. What is wrong is logged.
    pub(super) fn export_settings(&self) -> Option<ExportSettings> {
        let variable = |name: &str| self.context.get(name).map(str::to_owned);
        let (settings, problems) = ExportSettings::of(variable);
        for problem in problems {
            tracing::warn!("{problem}");
        }
        settings
    }

    /// Returns what is in the file, with the overrides of the flags.
    ///
    /// # Errors
    /// Every problem of the config, or the problem of the `--env-file`.
    pub(super) fn parse(&self) -> Result<ParsedConfig, ConfigError> {
        settings::read(&self.file, &self.options, &self.context)
    }

    /// Checks that the file is trusted with its content. A user without a directory for data cannot
    /// have trusted a file in the meantime.
    ///
    /// # Errors
    /// If it is not.
    pub(super) fn check_trust(&self) -> Result<(), ConfigError> {
        settings::trust_store().map_or(Ok(()), |store| self.file.check_trust(&store))
    }

    /// Returns the files that make up the config.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let env_file = self.file.env_file().path().to_owned();
        let paths = [Some(self.file.path.clone()), Some(env_file), self.options.env_file.clone()];
        paths.into_iter().flatten().collect()
    }

    /// Returns the content of all files that make up the config.
    pub(super) fn content(&self) -> Vec<u8> {
        let more = self.options.env_file.as_ref().and_then(|path| read_text(path).ok());
        [self.file.content(), more.unwrap_or_default().into_bytes()].join(&0)
    }
}
