//! `dormouse connect` without an app: the AI tools on this machine, and whether they use dormouse.

use std::{path::PathBuf, process::ExitCode};

use serde::Serialize;

use crate::{
    apps::{APPS, App, AppFile, Directories, FileScope, FoundEntry, find_servers},
    cli::{
        output::json,
        settings,
        table::{numbers, rendered, table},
    },
};

/// The file of one app that dormouse would be added to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AppState {
    app: &'static str,
    path: PathBuf,
    /// `connected`, `not connected`, `no file`, or `unreadable`.
    state: &'static str,
    /// The servers in the file next to dormouse.
    servers: Vec<String>,
    /// The reason that the file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl AppState {
    fn of(app: &'static App, mut app_file: AppFile, directories: &Directories) -> Self {
        if let Ok(backups) = settings::backups() {
            app_file.load_dormouse_entry(&backups);
        }
        let (found, unreadable) = find_servers(std::slice::from_ref(&app_file), directories);
        let is_ours = |entry: &FoundEntry| matches!(entry, FoundEntry::Dormouse);
        let state = match (app_file.path.is_file(), unreadable.is_empty()) {
            (false, _) => "no file",
            (true, false) => "unreadable",
            _ if found.iter().any(|candidate| is_ours(&candidate.entry)) => "connected",
            _ => "not connected",
        };
        let others = found.into_iter().filter(|candidate| !is_ours(&candidate.entry));
        let servers = others.map(|candidate| candidate.name).collect();
        let error = unreadable.into_iter().next().map(|(_, why)| why);
        Self { app: app.id, path: app_file.path, state, servers, error }
    }
}

pub(super) fn list(is_json: bool) -> anyhow::Result<ExitCode> {
    let directories = settings::directories()?;
    let own_file = |app: &'static App| {
        let of_user = app.writable_file(FileScope::User, &directories);
        of_user.or_else(|| app.writable_file(FileScope::Project, &directories))
    };
    let state = |app| Some(AppState::of(app, own_file(app)?, &directories));
    let states: Vec<AppState> = APPS.iter().filter_map(state).collect();
    if is_json {
        outln!("{}", json(&states)?);
        return Ok(ExitCode::SUCCESS);
    }
    let (there, absent): (Vec<AppState>, Vec<AppState>) =
        states.into_iter().partition(|state| state.state != "no file");
    let mut shown = table(&["APP", "DORMOUSE", "OTHER SERVERS", "FILE"]);
    for AppState { app, path, state, servers, .. } in &there {
        let path = crate::cli::import::home_path(path, &directories);
        shown.add_row([(*app).to_owned(), (*state).to_owned(), servers.len().to_string(), path]);
    }
    if !there.is_empty() {
        numbers(&mut shown, &[2]);
        outln!("{}", rendered(shown));
    }
    let absent: Vec<&str> = absent.iter().map(|state| state.app).collect();
    if !absent.is_empty() {
        outln!("not found here: {}", absent.join(", "));
    }
    outln!("\nnext: dormouse connect APP, or dormouse connect --all");
    Ok(ExitCode::SUCCESS)
}
