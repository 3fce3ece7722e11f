//! The state of all servers of a config, over all processes that serve it.

use std::{collections::HashMap, path::PathBuf};

use serde::Serialize;

use super::page_logins::LoginProgress;
use crate::{
    auth::LoginSummary,
    catalog::ToolCounts,
    config::{CallLogging, Config, Isolation, ServerConfig, Transport},
    control::{LastWake, ServerReport, StatusReport},
    upstream::Phase,
};

/// The state that the page shows, without the lists of tools.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    version: &'static str,
    config: PathBuf,
    call_log: CallLogging,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerOverview {
    name: String,
    description: String,
    transport: &'static str,
    enabled: bool,
    state: Option<Phase>,
    strikes: u8,
    instances: usize,
    memory: Option<u64>,
    calls: u64,
    failed_calls: u64,
    wakes: u64,
    last_wake: Option<LastWake>,
    last_error: Option<String>,
    retry_in: Option<u64>,
    tools: Option<ToolCounts>,
    tokens: Option<usize>,
    isolation: Isolation,
    can_share: bool,
    can_log_in: bool,
    login: Option<LoginSummary>,
    login_progress: Option<LoginProgress>,
}

impl Overview {
    /// `processes`: the reports of the processes that run. `servers`: one report for each server.
    /// `logins`: those that have been begun; `None` if none can be begun on this page.
    pub(super) fn new(
        config: &Config,
        path: PathBuf,
        processes: &[StatusReport],
        servers: &[ServerReport],
        logins: Option<HashMap<String, LoginProgress>>,
    ) -> Self {
        let offers_logins = logins.is_some();
        let mut logins = logins.unwrap_or_default();
        let of_server = |server: &ServerConfig| {
            let report = servers.iter().find(|report| report.name == server.name)?;
            let mut overview = ServerOverview::new(server, report.clone());
            overview.can_log_in &= offers_logins;
            overview.login_progress = logins.remove(&server.name);
            Some(overview)
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            config: path,
            call_log: config.settings.telemetry.call_log,
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
            name: report.name,
            description: config.description.clone().unwrap_or_default(),
            transport: if is_remote { "http" } else { "stdio" },
            enabled: config.enabled,
            state: report.state,
            strikes: report.strikes,
            instances: report.awake,
            memory: report.memory,
            calls: report.tally.calls,
            failed_calls: report.tally.failed_calls,
            wakes: report.tally.wakes,
            last_wake: report.last_wake,
            last_error: report.last_error,
            retry_in: report.retry_in,
            tools: report.tool_counts,
            tokens: report.tokens,
            isolation: config.connecting.isolation,
            can_share: !is_remote,
            can_log_in: is_remote && wants_login,
            login: report.login,
            login_progress: None,
        }
    }
}
