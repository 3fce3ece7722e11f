//! `dormouse import`: take the servers of AI tools into the config.

mod app_profiles;
mod report;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Map, Value, json};

use app_profiles::AppProfiles;
use report::show;

use super::{
    UsageError,
    arguments::{Consent, ImportArguments},
    ask::{self, Answer},
    describe::{self, Probing},
    edit::{rewrite, valid},
    instances::tell_running,
    output::json as to_json,
    settings::{self, directories},
    shared_flags::Options,
    table::{numbers, rendered, table},
};
use crate::{
    apps::{
        APPS, App, AppFile, Directories, FileScope, FoundServer, ImportPlan, OtherProjectServers,
        PlaintextSecret, find_secrets, find_servers, move_secrets, servers_of_config,
    },
    base::{counted, visible},
    config::{self, ConfigEdit, ConfigFile, Converted},
};

pub(super) fn run(options: &Options, typed: &ImportArguments) -> anyhow::Result<ExitCode> {
    let directories = directories()?;
    if typed.from.is_empty() && !typed.all {
        return list_apps(&directories, typed.json);
    }
    let ImportSources { found, unreadable, settings, of_project, elsewhere } =
        gather(typed, &directories)?;
    let file = settings::target(options)?;
    let mut plan = ImportPlan::new(found, &file.entries()?, &file.environment(), typed.force);
    for (path, why) in &unreadable {
        errln!("cannot read {}: {}", path.display(), visible(why));
    }
    for path in of_project {
        errln!("{} belongs to the project: add --project to import its servers", path.display());
    }
    for elsewhere in &elsewhere {
        errln!("{}", how_to_get(elsewhere));
    }
    let may_ask = !typed.consent.yes && !typed.json && !typed.consent.dry_run && ask::is_possible();
    if !typed.json {
        show(&plan, &file, typed.probe);
    }
    let is_news = plan.servers.iter().any(|planned| planned.outcome.is_written());
    let probing = match typed.probe && is_news {
        false => Probing::None,
        true if may_ask => {
            let is_agreed = ask::confirm("Run these to read their descriptions?")?;
            if is_agreed { Probing::All } else { Probing::None }
        }
        true if typed.project => Probing::All,
        true => Probing::OwnFiles,
    };
    describe::describe(&mut plan, &file, options, probing, may_ask)?;
    let secrets = Secrets::of(&plan);
    let is_moving = secrets.are_moved(typed, may_ask)?;
    let profiles = AppProfiles::of(&plan, &file.profile_names()?).if_wanted(typed, may_ask)?;
    let import = Import { options, plan, settings, secrets, is_moving, profiles };
    let outcome = import.write(&file, typed)?;
    let is_written = outcome == ImportOutcome::Written;
    if typed.json {
        outln!("{}", to_json(&import.report(&file, &unreadable, is_written))?);
    } else if is_written {
        import.say_what_is_next(&file);
    }
    let is_refused = outcome == ImportOutcome::Declined;
    let has_failed = !unreadable.is_empty() || is_refused;
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the app of this name.
pub(super) fn app(name: &str) -> Result<&'static App, UsageError> {
    App::named(name).ok_or_else(|| {
        let apps: Vec<&str> = APPS.iter().map(|app| app.id).collect();
        UsageError(format!("unknown app {name:?}; known: {}", apps.join(", ")))
    })
}

/// The servers and settings that can be imported.
#[derive(Default)]
struct ImportSources {
    found: Vec<FoundServer>,
    unreadable: Vec<(PathBuf, String)>,
    /// The settings of another system's config.
    settings: Map<String, Value>,
    /// Files of the project that are left out.
    of_project: Vec<PathBuf>,
    /// Servers for other projects, which are left out.
    elsewhere: Vec<OtherProjectServers>,
}

/// The outcome of an import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ImportOutcome {
    Written,
    NothingNew,
    /// The user only wanted to see it.
    Shown,
    /// The user has declined.
    Declined,
}

fn gather(typed: &ImportArguments, directories: &Directories) -> anyhow::Result<ImportSources> {
    let mut sources = ImportSources::default();
    let mut app_files: Vec<AppFile> = Vec::new();
    let mut apps: Vec<&'static App> = Vec::new();
    if typed.all {
        apps.extend(&APPS);
    }
    for word in &typed.from {
        if App::named(word).is_none() && Path::new(word).is_file() {
            gather_file(Path::new(word), directories, &mut sources, &mut app_files)?;
        } else {
            let unknown = |UsageError(why)| UsageError(format!("no such file, and {why}"));
            apps.push(app(word).map_err(unknown)?);
        }
    }
    let elsewhere = apps.iter().flat_map(|app| app.servers_of_other_projects(directories));
    sources.elsewhere.extend(elsewhere);
    for app_file in apps.into_iter().flat_map(|app| app.files(directories)) {
        // Anyone may have written a project's file, so that its commands are not imported without
        // asking.
        if app_file.scope == FileScope::Project && typed.consent.yes && !typed.project {
            sources.of_project.extend(app_file.path.is_file().then_some(app_file.path));
        } else {
            app_files.push(app_file);
        }
    }
    let backups = settings::backups()?;
    for app_file in &mut app_files {
        app_file.load_dormouse_entry(&backups);
    }
    let (found, unreadable) = find_servers(&app_files, directories);
    sources.found.extend(found);
    sources.unreadable.extend(unreadable);
    Ok(sources)
}

/// Reads a file that was named: the config of another proxy, or of an app.
fn gather_file(
    path: &Path,
    directories: &Directories,
    sources: &mut ImportSources,
    app_files: &mut Vec<AppFile>,
) -> anyhow::Result<()> {
    let text =
        crate::base::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Some(Converted { system, servers, settings, warnings }) = config::convert(&text, path)?
    else {
        app_files.extend(AppFile::at_path(path, directories));
        return Ok(());
    };
    for warning in warnings {
        errln!("{}", visible(&warning.to_string()));
    }
    sources.found.extend(servers_of_config(system, path, servers));
    sources.settings.extend(settings);
    Ok(())
}

/// One file of an app with servers, in `--json`.
#[derive(Serialize)]
struct Importable {
    app: &'static str,
    path: PathBuf,
    /// `user`, `local` (the user's, in this project alone) or `project`.
    scope: &'static str,
    servers: Vec<String>,
    /// The reason that the file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Returns the files of apps on this machine that have servers.
fn importable(directories: &Directories) -> Vec<Importable> {
    let app_files = APPS.iter().flat_map(|app| app.files(directories));
    let all = app_files.filter(|app_file| app_file.path.is_file()).map(|app_file| {
        let (found, unreadable) = find_servers(std::slice::from_ref(&app_file), directories);
        Importable {
            app: app_file.app.id,
            scope: match app_file.scope {
                FileScope::User => "user",
                FileScope::Local => "local",
                FileScope::Project => "project",
            },
            path: app_file.path,
            servers: found.into_iter().map(|candidate| candidate.name).collect(),
            error: unreadable.into_iter().next().map(|(_, why)| why),
        }
    });
    all.filter(|file| !file.servers.is_empty() || file.error.is_some()).collect()
}

/// Lists what can be imported on this machine.
fn list_apps(directories: &Directories, is_json: bool) -> anyhow::Result<ExitCode> {
    let files = importable(directories);
    if is_json {
        outln!("{}", to_json(&files)?);
        return Ok(ExitCode::SUCCESS);
    }
    if files.is_empty() {
        errln!("no app on this machine has servers; to import a file: dormouse import FILE");
        return Ok(ExitCode::FAILURE);
    }
    let mut shown = table(&["APP", "SERVERS", "FILE"]);
    for Importable { app, path, scope, servers, error } in files {
        let count = error.map_or_else(|| servers.len().to_string(), |_| "?".to_owned());
        let here = if scope == "local" { " (for this project)" } else { "" };
        shown.add_row([app.to_owned(), count, home_path(&path, directories) + here]);
    }
    numbers(&mut shown, &[1]);
    outln!("{}", rendered(shown));
    for elsewhere in APPS.iter().flat_map(|app| app.servers_of_other_projects(directories)) {
        outln!("{}", how_to_get(&elsewhere));
    }
    outln!("\nnext: dormouse import APP, or dormouse import --all");
    Ok(ExitCode::SUCCESS)
}

fn how_to_get(elsewhere: &OtherProjectServers) -> String {
    let id = elsewhere.app.id;
    visible(&format!("{elsewhere}; to import them, run dormouse import {id} there"))
}

pub(super) fn home_path(path: &Path, directories: &Directories) -> String {
    match path.strip_prefix(&directories.home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

/// The secrets in plain text that would be written.
struct Secrets {
    /// Secrets of each server of the plan.
    of: Vec<Vec<PlaintextSecret>>,
    all: Vec<PlaintextSecret>,
}

impl Secrets {
    fn of(plan: &ImportPlan) -> Self {
        let of: Vec<Vec<PlaintextSecret>> = plan
            .servers
            .iter()
            .map(|planned| find_secrets(&planned.name, &planned.entry))
            .collect();
        let written = plan.servers.iter().zip(&of).filter(|(it, _)| it.outcome.is_written());
        let all = written.flat_map(|(_, secrets)| secrets).cloned().collect();
        Self { of, all }
    }

    /// Returns whether they are moved to `.env`.
    fn are_moved(&self, typed: &ImportArguments, may_ask: bool) -> anyhow::Result<bool> {
        if self.all.is_empty() || typed.move_secrets || !may_ask {
            return Ok(typed.move_secrets);
        }
        let secrets = counted(self.all.len(), "secret");
        ask::confirm(&format!("Move {secrets} to the .env file next to the config?"))
    }
}

/// Everything that is to be written.
struct Import<'a> {
    options: &'a Options,
    plan: ImportPlan,
    settings: Map<String, Value>,
    secrets: Secrets,
    is_moving: bool,
    profiles: AppProfiles,
}

impl Import<'_> {
    fn write(&self, file: &ConfigFile, typed: &ImportArguments) -> anyhow::Result<ImportOutcome> {
        let is_news = self.plan.servers.iter().any(|planned| planned.outcome.is_written());
        if !is_news && self.profiles.is_empty() {
            return Ok(ImportOutcome::NothingNew);
        }
        let (after, ()) = self.edit(file)?;
        if !typed.json {
            let before = if file.is_written() { file.text() } else { "".into() };
            ask::print_difference(&file.path, &before, &after.text(), &self.secrets.all);
        }
        let question = format!("Write {}?", file.path.display());
        let consent = typed.consent;
        let answer = match consent {
            // A program that reads JSON cannot be asked.
            Consent { yes: false, dry_run: false } if typed.json => Answer::NoTerminal,
            consent => ask::agree(consent, &question)?,
        };
        match answer {
            Answer::Yes => {
                rewrite(file.clone(), false, |file| self.edit(file))?;
                if !typed.json {
                    tell_running(file)?;
                }
                Ok(ImportOutcome::Written)
            }
            Answer::Dry => Ok(ImportOutcome::Shown),
            Answer::No => Ok(ImportOutcome::Declined),
            Answer::NoTerminal => {
                errln!("nothing written: there is no terminal to ask on; add --yes");
                Ok(ImportOutcome::Declined)
            }
        }
    }

    /// Returns the config with the imported servers and profiles.
    fn edit(&self, file: &ConfigFile) -> anyhow::Result<(ConfigFile, ())> {
        let mut after = file.clone();
        let entries = self.plan.servers.iter().map(|planned| json!(planned.entry).to_string());
        let others: String = entries.collect();
        if !file.is_written() {
            for (key, value) in &self.settings {
                after = after.with(&ConfigEdit::Set { key: key.clone(), value: value.clone() })?;
            }
        }
        for (planned, secrets) in self.plan.servers.iter().zip(&self.secrets.of) {
            if !planned.outcome.is_written() {
                continue;
            }
            let entry = if self.is_moving {
                let (kept, entry) =
                    move_secrets(&after, &planned.name, &planned.entry, secrets, &others);
                after = kept;
                entry
            } else {
                planned.entry.clone()
            };
            let name = planned.name.clone();
            after = after.with(&ConfigEdit::Add { name, entry, replace: true })?;
        }
        let after = self.profiles.add_to(after)?;
        Ok((valid(self.options, after)?, ()))
    }
}
