//! Decides by which transport apps reach dormouse. `connect` writes it into their files.

use anyhow::{Context as _, bail};

use super::{UsageError, shared_flags::Options};
use crate::{
    apps::{AppFile, DormouseTransport},
    config::{self, Config, ConfigFile, HttpSettings},
};

/// The transport for apps, not yet adapted to a single file: a URL, or a command with the options
/// from the command line.
pub(super) enum Reach {
    Url { url: String, token: Option<String> },
    Launch { file: ConfigFile, arguments: Vec<String> },
}

impl Reach {
    /// Returns the URL of the address from the command line or the config, or a command if dormouse
    /// does not listen on HTTP.
    pub(super) fn new(
        options: &Options,
        file: &ConfigFile,
        config: &Config,
    ) -> anyhow::Result<Self> {
        let HttpSettings { access, listening, people } = &config.settings.http;
        if let Some(address) = options.http.as_ref().or(listening.listen.as_ref()) {
            let others = Options { surface: None, profile: None, ..options.clone() };
            if let Some(option) = typed(&others)?.first() {
                let message =
                    format!("{option} belongs to the dormouse that listens at that URL: remove it");
                return Err(UsageError(message).into());
            }
            let public = people.public_url.as_ref().filter(|_| options.http.is_none());
            let mut url = match public {
                Some(public) => format!("{}/mcp", public.trim_end_matches('/')),
                None => url(listening.scheme(), address)?,
            };
            let token = access.auth_tokens.first().cloned();
            if token.is_none()
                && config.servers.iter().any(|server| !server.endpoint.auth_tokens.is_empty())
            {
                bail!(
                    "/mcp is closed because only single servers have \"authTokens\": add global \
                        \"authTokens\" to {}",
                    file.path.display()
                );
            }
            let has_tokens = token.is_some() || !people.issuers.is_empty();
            if !has_tokens && options.http.is_none() && !is_local(address) {
                bail!(
                    "without \"authTokens\", dormouse generates a new token for {address} at each \
                        start: add \"authTokens\" to {}",
                    file.path.display()
                );
            }
            if let Some(surface) = options.surface {
                add_to_query(&mut url, "surface", surface.name());
            }
            if let Some(profile) = &options.profile {
                add_to_query(&mut url, "profile", profile);
            }
            return Ok(Self::Url { url, token });
        }
        Ok(Self::Launch { file: file.clone(), arguments: typed(options)? })
    }

    /// Returns the transport for one file. A file that a team shares must not contain paths or
    /// tokens of this user.
    pub(super) fn way(&self, app_file: &AppFile) -> anyhow::Result<DormouseTransport> {
        let is_shared = app_file.is_shared();
        match self {
            Self::Url { token: Some(_), .. } if is_shared => {
                bail!("the token would be written to a shared file: remove --project")
            }
            Self::Url { url, token } => {
                Ok(DormouseTransport::Url { url: url.clone(), token: token.clone() })
            }
            Self::Launch { arguments, .. }
                if is_shared && arguments.iter().any(|argument| argument == "--env-file") =>
            {
                bail!(
                    "the path of --env-file would be written to a shared file: remove --env-file \
                        or --project"
                )
            }
            Self::Launch { file, arguments } => {
                let mut args = config_argument(file, is_shared)?;
                args.extend(arguments.iter().cloned());
                let command = if is_shared { "dormouse".to_owned() } else { own_command()? };
                Ok(DormouseTransport::Launch { command, args })
            }
        }
    }
}

/// Returns the arguments that name the config. They are empty in a shared file, since each member
/// of the team has a config of their own.
fn config_argument(file: &ConfigFile, is_shared: bool) -> anyhow::Result<Vec<String>> {
    match (file.needs_trust(), is_shared) {
        (true, false) => {
            let message = "the config belongs to the project in the working directory: use \
                --project, or name the config with --config";
            Err(UsageError(message.to_owned()).into())
        }
        // dormouse finds the project's config in the working directory and uses it while the user
        // trusts it. Otherwise, it uses each user's own config.
        (true, true) => Ok(Vec::new()),
        (false, true) if config::is_of_user(&file.path) => Ok(Vec::new()),
        (false, true) => bail!(
            "the path {} would be written to a shared file: remove --config or --project",
            file.path.display()
        ),
        (false, false) => {
            let path = std::path::absolute(&file.path)?;
            Ok(vec!["--config".to_owned(), path.to_string_lossy().into_owned()])
        }
    }
}

/// Returns the given options that also apply to the dormouse that an app launches, as arguments.
fn typed(options: &Options) -> anyhow::Result<Vec<String>> {
    let mut arguments = Vec::new();
    let mut push = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if let Some(profile) = &options.profile {
        push("--profile", profile.clone());
    }
    if let Some(surface) = options.surface {
        push("--surface", surface.name().to_owned());
    }
    if let Some(timeout) = options.idle_timeout {
        push("--idle-timeout", humantime::format_duration(timeout).to_string().replace(' ', ""));
    }
    if let Some(file) = &options.env_file {
        push("--env-file", std::path::absolute(file)?.to_string_lossy().into_owned());
    }
    if let Some(startup) = options.startup.chosen() {
        arguments.push(format!("--{}", startup.name()));
    }
    if options.scripts {
        arguments.push("--scripts".to_owned());
    }
    Ok(arguments)
}

/// Returns the URL with this scheme for an address such as `:8080` or `127.0.0.1:8080`. A URL is
/// returned unchanged.
fn url(scheme: &str, address: &str) -> Result<String, UsageError> {
    let wrong = || {
        let message = format!("{address:?} is not an address that apps can reach: write HOST:PORT");
        UsageError(message)
    };
    if address.contains("://") {
        let is_url = url::Url::parse(address).is_ok_and(|url| url.has_host());
        return if is_url { Ok(address.to_owned()) } else { Err(wrong()) };
    }
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    // A server that listens on all interfaces is reachable on loopback.
    let host = match host {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    let url = format!("{scheme}://{host}:{port}/mcp");
    if url::Url::parse(&url).is_ok() { Ok(url) } else { Err(wrong()) }
}

/// Adds a parameter to the query of a URL.
fn add_to_query(url: &mut String, name: &str, value: &str) {
    let separator = if url.contains('?') { '&' } else { '?' };
    let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    url.push_str(&format!("{separator}{name}={value}"));
}

/// Returns whether an address is only reachable from this machine.
fn is_local(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    let url = url::Url::parse(&format!("http://{host}/"));
    host.is_empty() || url.is_ok_and(|url| config::is_loopback(&url))
}

/// Returns whether no given option affects how apps reach dormouse.
pub(super) fn is_plain(options: &Options) -> bool {
    options.http.is_none() && typed(options).is_ok_and(|typed| typed.is_empty())
}

/// Returns the absolute path of this program.
///
/// A path in a directory of `PATH` is preferred, since it stays valid after an update. The name
/// alone is not enough, since graphical apps may have another `PATH`.
fn own_command() -> anyhow::Result<String> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let name = own.file_name().unwrap_or_default();
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let is_us = |path: &std::path::PathBuf| {
        path.canonicalize().is_ok_and(|path| own.canonicalize().is_ok_and(|own| own == path))
    };
    let on_path = std::env::split_paths(&directories)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(is_us);
    Ok(on_path.unwrap_or(own).to_string_lossy().into_owned())
}
