//! `dormouse connect` and `disconnect`: dormouse in the configs of AI tools, and out of them again.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};

use super::{
    UsageError,
    arguments::{ConnectArguments, Consent, DisconnectArguments, HostArguments, Options},
    ask::{self, Answer},
    import::host,
    settings::{self, directories},
};
use crate::{
    config::{Config, ConfigFile, create_file, remove_file, replace_file, visible},
    hosts::{
        Backups, Before, Connected, Connection, Directories, HOSTS, Scope, Spot, Way, hidden,
        target,
    },
};

pub(super) fn connect(options: &Options, typed: &ConnectArguments) -> anyhow::Result<ExitCode> {
    let directories = directories()?;
    let file = settings::target(options)?;
    if !file.is_written() {
        bail!("there is no config yet: dormouse import --all makes one, or dormouse add");
    }
    let config = settings::parse(&file, options)?;
    let backups = settings::backups()?;
    let connecting = Connecting {
        spots: chosen(&typed.hosts, &directories, &backups)?,
        way: way(options, typed, &file, &config)?,
        carried: if typed.replace { carried(&file, &config)? } else { Vec::new() },
        backups,
        file,
        directories,
        typed,
    };
    Ok(for_each(&connecting.spots, |spot| connecting.connect(spot)))
}

/// What is put into the files of hosts, and how.
struct Connecting<'a> {
    spots: Vec<Spot>,
    way: Way,
    /// What the servers lead to that dormouse has.
    carried: Vec<Value>,
    backups: Backups,
    file: ConfigFile,
    directories: Directories,
    typed: &'a ConnectArguments,
}

impl Connecting<'_> {
    fn connect(&self, spot: &Spot) -> anyhow::Result<()> {
        if self.token().is_some() && spot.is_shared() {
            bail!("the token would stand in a file that others share: leave --project out");
        }
        let before = read(spot)?;
        let text = before.as_deref().unwrap_or_default();
        let environment = self.file.environment();
        let connected =
            spot.connect(text, &self.way, &self.carried, &environment, &self.directories)?;
        if before.as_deref() == Some(connected.text.as_str()) {
            outln!("{}: dormouse is in {} already", spot.host.name, spot.path.display());
            return Ok(());
        }
        let change = Change { spot, before: before.as_deref(), after: Some(&connected.text) };
        change.show(self.token());
        if change.is_agreed(self.typed.consent)? {
            let before = change.before.map(str::as_bytes);
            let pending = self.backups.prepare(&spot.path, before, &connected);
            let pending = pending.context("cannot keep a copy of the file as it was")?;
            change.write()?;
            let before = pending.before().clone();
            pending.finish().context("dormouse is in it, but how to undo that cannot be kept")?;
            self.say(spot, &connected, &before);
        }
        Ok(())
    }

    /// Ours, which is not to be shown.
    fn token(&self) -> Option<&String> {
        match &self.way {
            Way::Url { token, .. } => token.as_ref(),
            Way::Launch { .. } => None,
        }
    }

    fn say(&self, spot: &Spot, connected: &Connected, before: &Before) {
        let (host, path) = (spot.host, spot.path.display());
        outln!("{}: dormouse is in {path}", host.name);
        if let Before::Copy(copy) = before {
            outln!("  as it was: {}", copy.display());
        }
        if !connected.taken_out.is_empty() {
            let names: Vec<&str> = connected.taken_out.keys().map(String::as_str).collect();
            outln!("  taken out, as dormouse has them: {}", visible(&names.join(", ")));
        }
        if !connected.left.is_empty() {
            let why = if self.typed.replace {
                "dormouse does not have them, or cannot use them yet: see dormouse check and status"
            } else {
                "--replace takes out what dormouse has"
            };
            outln!("  still there beside it: {} ({why})", visible(&connected.left.join(", ")));
        }
        if let Some(hint) = host.hint {
            outln!("  {hint}");
        }
        let scope = if self.typed.hosts.project { " --project" } else { "" };
        outln!("  restart {} to see it; undo: dormouse disconnect {}{scope}", host.name, host.id);
    }
}

pub(super) fn disconnect(typed: &DisconnectArguments) -> anyhow::Result<ExitCode> {
    let directories = directories()?;
    let backups = settings::backups()?;
    let spots = chosen(&typed.hosts, &directories, &backups)?;
    Ok(for_each(&spots, |spot| {
        let (name, path) = (spot.host.name, spot.path.display());
        let Some(before) = read(spot)? else {
            outln!("{name}: there is no {path}");
            return Ok(());
        };
        let connection = backups.of(&spot.path).context("cannot read what was done to it")?;
        let Some(undone) = undone(spot, &before, connection, &directories)? else {
            outln!("{name}: dormouse is not in {path}");
            return Ok(());
        };
        let change = Change { spot, before: Some(&before), after: undone.text() };
        change.show(None);
        if change.is_agreed(typed.consent)? {
            if matches!(undone, Undone::Edited(_)) {
                let copy = backups.keep(&spot.path, before.as_bytes());
                let copy = copy.context("cannot keep a copy of the file as it was")?;
                outln!("  as it was: {}", copy.display());
            }
            change.write()?;
            backups.forget(&spot.path);
            outln!("{name}: {path} {}", undone.says());
        }
        Ok(())
    }))
}

/// A file without dormouse.
enum Undone {
    /// As it was before; `None` where there was none.
    Restored(Option<String>),
    /// Somebody has changed it since, or nobody knows any more what it was.
    Edited(String),
}

impl Undone {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Restored(text) => text.as_deref(),
            Self::Edited(text) => Some(text),
        }
    }

    fn says(&self) -> &'static str {
        match self {
            Self::Restored(_) => "is as it was before",
            Self::Edited(_) => {
                "has dormouse no more, and the servers that it took out; what was changed since stays"
            }
        }
    }
}

/// `None` where there is nothing to do.
fn undone(
    spot: &Spot,
    text: &str,
    connection: Option<Connection>,
    directories: &Directories,
) -> anyhow::Result<Option<Undone>> {
    let Some(connection) = connection else {
        let edited = spot.disconnect(text, &Map::new(), directories)?;
        return Ok(edited.map(Undone::Edited));
    };
    if connection.is_untouched(text.as_bytes()) {
        match &connection.before {
            Before::Nothing => return Ok(Some(Undone::Restored(None))),
            Before::Copy(copy) => match std::fs::read_to_string(copy) {
                Ok(text) => return Ok(Some(Undone::Restored(Some(text)))),
                Err(error) => errln!("the copy of it is gone ({}: {error})", copy.display()),
            },
            Before::Mixed => {}
        }
    }
    Ok(spot.disconnect(text, &connection.taken_out, directories)?.map(Undone::Edited))
}

/// Does it for each of the files, whatever becomes of the others.
fn for_each(spots: &[Spot], mut each: impl FnMut(&Spot) -> anyhow::Result<()>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for spot in spots {
        if let Err(error) = each(spot) {
            let path = spot.path.display();
            errln!("{}: {path}: {}", spot.host.name, visible(&format!("{error:#}")));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The files of the hosts that were named, or of all that are there.
fn chosen(
    typed: &HostArguments,
    directories: &Directories,
    backups: &Backups,
) -> anyhow::Result<Vec<Spot>> {
    let mut spots = own_spots(typed, directories)?;
    for spot in &mut spots {
        spot.remember(backups);
    }
    Ok(spots)
}

fn own_spots(typed: &HostArguments, directories: &Directories) -> anyhow::Result<Vec<Spot>> {
    let scope = if typed.project { Scope::Project } else { Scope::User };
    if typed.all {
        let spots = HOSTS.iter().filter_map(|host| host.own_spot(scope, directories));
        let spots: Vec<Spot> = spots.filter(|spot| spot.path.is_file()).collect();
        if spots.is_empty() {
            bail!("no host was found");
        }
        return Ok(spots);
    }
    let of_name = |name: &String| {
        let host = host(name)?;
        let elsewhere = if typed.project { "its user's" } else { "a project's; say --project" };
        let none = || UsageError(format!("{} has no file but {elsewhere}", host.name));
        Ok(host.own_spot(scope, directories).ok_or_else(none)?)
    };
    typed.names.iter().map(of_name).collect()
}

/// What those servers lead to that dormouse serves with this config.
fn carried(file: &ConfigFile, config: &Config) -> anyhow::Result<Vec<Value>> {
    let environment = file.environment();
    let is_to_be_had = |name: &String| {
        let mut servers = config.servers.iter();
        servers.any(|server| server.name == *name && server.enabled && server.transport.is_ok())
    };
    let entries = file.entries()?;
    let served = entries.iter().filter(|(name, _)| is_to_be_had(name));
    let targets = served.filter_map(|(_, entry)| Some(target(entry.as_object()?, &environment)));
    Ok(targets.collect())
}

/// How hosts are to reach us.
fn way(
    options: &Options,
    typed: &ConnectArguments,
    file: &ConfigFile,
    config: &Config,
) -> anyhow::Result<Way> {
    let is_shared = typed.hosts.project;
    if let Some(address) = &options.http {
        let token = config.settings.http.auth_tokens.first().cloned();
        return Ok(Way::Url { url: url(address)?, token });
    }
    let mut args = Vec::new();
    if file.needs_trust() {
        if !is_shared {
            let message = "the config is that of the project in the working directory: say --project, or name it with --config";
            return Err(UsageError(message.to_owned()).into());
        }
        // It is found there, and used while it is trusted.
    } else {
        let path = std::path::absolute(&file.path)?;
        args.extend(["--config".to_owned(), path.to_string_lossy().into_owned()]);
    }
    if let Some(profile) = &options.profile {
        args.extend(["--profile".to_owned(), profile.clone()]);
    }
    Ok(Way::Launch { command: own_command()?, args })
}

/// `:8080`, `127.0.0.1:8080`, or the URL itself.
fn url(address: &str) -> Result<String, UsageError> {
    let wrong = || {
        let message = format!("{address:?} is no address that a host could reach: write HOST:PORT");
        UsageError(message)
    };
    if address.contains("://") {
        let is_url = url::Url::parse(address).is_ok_and(|url| url.has_host());
        return if is_url { Ok(address.to_owned()) } else { Err(wrong()) };
    }
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    // What is listened on everywhere is reached here.
    let host = match host {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    let url = format!("http://{host}:{port}/mcp");
    if url::Url::parse(&url).is_ok() { Ok(url) } else { Err(wrong()) }
}

/// Where this program is, by a way that outlives an update. Hosts with windows may not have our `PATH`.
fn own_command() -> anyhow::Result<String> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
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

fn read(spot: &Spot) -> anyhow::Result<Option<String>> {
    match std::fs::read(&spot.path) {
        Ok(text) => Ok(Some(String::from_utf8(text).context("it is not UTF-8")?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot read it"),
    }
}

/// What becomes of a file.
struct Change<'a> {
    spot: &'a Spot,
    /// `None` where there is no file, or is none afterwards.
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl Change<'_> {
    fn show(&self, token: Option<&String>) {
        let (before, after) = (self.before.unwrap_or_default(), self.after.unwrap_or_default());
        let more: Vec<_> = token.cloned().into_iter().map(hidden).collect();
        ask::print_difference(&self.spot.path, before, after, &more);
    }

    fn is_agreed(&self, consent: Consent) -> anyhow::Result<bool> {
        match ask::agree(consent, &format!("Write {}?", self.spot.path.display()))? {
            Answer::Yes => Ok(true),
            Answer::No | Answer::Dry => Ok(false),
            Answer::Nobody => bail!("nothing is written: there is nobody to ask; say --yes"),
        }
    }

    fn write(&self) -> anyhow::Result<()> {
        let path = &self.spot.path;
        match (self.before, self.after) {
            (Some(before), Some(after)) => replace_file(path, before.as_bytes(), after.as_bytes())?,
            (None, Some(after)) => create_file(path, after.as_bytes())?,
            (before, None) => remove_file(path, before.unwrap_or_default().as_bytes())?,
        }
        Ok(())
    }
}
