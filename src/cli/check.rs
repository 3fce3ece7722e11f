//! `dormouse check`: validate the config and print every problem.

use std::process::ExitCode;

use super::{arguments::Options, lineage, settings};
use crate::{
    config::{ServerConfig, visible},
    surface::counted,
};

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    let of = config.dialect.map(|dialect| format!(", as {} reads it", dialect.name()));
    let of = of.unwrap_or_default();
    outln!("{}: ok, {}{of}", file.path.display(), counted(config.servers.len(), "server"));
    for server in &config.servers {
        if let Err(unavailable) = &server.transport {
            outln!("  {}: unavailable: {}", server.name, visible(&unavailable.to_string()));
        }
    }
    let itself = |server: &&ServerConfig| lineage::is_dormouse_itself(server, &file.path);
    for server in config.servers.iter().filter(itself) {
        outln!("  warning: {}", visible(&lineage::refusal(&server.name)));
    }
    for warning in &config.warnings {
        outln!("  warning: {warning}");
    }
    if let Err(untrusted) = file.check_trust(&settings::trust_store()?) {
        outln!("  {untrusted}");
    }
    Ok(ExitCode::SUCCESS)
}
