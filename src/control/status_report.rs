//! The state of a running dormouse and its servers. Durations are in milliseconds; points in time
//! are in seconds since 1970.

use std::{
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    auth::{Auth, LoginSummary},
    catalog::{Cache, Inventory, ToolCounts},
    config::ServerConfig,
    proxy::{Fleet, Overview},
    telemetry::{FleetTelemetry, SavingsReport, ServerTally, client_name},
    upstream::{GroupMemory, Phase},
};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusReport {
    /// `null` if no process serves the config; the report is then made from files of earlier runs.
    pub pid: Option<u32>,
    pub version: String,
    pub config: PathBuf,
    /// Hosts that are connected.
    pub hosts: usize,
    /// The names and versions that these hosts give themselves.
    #[serde(default)]
    pub clients: Vec<String>,
    /// The definitions that models did not have to read since the start; `null` if no process
    /// serves the config.
    #[serde(default)]
    pub savings: Option<SavingsReport>,
    pub servers: Vec<ServerReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerReport {
    pub name: String,
    /// `null` if no dormouse serves the config.
    pub state: Option<Phase>,
    /// The start policy: `eager`, `lazy` or `hybrid`.
    pub startup: String,
    /// Consecutive failed loads.
    pub strikes: u8,
    /// Instances that are connected.
    pub awake: usize,
    /// Bytes of memory that its processes have; `null` if there are none, or the system does not
    /// tell.
    #[serde(default)]
    pub memory: Option<u64>,
    /// The numbers since the start.
    #[serde(default, flatten)]
    pub tally: ServerTally,
    pub last_wake: Option<LastWake>,
    pub last_error: Option<String>,
    /// The last output of the server that was not a message.
    pub noise: Option<String>,
    /// Milliseconds until the next attempt to connect.
    pub retry_in: Option<u64>,
    /// `null` if the catalog of the server is not known, and in brief reports for a server that was
    /// not connected.
    #[serde(default)]
    pub tool_counts: Option<ToolCounts>,
    /// `null` if the catalog of the server is not known, and in brief reports.
    pub inventory: Option<Inventory>,
    /// An estimate of the tokens that the definitions of its shown tools cost.
    pub tokens: Option<usize>,
    /// `null` if there is no login.
    pub login: Option<LoginSummary>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastWake {
    /// Seconds since 1970.
    pub at: u64,
    /// Milliseconds.
    pub took: u64,
}

impl LastWake {
    fn new(at: SystemTime, took: Duration) -> Self {
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { at, took: milliseconds(took) }
    }
}

impl StatusReport {
    /// Reports on this process. Reads known catalogs from disk.
    pub(crate) fn of(fleet: &Fleet, telemetry: &FleetTelemetry, config: PathBuf) -> Self {
        Self::with(fleet.operator().overview(), fleet, telemetry, config)
    }

    /// Reports on this process without the lists of tools, from memory alone.
    pub(crate) fn brief(fleet: &Fleet, telemetry: &FleetTelemetry, config: PathBuf) -> Self {
        let overview = fleet.operator().overview_in_memory();
        let mut report = Self::with(overview, fleet, telemetry, config);
        report.servers.iter_mut().for_each(|server| server.inventory = None);
        report
    }

    fn with(
        overview: Vec<Overview>,
        fleet: &Fleet,
        telemetry: &FleetTelemetry,
        config: PathBuf,
    ) -> Self {
        let clients = fleet.operator().clients();
        let memory = GroupMemory::read();
        Self {
            pid: Some(std::process::id()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config,
            hosts: fleet.operator().host_count(),
            clients: clients.iter().filter_map(|client| client_name(client)).collect(),
            savings: Some(telemetry.savings()),
            servers: overview
                .into_iter()
                .map(|overview| ServerReport::of_running(overview, telemetry, &memory))
                .collect(),
        }
    }

    /// Reports on servers that no process serves now.
    pub(crate) fn at_rest(
        servers: &[ServerConfig],
        cache: Option<&Cache>,
        auth: &Auth,
        config: PathBuf,
    ) -> Self {
        let at_rest = |server| ServerReport::at_rest(server, cache, auth);
        Self {
            pid: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config,
            hosts: 0,
            clients: Vec::new(),
            savings: None,
            servers: servers.iter().map(at_rest).collect(),
        }
    }
}

impl ServerReport {
    fn of_running(overview: Overview, telemetry: &FleetTelemetry, memory: &GroupMemory) -> Self {
        let Overview { config, status, awake, process_groups, inventory, login } = overview;
        Self {
            memory: memory.of(&process_groups),
            tally: telemetry.tally(&config.name),
            login,
            name: config.name.clone(),
            state: Some(status.phase),
            startup: config.startup.name().to_owned(),
            strikes: status.strikes,
            awake,
            last_wake: status.last_wake.map(|(at, timing)| LastWake::new(at, timing.total())),
            last_error: status.last_error,
            noise: status.noise,
            retry_in: status
                .retry_at
                .map(|at| milliseconds(at.saturating_duration_since(Instant::now()))),
            tokens: inventory.as_ref().map(Inventory::tokens),
            tool_counts: inventory.as_ref().map(Inventory::counts),
            inventory,
        }
    }

    fn at_rest(config: &ServerConfig, cache: Option<&Cache>, auth: &Auth) -> Self {
        let last = cache.and_then(|cache| cache.last(config));
        let last_wake = last
            .as_ref()
            .map(|(record, _)| LastWake::new(record.learned, record.catalog.discovery.took));
        let inventory = last.map(|(_, inventory)| inventory);
        Self {
            login: auth.summary(config),
            name: config.name.clone(),
            state: (!config.enabled).then_some(Phase::Disabled),
            startup: config.startup.name().to_owned(),
            strikes: 0,
            awake: 0,
            memory: None,
            tally: ServerTally::default(),
            last_wake,
            last_error: config.transport.as_ref().err().map(ToString::to_string),
            noise: None,
            retry_in: None,
            tokens: inventory.as_ref().map(Inventory::tokens),
            tool_counts: inventory.as_ref().map(Inventory::counts),
            inventory,
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
