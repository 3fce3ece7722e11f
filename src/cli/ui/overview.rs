//! The state of all servers of a config, over all processes that serve it.

use std::{collections::HashMap, path::PathBuf};

use serde::Serialize;

use super::page_logins::LoginProgress;
use crate::{
    config::{CallLogging, Config, Isolation, ServerConfig, Transport},
    control::{ServerReport, StatusReport},
    upstream::Phase,
};

/// The state that the page shows, without the lists of tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    version: &'static str,
    config: PathBuf,
    call_log: CallLogging,
    /// True if users sign in with a form.
    has_sign_in: bool,
    processes: Vec<ProcessOverview>,
    servers: Vec<ServerOverview>,
}

/// A process that serves the config.
#[derive(Serialize)]
struct ProcessOverview {
    pid: u32,
    version: String,
    hosts: usize,
    clients: Vec<String>,
}

/// The state of a server, and the parts of its config that decide which actions there are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerOverview {
    #[serde(flatten)]
    report: ServerReport,
    description: String,
    /// `stdio` or `http`.
    transport: &'static str,
    enabled: bool,
    isolation: Isolation,
    can_share: bool,
    can_log_in: bool,
    login_progress: Option<LoginProgress>,
}

impl Overview {
    /// `processes`: the reports of the processes that run. `servers`: one report for each server.
    /// `logins`: the logins that have been begun; `None` if none can be begun on this page.
    pub(super) fn new(
        config: &Config,
        path: PathBuf,
        processes: &[StatusReport],
        servers: Vec<ServerReport>,
        logins: Option<HashMap<String, LoginProgress>>,
    ) -> Self {
        let mut reports: HashMap<String, ServerReport> =
            servers.into_iter().map(|report| (report.name.clone(), report)).collect();
        let has_sign_in = logins.is_none();
        let mut logins = logins.unwrap_or_default();
        let of_server = |server: &ServerConfig| {
            let report = reports.remove(&server.name)?;
            // The lists of tools are large, and the page asks for them where it shows them.
            let report = ServerReport { inventory: None, noise: None, ..report };
            let mut overview = ServerOverview::new(server, report);
            overview.can_log_in &= !has_sign_in;
            overview.login_progress = logins.remove(&server.name);
            Some(overview)
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            config: path,
            call_log: config.settings.telemetry.call_log,
            has_sign_in,
            processes: processes.iter().filter_map(ProcessOverview::of).collect(),
            servers: config.servers.iter().filter_map(of_server).collect(),
        }
    }
}

impl ProcessOverview {
    fn of(report: &StatusReport) -> Option<Self> {
        Some(Self {
            pid: report.pid?,
            version: report.version.clone(),
            hosts: report.hosts,
            clients: report.clients.clone(),
        })
    }
}

impl ServerOverview {
    fn new(config: &ServerConfig, report: ServerReport) -> Self {
        let is_remote = matches!(config.transport, Ok(Transport::Http(_)));
        let wants_login = report.state == Some(Phase::AwaitingLogin) || report.login.is_some();
        Self {
            report,
            description: config.description.clone().unwrap_or_default(),
            transport: if is_remote { "http" } else { "stdio" },
            enabled: config.enabled,
            isolation: config.connecting.isolation,
            can_share: !is_remote,
            can_log_in: is_remote && wants_login,
            login_progress: None,
        }
    }
}
