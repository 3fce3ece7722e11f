//! `dormouse connect` without a host: the AI tools on this machine, and whether dormouse is in their configs.

use std::{path::PathBuf, process::ExitCode};

use serde::Serialize;

use crate::{
    cli::{
        json, settings,
        table::{numbers, rendered, table},
    },
    hosts::{Directories, Fate, HOSTS, Host, Scope, Spot, candidates},
};

/// The file of one host that dormouse would be put into.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HostState {
    host: &'static str,
    path: PathBuf,
    /// `connected`, `not connected`, `no file`, or `unreadable`.
    state: &'static str,
    /// The servers that stand in it next to dormouse.
    servers: Vec<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl HostState {
    fn of(host: &'static Host, mut spot: Spot, directories: &Directories) -> Self {
        if let Ok(backups) = settings::backups() {
            spot.remember(&backups);
        }
        let (found, unreadable) = candidates(std::slice::from_ref(&spot), directories);
        let is_ours = |fate: &Fate| matches!(fate, Fate::Ourselves);
        let state = match (spot.path.is_file(), unreadable.is_empty()) {
            (false, _) => "no file",
            (true, false) => "unreadable",
            _ if found.iter().any(|candidate| is_ours(&candidate.fate)) => "connected",
            _ => "not connected",
        };
        let others = found.into_iter().filter(|candidate| !is_ours(&candidate.fate));
        let servers = others.map(|candidate| candidate.name).collect();
        let error = unreadable.into_iter().next().map(|(_, why)| why);
        Self { host: host.id, path: spot.path, state, servers, error }
    }
}

pub(super) fn list(is_json: bool) -> anyhow::Result<ExitCode> {
    let directories = settings::directories()?;
    let own_spot = |host: &'static Host| {
        let of_user = host.own_spot(Scope::User, &directories);
        of_user.or_else(|| host.own_spot(Scope::Project, &directories))
    };
    let state = |host| Some(HostState::of(host, own_spot(host)?, &directories));
    let states: Vec<HostState> = HOSTS.iter().filter_map(state).collect();
    if is_json {
        outln!("{}", json(&states)?);
        return Ok(ExitCode::SUCCESS);
    }
    let (there, absent): (Vec<HostState>, Vec<HostState>) =
        states.into_iter().partition(|state| state.state != "no file");
    let mut shown = table(&["HOST", "DORMOUSE", "OTHERS", "FILE"]);
    for HostState { host, path, state, servers, .. } in &there {
        let path = crate::cli::import::home_path(path, &directories);
        shown.add_row([(*host).to_owned(), (*state).to_owned(), servers.len().to_string(), path]);
    }
    if !there.is_empty() {
        numbers(&mut shown, &[2]);
        outln!("{}", rendered(shown));
    }
    let absent: Vec<&str> = absent.iter().map(|state| state.host).collect();
    if !absent.is_empty() {
        outln!("no file here: {}", absent.join(", "));
    }
    outln!("\nnext: dormouse connect HOST, or dormouse connect --all");
    Ok(ExitCode::SUCCESS)
}
