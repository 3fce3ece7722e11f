//! `dormouse check`: validate the config and print every problem.

use std::process::ExitCode;

use super::{arguments::Options, settings};

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let found = settings::find(options)?;
    let config = settings::load(&found.path, options)?;
    anstream::println!("{}: ok, {} servers", found.path.display(), config.servers.len());
    for server in &config.servers {
        if let Err(unavailable) = &server.launch {
            anstream::println!("  {}: unavailable: {unavailable}", server.name);
        }
    }
    if let Err(untrusted) = settings::check_trust(&found) {
        anstream::println!("  {untrusted}");
    }
    Ok(ExitCode::SUCCESS)
}
