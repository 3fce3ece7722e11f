//! `dormouse call`: call a tool as an agent would, and print the result.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;

use super::{
    UsageError,
    arguments::TimeLimit,
    one_call::{OneCall, print, read_input},
    probe, settings,
    shared_flags::Options,
};
use crate::{
    base::one_line,
    config::{Isolation, ResultLimit, Startup, Surface},
    surface::through_use_tool,
    wire::Raw,
};

pub(super) struct WantedCall {
    pub(super) server: String,
    pub(super) tool: String,
    /// JSON, or `-` for standard input.
    pub(super) input: Option<String>,
    /// Print the result of the server unchanged.
    pub(super) json: bool,
    /// Maximum time for the server to start.
    pub(super) timeout: Duration,
}

pub(super) fn run(options: &Options, wanted: &WantedCall) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    if !wanted.json {
        settings::say_which(&file);
    }
    let mut config = settings::parse(&file, options)?;
    let mut server = settings::server(&config, &wanted.server)?.clone();
    if !server.enabled {
        let command = config.settings.launch.commands.enable(&server.name);
        bail!("server {:?} is disabled in the config: run `{command}`", server.name);
    }
    let input = read_input(wanted.input.as_deref())?;
    if !input.is_object() {
        return Err(UsageError("the tool's input must be a JSON object".to_owned()).into());
    }
    server.startup = Startup::Lazy;
    server.settings.timeouts.load =
        probe::within(server.settings.timeouts.load, TimeLimit { timeout: wanted.timeout });
    let is_shared = server.shared_identity().is_some();
    server.connecting.isolation = Isolation::Shared;
    server.settings.max_result_bytes = ResultLimit::Off;
    config.settings.set_surface(Surface::Discover);
    config.settings.loading.remember_loads = false;
    config.servers = vec![server];
    let name = format!("{}/{}", wanted.server, wanted.tool);
    let params = through_use_tool(&name, &Raw::encode(&input));
    let answer = OneCall { file: &file, options, config, is_shared, params }.make()?;
    // The error for hosts counts the attempts that are left, but this process makes no other.
    if let Some(cause) = answer.load_failure {
        bail!("cannot load the server: {}", one_line(&cause));
    }
    Ok(print(&answer.outcome, wanted.json))
}
