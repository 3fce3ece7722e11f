//! `dormouse check`: validate the config and print every problem.

use std::process::ExitCode;

use super::{arguments::Options, settings};
use crate::config::visible;

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    outln!("{}: ok, {} servers", file.path.display(), config.servers.len());
    for server in &config.servers {
        if let Err(unavailable) = &server.transport {
            outln!("  {}: unavailable: {}", server.name, visible(&unavailable.to_string()));
        }
    }
    if let Err(untrusted) = file.check_trust(&settings::trust_store()?) {
        outln!("  {untrusted}");
    }
    Ok(ExitCode::SUCCESS)
}
