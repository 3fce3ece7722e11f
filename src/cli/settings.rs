//! The config that a command uses, from the command line and the working directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;

use etcetera::BaseStrategy as _;

use super::{UsageError, lineage, shared_flags::Options};
use crate::{
    apps::{Backups, Directories, app_file_names},
    config::{
        self, Config, ConfigError, ConfigFile, Environment, Launch, LaunchContext, LaunchFacts,
        ListSettings, ParsedConfig, ServerConfig, Settings, Surface, Transport, TrustStore,
        UserCommands, Wrapping,
    },
    control,
    store::trusted_configs,
    telemetry::CallLogDirectory,
};

/// Returns the config file to use. One in the working directory may still need to be trusted.
pub(super) fn find(options: &Options) -> anyhow::Result<ConfigFile> {
    find_in(named(options).as_deref(), &working_directory()?)
}

/// Returns the absolute path of the config file to use, which need not be readable.
#[cfg(unix)]
pub(super) fn find_path(options: &Options) -> anyhow::Result<PathBuf> {
    let (directory, store) = (working_directory()?, trust_store_of_user());
    let named = named(options);
    let found = config::find(named.as_deref(), &directory, store.as_ref(), app_file_names())?;
    Ok(std::path::absolute(found.path)?)
}

/// Returns the config file to use for a process in `directory`. `named`: the config that was named.
fn find_in(named: Option<&Path>, directory: &Path) -> anyhow::Result<ConfigFile> {
    let store = trust_store_of_user();
    let found = config::find(named, directory, store.as_ref(), app_file_names())?;
    Ok(found.read(store.as_ref())?)
}

/// The text of a new config.
pub(super) const NEW_CONFIG: &str =
    "// A config of dormouse: JSON with comments. `dormouse add` adds \
    a server.
// Every key: https://github.com/dormouse-mcp/dormouse/blob/main/docs/reference/config.md
{
  \"mcpServers\": {}
}
";

/// Returns the config to write to, which may not exist yet; never a file of an app in the working
/// directory.
pub(super) fn target(options: &Options) -> anyhow::Result<ConfigFile> {
    let directory = working_directory()?;
    let store = trust_store_of_user();
    let found =
        config::find_own(named(options).as_deref(), &directory, store.as_ref(), app_file_names());
    let found = found.context("cannot determine the config directory: HOME is not set")?;
    if found.path.exists() {
        let file = found.read(store.as_ref())?;
        file.check_trust(&trust_store()?)?;
        return Ok(file);
    }
    let is_json = found.path.extension().is_none_or(|extension| extension == "json");
    Ok(ConfigFile::unwritten(found.path, if is_json { NEW_CONFIG } else { "" }, app_file_names()))
}

pub(super) fn working_directory() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("cannot determine the working directory")
}

/// Returns the directories of apps.
pub(super) fn directories() -> anyhow::Result<Directories> {
    let project = working_directory()?;
    Directories::of_process(project).context("cannot determine the home directory: HOME is not set")
}

/// Returns the config that was named.
pub(super) fn named(options: &Options) -> Option<PathBuf> {
    named_in(options, std::env::var_os(CONFIG_VARIABLE))
}

/// Returns the config that was named to a process in which [`CONFIG_VARIABLE`] has this value.
pub(super) fn named_in(options: &Options, variable: Option<impl Into<PathBuf>>) -> Option<PathBuf> {
    let variable = variable.map(Into::into).filter(|path| !path.as_os_str().is_empty());
    options.config.clone().or(variable)
}

/// The variable with the path of the config.
pub(super) const CONFIG_VARIABLE: &str = "DORMOUSE_CONFIG";

/// Returns the config file to use; fails if it is not trusted.
pub(super) fn find_trusted(options: &Options) -> anyhow::Result<ConfigFile> {
    find_trusted_in(named(options).as_deref(), &working_directory()?)
}

/// Returns the config file to use for a process in `directory`; fails if it is not trusted.
/// `named`: the config that was named.
pub(super) fn find_trusted_in(
    named: Option<&Path>,
    directory: &Path,
) -> anyhow::Result<ConfigFile> {
    let file = find_in(named, directory)?;
    file.check_trust(&trust_store()?)?;
    Ok(file)
}

/// Tells the user which config a command uses.
pub(super) fn say_which(file: &ConfigFile) {
    errln!("config: {}", file.path.display());
}

/// The servers that a command is for.
pub(super) struct Chosen {
    pub(super) config: Config,
    /// Servers that are left out because they are disabled.
    pub(super) skipped: Vec<String>,
}

/// Returns the servers of these names; without names, all that are enabled.
pub(super) fn choose(
    file: &ConfigFile,
    options: &Options,
    names: &[String],
) -> anyhow::Result<Chosen> {
    let mut config = parse(file, options)?;
    for name in names {
        server(&config, name)?;
    }
    let servers = std::mem::take(&mut config.servers).into_iter();
    let (chosen, left): (Vec<_>, Vec<_>) = if names.is_empty() {
        servers.partition(|server| server.enabled)
    } else {
        servers.partition(|server| names.contains(&server.name))
    };
    config.servers = chosen;
    let skipped = left.into_iter().filter(|_| names.is_empty()).map(|server| server.name);
    Ok(Chosen { config, skipped: skipped.collect() })
}

pub(super) fn trust_store() -> anyhow::Result<TrustStore> {
    trust_store_of_user()
        .context("cannot determine the data directory for trusted configs: HOME is not set")
}

/// Returns the configs that the user trusts; `None` without a home directory.
pub(super) fn trust_store_of_user() -> Option<TrustStore> {
    trusted_configs().map(TrustStore::new)
}

/// Returns the directory for data that must not be lost.
fn data_directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.data_dir().join("dormouse"))
}

/// Returns the place of the original files of apps.
pub(super) fn backups() -> anyhow::Result<Backups> {
    let directory = data_directory();
    let directory =
        directory.context("cannot determine the data directory for backups: HOME is not set")?;
    Ok(Backups::new(directory.join("backups")))
}

/// Returns the place of the log of calls for this config; `None` without a home directory.
pub(super) fn call_log_directory(config: &ConfigFile) -> Option<CallLogDirectory> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    let calls = strategy.data_dir().join("dormouse").join("calls");
    Some(CallLogDirectory::new(calls.join(config.fingerprint())))
}

/// Returns the commands that find the same files as this process.
pub(super) fn user_commands(config: Option<&ConfigFile>, options: &Options) -> UserCommands {
    // Commands find the user's own config by themselves.
    let named = config.filter(|file| !config::is_of_user(&file.path));
    UserCommands {
        config: named.map(|file| absolute(&file.path)),
        env_file: options.env_file.as_deref().map(absolute),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the place of the sockets of processes that serve hosts with this config.
#[cfg(unix)]
pub(super) fn control_place(config: &ConfigFile) -> Option<control::SocketDirectory> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    let directory = strategy.runtime_dir().unwrap_or_else(|| strategy.cache_dir());
    Some(control::SocketDirectory::new(
        directory.join("dormouse").join("run"),
        &config.fingerprint(),
    ))
}

/// Returns the config in the file, with the overrides of the command line. Its servers are as the
/// profile of the command line shows them.
pub(super) fn parse(file: &ConfigFile, options: &Options) -> Result<Config, ConfigError> {
    let context = LaunchContext::of_process();
    let Config { settings, servers } = read(file, options, &context)?.config;
    let shown = |server| settings.profiles.by_default(server).into_owned();
    let servers = servers.iter().map(shown).collect();
    Ok(Config { settings, servers })
}

/// Returns whether the variable `CI` has a value that means a job without a user.
pub(super) fn is_ci(value: Option<impl AsRef<str>>) -> bool {
    let is_off = |value: &str| ["", "0", "false", "off", "no"].contains(&value);
    value.is_some_and(|value| !is_off(&value.as_ref().trim().to_lowercase()))
}

/// Returns what is in the file for a process with this context, with the overrides of the command
/// line.
pub(super) fn read(
    file: &ConfigFile,
    options: &Options,
    context: &Arc<LaunchContext>,
) -> Result<ParsedConfig, ConfigError> {
    let environment = match &options.env_file {
        Some(path) => Environment::of(context.clone()).with_file(path)?,
        None => file.environment_in(context.clone()),
    };
    let mut parsed = file.parse(&environment)?;
    let config = &mut parsed.config;
    config.settings.launch = LaunchFacts {
        lineage: Some(lineage::of(file, context)),
        is_unattended: is_ci(context.get("CI")),
        is_for_person: false,
        wrapping: Wrapping::None,
        commands: user_commands(Some(file), options),
    };
    if let Some(surface) = options.surface {
        config.settings.set_surface(surface);
    }
    if options.scripts {
        config.settings.lists.scripts.runs_any = true;
    }
    for server in &mut config.servers {
        let is_kept = parsed.compatibility.kept_idle_timeouts.contains(&server.name);
        override_server(server, options, options.idle_timeout.filter(|_| !is_kept));
    }
    if let Some(name) = &options.profile {
        config.settings.profiles.set_default(name)?;
    }
    Ok(parsed)
}

/// Returns the server of this name.
///
/// # Errors
/// If there is none; the text lists all names.
pub(super) fn server<'a>(config: &'a Config, name: &str) -> Result<&'a ServerConfig, UsageError> {
    config.servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        UsageError(format!("unknown server {name:?}; known: {known}"))
    })
}

/// Applies the command line to a server's config.
fn override_server(server: &mut ServerConfig, options: &Options, idle_timeout: Option<Duration>) {
    if let Some(startup) = options.startup.chosen() {
        server.startup = startup;
    }
    if let Some(timeout) = idle_timeout {
        server.settings.idle_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
}

/// Returns the config for the one server given after `--`. It inherits the environment of dormouse,
/// which its host meant for it.
pub(super) fn wrap(command: Vec<String>, options: &Options) -> Option<Config> {
    let mut words = command.into_iter();
    let command = words.next()?;
    let stem = Path::new(&command).file_stem();
    let name = stem.map_or_else(|| command.clone(), |stem| stem.to_string_lossy().into_owned());
    let context = LaunchContext::of_process();
    let launch =
        Launch { args: words.collect(), inherit_env: true, ..Launch::new(command, context) };
    let surface = options.surface.unwrap_or_else(|| ListSettings::default().surface);
    let has_one_host = surface == Surface::Direct && options.http.is_none();
    let wrapping = if has_one_host { Wrapping::Exclusive } else { Wrapping::Shared };
    let lists = ListSettings { surface, ..ListSettings::default() };
    let facts = LaunchFacts { wrapping, ..LaunchFacts::default() };
    let settings = Settings { lists, launch: facts, ..Settings::default() };
    let mut server = ServerConfig::new(name, Transport::Stdio(launch));
    override_server(&mut server, options, options.idle_timeout);
    Some(Config { settings, servers: vec![server] })
}
