//! `dormouse check`: validate the config and print every problem.

use std::{path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::{lineage, settings, shared_flags::Options, usage_error::USAGE_EXIT_CODE};
use crate::{
    base::{counted, visible},
    config::{
        ConfigError, ConfigFile, Dialect, LaunchContext, ParsedConfig, Problem, ServerConfig,
    },
};

pub(super) fn run(options: &Options, is_json: bool) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let parsed = match settings::read(&file, options, &LaunchContext::of_process()) {
        Err(ConfigError::Invalid(problems)) if is_json => {
            let problems = problems.iter().map(ReportedProblem::from).collect();
            outln!("{}", super::output::json(&CheckReport { problems, ..CheckReport::of(&file) })?);
            return Ok(ExitCode::from(USAGE_EXIT_CODE));
        }
        parsed => parsed?,
    };
    let report = CheckReport::of_config(&file, &parsed)?;
    if is_json {
        outln!("{}", super::output::json(&report)?);
    } else {
        report.print();
    }
    Ok(ExitCode::SUCCESS)
}

/// The report of `--json`.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport {
    config: PathBuf,
    #[serde(rename = "ok")]
    is_ok: bool,
    /// The other system that the config belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<&'static str>,
    servers: usize,
    problems: Vec<ReportedProblem>,
    unavailable: Vec<UnavailableServer>,
    warnings: Vec<String>,
    /// The reason that the config's commands may not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted: Option<String>,
}

/// A problem and its place.
#[derive(Serialize)]
struct ReportedProblem {
    line: usize,
    column: usize,
    key: String,
    message: String,
}

impl From<&Problem> for ReportedProblem {
    fn from(problem: &Problem) -> Self {
        let Problem { line, column, key_path, message, .. } = problem.clone();
        Self { line, column, key: key_path, message }
    }
}

/// A server that cannot be used as it is configured.
#[derive(Serialize)]
struct UnavailableServer {
    server: String,
    why: String,
}

impl CheckReport {
    fn of(file: &ConfigFile) -> Self {
        Self { config: file.path.clone(), ..Self::default() }
    }

    fn of_config(file: &ConfigFile, parsed: &ParsedConfig) -> anyhow::Result<Self> {
        let unavailable = |server: &ServerConfig| {
            let why = server.transport.as_ref().err()?.to_string();
            Some(UnavailableServer { server: server.name.clone(), why })
        };
        let config = &parsed.config;
        let trusted = settings::trust_store_of_user();
        let itself = |server: &&ServerConfig| {
            lineage::is_dormouse_itself(server, &file.path, trusted.as_ref())
        };
        let itself = config.servers.iter().filter(itself);
        let warnings = itself.map(|server| lineage::refusal(&server.name));
        let warnings = warnings.chain(parsed.warnings.iter().map(ToString::to_string)).collect();
        Ok(Self {
            is_ok: true,
            dialect: file.dialect().map(Dialect::name),
            servers: config.servers.len(),
            unavailable: config.servers.iter().filter_map(unavailable).collect(),
            warnings,
            untrusted: file.check_trust(&settings::trust_store()?).err().map(|why| why.to_string()),
            ..Self::of(file)
        })
    }

    fn print(&self) {
        let of =
            self.dialect.map(|name| format!(", read as a config of {name}")).unwrap_or_default();
        outln!("{}: ok, {}{of}", self.config.display(), counted(self.servers, "server"));
        // Undefined variables are reported as warnings with their places.
        let has_warning = |it: &&UnavailableServer| {
            let below = format!("mcpServers.{}.", it.server);
            self.warnings.iter().any(|warning| warning.contains(&below))
        };
        for UnavailableServer { server, why } in
            self.unavailable.iter().filter(|it| !has_warning(it))
        {
            outln!("  {server}: unavailable: {}", visible(why));
        }
        for warning in &self.warnings {
            outln!("  warning: {}", visible(warning));
        }
        if let Some(untrusted) = &self.untrusted {
            outln!("  {untrusted}");
        }
    }
}
