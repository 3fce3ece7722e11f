//! `dormouse trust`: allow a config found in the working directory to run its commands.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;

use super::settings;
use crate::config::{self, Environment};

pub(super) fn run(path: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let directory = std::env::current_dir().context("the working directory is gone")?;
    let path = match path {
        Some(path) => path,
        None => config::find(None, &directory)?.path,
    };
    let content =
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8(content.clone())
        .with_context(|| format!("{} is not UTF-8", path.display()))?;
    let environment = Environment::of_process().with_file_beside(&path)?;
    let config = config::parse(&text, &path, &environment)?;
    settings::trust_store()?.trust(&path, &content)?;
    anstream::println!("trusted {} as it is now; it may run:", path.display());
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
