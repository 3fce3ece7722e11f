//! `dormouse load`, `sleep` and `reset`: operations on servers of a running dormouse.

use std::{collections::HashSet, process::ExitCode, time::Duration};

use anyhow::bail;
use reqwest::Method;
use serde::Deserialize;

use super::{
    UsageError,
    instances::{path_of_server, send_all},
    settings,
    shared_flags::Options,
    status::state,
};
use crate::{
    base::visible,
    config::{Config, ServerConfig},
    control::ServerReport,
};

/// Time for a load in addition to the server's own timeout.
pub(super) const LOAD_MARGIN: Duration = Duration::from_secs(10);

/// An operation on servers.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ServerOperation {
    Load,
    Sleep,
    Reset,
}

impl ServerOperation {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Sleep => "sleep",
            Self::Reset => "reset",
        }
    }
}

pub(super) fn run(
    options: &Options,
    servers: &[String],
    operation: ServerOperation,
) -> anyhow::Result<ExitCode> {
    if cfg!(not(unix)) {
        bail!("not supported on Windows yet: commands cannot reach a running dormouse");
    }
    let file = settings::find(options)?;
    settings::say_which(&file);
    let config = settings::parse(&file, options)?;
    let servers: Result<Vec<_>, UsageError> =
        servers.iter().map(|name| Ok((name, server_of(&config, name, operation)?))).collect();
    let mut code = ExitCode::SUCCESS;
    for (name, server) in servers? {
        let timeout = server.settings.timeouts.load + LOAD_MARGIN;
        let path = path_of_server(name, operation.path());
        let answers = send_all::<ServerReport>(&file, &Method::POST, &path, timeout)?;
        if answers.is_empty() {
            bail!(
                "no running dormouse uses {}: start one with `dormouse serve`",
                file.path.display()
            );
        }
        // Hosts for which the outcome is the same are reported together.
        let mut reported = HashSet::new();
        for answer in answers {
            let outcome = answer.map(|server| state(&server));
            if !reported.insert(outcome.clone()) {
                continue;
            }
            match outcome {
                Ok(state) => outln!("{}: {state}", visible(name)),
                Err(why) => {
                    errln!("{}: {}", visible(name), visible(&why));
                    code = ExitCode::FAILURE;
                }
            }
        }
    }
    Ok(code)
}

/// Returns the server of this name, or the one whose toolset has it, which can be loaded.
fn server_of<'a>(
    config: &'a Config,
    name: &str,
    operation: ServerOperation,
) -> Result<&'a ServerConfig, UsageError> {
    let has_toolset = |server: &&ServerConfig| {
        let mut toolsets = server.offer.extent.toolsets().iter();
        toolsets.any(|toolset| toolset.full_name(&server.name) == name)
    };
    let is_load = matches!(operation, ServerOperation::Load);
    match config.servers.iter().filter(|_| is_load).find(has_toolset) {
        Some(server) => Ok(server),
        None => settings::server(config, name),
    }
}
