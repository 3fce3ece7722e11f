//! `dormouse connect`: add dormouse to the configs of AI tools.

mod disconnect;
mod state;

pub(super) use disconnect::disconnect;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    UsageError,
    arguments::{AppArguments, ConnectArguments, Consent},
    ask::{self, Answer},
    import::app,
    reach::{self, Reach},
    settings::{self, directories},
    shared_flags::Options,
};
use crate::{
    apps::{
        APPS, AppFile, Backups, ConnectedFile, Directories, DormouseTransport, FileScope,
        OriginalFile, bare_secret, server_identity,
    },
    base::{create_file, remove_file, replace_file, visible},
    config::{Config, ConfigFile},
};

pub(super) fn connect(options: &Options, typed: &ConnectArguments) -> anyhow::Result<ExitCode> {
    if typed.apps.names.is_empty() && !typed.apps.all {
        let ConnectArguments { apps, replace, consent, .. } = typed;
        if apps.project || *replace || consent.yes || consent.dry_run || !reach::is_plain(options) {
            let message = "these flags need an app: name one, or use --all".to_owned();
            return Err(UsageError(message).into());
        }
        return state::list(typed.json);
    }
    let directories = directories()?;
    let file = settings::target(options)?;
    if !file.is_written() {
        bail!("no config found: create one with `dormouse import --all` or `dormouse add`");
    }
    if !typed.json {
        settings::say_which(&file);
    }
    let config = settings::parse(&file, options)?;
    let backups = settings::backups()?;
    let connecting = Connecting {
        app_files: chosen(&typed.apps, &directories, &backups)?,
        reach: Reach::new(options, &file, &config)?,
        carried: if typed.replace { carried(&file, &config)? } else { Vec::new() },
        backups,
        file,
        directories,
        typed,
    };
    if !typed.json {
        return Ok(for_each(&connecting.app_files, |app_file| {
            connecting.connect(app_file).map(drop)
        }));
    }
    let outcomes: Vec<ReportedFile> =
        connecting.app_files.iter().map(|app_file| connecting.report(app_file)).collect();
    outln!("{}", super::output::json(&outcomes)?);
    let has_failed = outcomes.iter().any(|outcome| outcome.error.is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The outcome for one file, in `--json`.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedFile {
    app: &'static str,
    path: PathBuf,
    /// `connected`, `already connected`, `not written` or `failed`.
    outcome: &'static str,
    /// The servers that were removed, or would be.
    taken_out: Vec<String>,
    /// The servers that stay next to dormouse.
    left: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The entry for the files of apps, and the way to write it.
struct Connecting<'a> {
    app_files: Vec<AppFile>,
    reach: Reach,
    /// The identities of the servers that dormouse provides.
    carried: Vec<Value>,
    backups: Backups,
    file: ConfigFile,
    directories: Directories,
    typed: &'a ConnectArguments,
}

impl Connecting<'_> {
    fn report(&self, app_file: &AppFile) -> ReportedFile {
        let (app, path) = (app_file.app.id, app_file.path.clone());
        match self.connect(app_file) {
            Ok((outcome, connected)) => {
                let of_projects = connected.taken_out_of_projects.values();
                let of_projects = of_projects.filter_map(Value::as_object).flat_map(Map::keys);
                let taken_out = connected.taken_out.keys().chain(of_projects).cloned().collect();
                ReportedFile { app, path, outcome, taken_out, left: connected.kept, error: None }
            }
            Err(error) => {
                let error = Some(format!("{error:#}"));
                ReportedFile { app, path, outcome: "failed", error, ..ReportedFile::default() }
            }
        }
    }

    fn connect(&self, app_file: &AppFile) -> anyhow::Result<(&'static str, ConnectedFile)> {
        let way = self.reach.way(app_file)?;
        let token = match &way {
            DormouseTransport::Url { token, .. } => token.as_ref(),
            DormouseTransport::Launch { .. } => None,
        };
        let before = read(app_file)?;
        let text = before.as_deref().unwrap_or_default();
        let environment = self.file.environment();
        let connected =
            app_file.connect(text, &way, &self.carried, &environment, &self.directories)?;
        if before.as_deref() == Some(connected.text.as_str()) {
            if !self.typed.json {
                outln!("{}: {} already has dormouse", app_file.app.name, app_file.path.display());
            }
            return Ok(("already connected", connected));
        }
        let change = Change { app_file, before: before.as_deref(), after: Some(&connected.text) };
        if self.typed.json {
            let Consent { yes, dry_run } = self.typed.consent;
            if !yes && !dry_run {
                bail!("nothing written: --json does not ask; add --yes");
            }
        } else {
            change.show(token);
        }
        if change.is_agreed(self.typed.consent)? {
            let before = change.before.map(str::as_bytes);
            let pending = self.backups.prepare_record(&app_file.path, before, &connected);
            let pending = pending.context("cannot save a copy of the file")?;
            change.write()?;
            let before = pending.before().clone();
            pending
                .save()
                .context("dormouse was added, but the record for undoing it cannot be saved")?;
            if !self.typed.json {
                self.say(app_file, &connected, &before);
            }
            return Ok(("connected", connected));
        }
        Ok(("not written", connected))
    }

    fn say(&self, app_file: &AppFile, connected: &ConnectedFile, before: &OriginalFile) {
        let (app, path) = (app_file.app, app_file.path.display());
        outln!("{}: added dormouse to {path}", app.name);
        if let OriginalFile::Copy(copy) = before {
            outln!("  original: {}", copy.display());
        }
        if !connected.taken_out.is_empty() {
            let names: Vec<&str> = connected.taken_out.keys().map(String::as_str).collect();
            outln!("  removed, since dormouse provides them: {}", visible(&names.join(", ")));
        }
        for (project, servers) in &connected.taken_out_of_projects {
            let names = servers.as_object().into_iter().flat_map(Map::keys);
            let names = visible(&names.cloned().collect::<Vec<_>>().join(", "));
            outln!("  removed for the project {}: {names}", visible(project));
        }
        if !connected.kept.is_empty() {
            let why = if self.typed.replace {
                "dormouse does not provide them, or cannot use them yet: see `dormouse check` and \
                    `dormouse status`"
            } else {
                "--replace removes those that dormouse provides"
            };
            outln!("  other servers in the file: {} ({why})", visible(&connected.kept.join(", ")));
        }
        if app_file.scope == FileScope::User {
            for elsewhere in app.servers_of_other_projects(&self.directories) {
                let elsewhere = visible(&elsewhere.to_string());
                outln!(
                    "  {elsewhere}; to remove those that dormouse provides, run this with \
                    --replace in that project"
                );
            }
        }
        if let Some(hint) = app.hint() {
            outln!("  {hint}");
        }
        let scope = if self.typed.apps.project { " --project" } else { "" };
        outln!("  restart {} to use it; undo: dormouse disconnect {}{scope}", app.name, app.id);
    }
}

/// Calls `each` for every file, even if some fail.
fn for_each(
    app_files: &[AppFile],
    mut each: impl FnMut(&AppFile) -> anyhow::Result<()>,
) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for app_file in app_files {
        if let Err(error) = each(app_file) {
            let path = app_file.path.display();
            errln!("{}: {path}: {}", app_file.app.name, visible(&format!("{error:#}")));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Returns the files of the named apps, or of all that are installed.
fn chosen(
    typed: &AppArguments,
    directories: &Directories,
    backups: &Backups,
) -> anyhow::Result<Vec<AppFile>> {
    if typed.names.is_empty() && !typed.all {
        return Err(UsageError("name an app, or use --all".to_owned()).into());
    }
    let mut app_files = own_files(typed, directories)?;
    for app_file in &mut app_files {
        app_file.load_dormouse_entry(backups);
    }
    Ok(app_files)
}

fn own_files(typed: &AppArguments, directories: &Directories) -> anyhow::Result<Vec<AppFile>> {
    let scope = if typed.project { FileScope::Project } else { FileScope::User };
    if typed.all {
        let app_files = APPS.iter().filter_map(|app| app.writable_file(scope, directories));
        let app_files: Vec<AppFile> =
            app_files.filter(|app_file| app_file.path.is_file()).collect();
        if app_files.is_empty() {
            bail!("no app was found");
        }
        return Ok(app_files);
    }
    let of_name = |name: &String| {
        let app = app(name)?;
        let elsewhere = if typed.project {
            "a file of the user: remove --project"
        } else {
            "a file of the project: add --project"
        };
        let none = || UsageError(format!("{} has only {elsewhere}", app.name));
        Ok(app.writable_file(scope, directories).ok_or_else(none)?)
    };
    typed.names.iter().map(of_name).collect()
}

/// Returns the identities of the servers that dormouse provides with this config.
fn carried(file: &ConfigFile, config: &Config) -> anyhow::Result<Vec<Value>> {
    let environment = file.environment();
    let is_to_be_had = |name: &String| {
        let mut servers = config.servers.iter();
        servers.any(|server| server.name == *name && server.enabled && server.transport.is_ok())
    };
    let entries = file.entries()?;
    let served = entries.iter().filter(|(name, _)| is_to_be_had(name));
    let targets =
        served.filter_map(|(_, entry)| Some(server_identity(entry.as_object()?, &environment)));
    Ok(targets.collect())
}

fn read(app_file: &AppFile) -> anyhow::Result<Option<String>> {
    match crate::base::read_text(&app_file.path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot read the file"),
    }
}

/// The change of a file.
struct Change<'a> {
    app_file: &'a AppFile,
    /// `None` if there is no file before or after the change.
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl Change<'_> {
    fn show(&self, token: Option<&String>) {
        let (before, after) = (self.before.unwrap_or_default(), self.after.unwrap_or_default());
        let more: Vec<_> = token.cloned().into_iter().map(bare_secret).collect();
        ask::print_difference(&self.app_file.path, before, after, &more);
    }

    fn is_agreed(&self, consent: Consent) -> anyhow::Result<bool> {
        match ask::agree(consent, &format!("Write {}?", self.app_file.path.display()))? {
            Answer::Yes => Ok(true),
            Answer::No | Answer::Dry => Ok(false),
            Answer::NoTerminal => {
                bail!("nothing written: there is no terminal to ask on; add --yes")
            }
        }
    }

    fn write(&self) -> anyhow::Result<()> {
        let path = &self.app_file.path;
        match (self.before, self.after) {
            (Some(before), Some(after)) => replace_file(path, before.as_bytes(), after.as_bytes())?,
            (None, Some(after)) => create_file(path, after.as_bytes())?,
            (before, None) => remove_file(path, before.unwrap_or_default().as_bytes())?,
        }
        Ok(())
    }
}
