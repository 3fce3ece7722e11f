//! `dormouse trust`: allow a config found in the working directory to run its commands.

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;

use super::settings;
use crate::config::{self, Launch, Remote, Transport};

pub(super) fn run(path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let directory = std::env::current_dir().context("the working directory is gone")?;
    let file = config::find(path, &directory)?.read()?;
    let config = file.parse(&file.environment())?;
    file.trust(&settings::trust_store()?)?;
    anstream::println!("trusted {} as it is now; it may run:", file.path.display());
    for server in &config.servers {
        match &server.transport {
            Ok(Transport::Stdio(Launch { command, args, .. })) => {
                anstream::println!("  {}: {command} {}", server.name, args.join(" "));
            }
            // Without its query, which may hold a secret.
            Ok(Transport::Http(Remote { url, .. })) => anstream::println!(
                "  {}: (connect to) {}{}",
                server.name,
                url.origin().ascii_serialization(),
                url.path()
            ),
            Err(unavailable) => anstream::println!("  {}: nothing yet: {unavailable}", server.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}
