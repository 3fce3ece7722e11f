//! `dormouse connect` and `disconnect`: dormouse in the configs of AI tools, and out of them again.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use serde_json::Map;

use super::{
    UsageError,
    arguments::{ConnectArguments, Consent, DisconnectArguments, HostArguments, Options},
    ask,
    import::{directories, target},
    settings,
};
use crate::{
    config::{Config, ConfigFile, create_file, replace_file, visible},
    hosts::{Backups, Connected, Connection, Directories, HOSTS, Host, Scope, Secret, Spot, Way},
};

pub(super) fn connect(options: &Options, typed: &ConnectArguments) -> anyhow::Result<ExitCode> {
    let directories = directories()?;
    let file = target(options)?;
    if !file.is_written() {
        bail!("there is no config yet: dormouse import --all makes one, or dormouse add");
    }
    file.check_trust(&settings::trust_store()?)?;
    let config = settings::parse(&file, options)?;
    let spots = chosen(&typed.hosts, &directories)?;
    let way = way(options, &file, &config)?;
    let backups = backups()?;
    let ours = typed.replace.then(|| file.entries()).transpose()?;
    let environment = file.environment();
    let code = for_each(&spots, |spot| {
        let before = read(spot)?;
        let text = before.as_deref().unwrap_or_default();
        let ours = ours.as_ref().map(|ours| (ours, &environment));
        let connected = spot.connect(text, &way, ours, &directories)?;
        let change = Change { spot, before: before.as_deref(), after: Some(&connected.text) };
        if before.as_deref() == Some(connected.text.as_str()) {
            outln!("{}: dormouse is in {} already", spot.host.name, spot.path.display());
            return Ok(());
        }
        change.show(&secrets(&connected, &way));
        if change.is_agreed(typed.consent)? {
            let before = change.before.map(str::as_bytes);
            let taken_out = connected.taken_out.clone();
            let earlier = backups.of(&spot.path).is_some();
            let kept = backups.remember(&spot.path, before, connected.text.as_bytes(), taken_out);
            let kept = kept.context("cannot keep a copy of the file as it was")?;
            if let Err(error) = change.write() {
                if !earlier {
                    backups.forget(&spot.path);
                }
                return Err(error);
            }
            outln!("{}: dormouse is in {}", spot.host.name, spot.path.display());
            if let Some(copy) = kept.before {
                outln!("  as it was: {}", copy.display());
            }
            say_what_is_next(spot, &connected, typed.replace);
        }
        Ok(())
    });
    Ok(code)
}

fn say_what_is_next(spot: &Spot, connected: &Connected, is_replacing: bool) {
    if !connected.taken_out.is_empty() {
        let names: Vec<&str> = connected.taken_out.keys().map(String::as_str).collect();
        outln!("  taken out, as dormouse has them: {}", visible(&names.join(", ")));
    }
    if !connected.left.is_empty() {
        let why = if is_replacing {
            "dormouse does not have them"
        } else {
            "--replace takes out what dormouse has"
        };
        outln!("  still there beside it: {} ({why})", visible(&connected.left.join(", ")));
    }
    if let Some(hint) = spot.host.hint {
        outln!("  {hint}");
    }
    outln!("  restart {} to see it; undo: dormouse disconnect {}", spot.host.name, spot.host.id);
}

pub(super) fn disconnect(typed: &DisconnectArguments) -> anyhow::Result<ExitCode> {
    let directories = directories()?;
    let spots = chosen(&typed.hosts, &directories)?;
    let backups = backups()?;
    let code = for_each(&spots, |spot| {
        let (name, path) = (spot.host.name, spot.path.display());
        let Some(before) = read(spot)? else {
            outln!("{name}: there is no {path}");
            return Ok(());
        };
        let Some(undone) = undone(spot, &before, backups.of(&spot.path), &directories)? else {
            outln!("{name}: dormouse is not in {path}");
            return Ok(());
        };
        let change = Change { spot, before: Some(&before), after: undone.text() };
        change.show(&[]);
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
    });
    Ok(code)
}

/// A file without dormouse.
enum Undone {
    /// As it was before; `None` where there was none.
    Restored(Option<String>),
    /// Somebody has changed it since.
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
            Self::Edited(_) => "has dormouse no more; what was changed since stays",
        }
    }
}

/// `None` where dormouse is not in the file.
fn undone(
    spot: &Spot,
    before: &str,
    connection: Option<Connection>,
    directories: &Directories,
) -> anyhow::Result<Option<Undone>> {
    let (untouched, taken_out) = match connection {
        Some(connection) if connection.is_untouched(before.as_bytes()) => {
            (Some(connection.before), Map::new())
        }
        Some(connection) => (None, connection.taken_out),
        None => (None, Map::new()),
    };
    if let Some(copy) = untouched {
        let gone =
            |copy: &PathBuf| format!("the copy of the file as it was is gone: {}", copy.display());
        let text = copy.map(|copy| std::fs::read_to_string(&copy).with_context(|| gone(&copy)));
        return Ok(Some(Undone::Restored(text.transpose()?)));
    }
    Ok(spot.disconnect(before, &taken_out, directories)?.map(Undone::Edited))
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
fn chosen(typed: &HostArguments, directories: &Directories) -> anyhow::Result<Vec<Spot>> {
    let HostArguments { names, all, project } = typed;
    let (all, project) = (*all, *project);
    let scope = if project { Scope::Project } else { Scope::User };
    let spot = |host: &'static Host| host.own_spot(scope, directories);
    if all {
        let spots: Vec<Spot> =
            HOSTS.iter().filter_map(spot).filter(|spot| spot.path.is_file()).collect();
        if spots.is_empty() {
            bail!("no host was found");
        }
        return Ok(spots);
    }
    let of_name = |name: &String| {
        let known = || HOSTS.iter().map(|host| host.id).collect::<Vec<_>>().join(", ");
        let host = Host::named(name)
            .ok_or_else(|| UsageError(format!("{name:?} is none of the hosts: {}", known())))?;
        let elsewhere = if project { "its user's" } else { "a project's; say --project" };
        let none = || UsageError(format!("{} has no file but {elsewhere}", host.name));
        Ok(spot(host).ok_or_else(none)?)
    };
    names.iter().map(of_name).collect()
}

/// How hosts are to reach us.
fn way(options: &Options, file: &ConfigFile, config: &Config) -> anyhow::Result<Way> {
    if let Some(address) = &options.http {
        let token = config.settings.http.auth_tokens.first().cloned();
        return Ok(Way::Url { url: url(address), token });
    }
    let path = std::path::absolute(&file.path)?;
    let mut args = vec!["--config".to_owned(), path.to_string_lossy().into_owned()];
    if let Some(profile) = &options.profile {
        args.extend(["--profile".to_owned(), profile.clone()]);
    }
    Ok(Way::Launch { command: own_command()?, args })
}

/// `:8080`, `127.0.0.1:8080`, or the URL itself.
fn url(address: &str) -> String {
    if address.contains("://") {
        return address.to_owned();
    }
    let port = address.strip_prefix(':').unwrap_or(address);
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("http://127.0.0.1:{port}/mcp");
    }
    // What is listened on everywhere is reached here.
    format!("http://{}/mcp", address.replace("0.0.0.0:", "127.0.0.1:"))
}

/// Where this program is, by a way that outlives an update. Hosts with windows may not have our `PATH`.
fn own_command() -> anyhow::Result<String> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let name = own.file_name().unwrap_or_default();
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&directories)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| {
            path.canonicalize().is_ok_and(|path| own.canonicalize().is_ok_and(|own| own == path))
        });
    Ok(on_path.unwrap_or(own).to_string_lossy().into_owned())
}

fn backups() -> anyhow::Result<Backups> {
    let directory =
        settings::data_directory().context("cannot tell where to keep copies: is HOME set?")?;
    Ok(Backups::new(directory.join("backups")))
}

fn read(spot: &Spot) -> anyhow::Result<Option<String>> {
    match std::fs::read(&spot.path) {
        Ok(text) => Ok(Some(String::from_utf8(text).context("it is not UTF-8")?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot read it"),
    }
}

/// What may not be shown.
fn secrets(connected: &Connected, way: &Way) -> Vec<Secret> {
    let mut secrets = connected.secrets.clone();
    if let Way::Url { token: Some(token), .. } = way {
        let (place, variable) = Default::default();
        secrets.push(Secret { place, variable, value: token.clone() });
    }
    secrets
}

/// What becomes of a file.
struct Change<'a> {
    spot: &'a Spot,
    /// `None` where there is no file, or is none afterwards.
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl Change<'_> {
    fn show(&self, secrets: &[Secret]) {
        let name = self.spot.path.display().to_string();
        ask::print_difference(
            &name,
            self.before.unwrap_or_default(),
            self.after.unwrap_or_default(),
            secrets,
        );
    }

    fn is_agreed(&self, consent: Consent) -> anyhow::Result<bool> {
        if consent.dry_run || consent.yes {
            return Ok(consent.yes);
        }
        if !ask::is_possible() {
            bail!("nothing is written: there is nobody to ask; say --yes");
        }
        ask::confirm(&format!("Write {}?", self.spot.path.display()))
    }

    fn write(&self) -> anyhow::Result<()> {
        let path: &PathBuf = &self.spot.path;
        match (self.before, self.after) {
            (Some(before), Some(after)) => replace_file(path, before.as_bytes(), after.as_bytes())?,
            (None, Some(after)) => create_file(path, after.as_bytes())?,
            (_, None) => std::fs::remove_file(path)?,
        }
        Ok(())
    }
}
