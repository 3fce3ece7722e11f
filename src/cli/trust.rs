//! `dormouse trust`: allow a config found in the working directory to run its commands.

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;

use super::settings;
use crate::config;

pub(super) fn run(path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let directory = std::env::current_dir().context("the working directory is gone")?;
    let file = config::find(path, &directory)?.read()?;
    let config = file.parse(&file.environment())?;
    file.trust(&settings::trust_store()?)?;
    anstream::println!("trusted {} as it is now; it may run:", file.path.display());
    for server in &config.servers {
        match &server.launch {
            Ok(launch) => {
                anstream::println!(
                    "  {}: {} {}",
                    server.name,
                    launch.command,
                    launch.args.join(" ")
                );
            }
            Err(unavailable) => anstream::println!("  {}: nothing yet: {unavailable}", server.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}
