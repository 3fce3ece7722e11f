//! `dormouse trust`: allow a config found in the working directory to run its commands.

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;

use super::settings;
use crate::config::{self, Launch, Remote, ServerConfig, Transport, visible};

pub(super) fn run(path: Option<&Path>) -> anyhow::Result<ExitCode> {
    let directory = std::env::current_dir().context("the working directory is gone")?;
    let file = config::find(path, &directory)?.read()?;
    let config = file.parse(&file.environment())?;
    file.trust(&settings::trust_store()?)?;
    outln!("trusted {} as it is now; it may run:", file.path.display());
    for server in &config.servers {
        outln!("  {}: {}", visible(&server.name), visible(&described(server)));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the server would run or reach, with all that decides what that does. Values of variables and headers may be
/// secret; their names tell where to look.
fn described(server: &ServerConfig) -> String {
    match &server.transport {
        Ok(Transport::Stdio(Launch { command, args, env, cwd, inherit_env })) => {
            let words = std::iter::once(command).chain(args).map(|word| quoted(word));
            let mut text = words.collect::<Vec<_>>().join(" ");
            if let Some(cwd) = cwd {
                text.push_str(&format!(", in {}", cwd.display()));
            }
            if !env.is_empty() {
                let names: Vec<&str> = env.keys().map(String::as_str).collect();
                text.push_str(&format!(", with {}", names.join(", ")));
            }
            if *inherit_env {
                text.push_str(", with the whole environment");
            }
            text
        }
        // Without its query, which may hold a secret.
        Ok(Transport::Http(Remote { url, headers, .. })) => {
            let mut text =
                format!("(connect to) {}{}", url.origin().ascii_serialization(), url.path());
            if !headers.is_empty() {
                let names: Vec<&str> = headers.keys().map(String::as_str).collect();
                text.push_str(&format!(", with {}", names.join(", ")));
            }
            text
        }
        Err(unavailable) => format!("nothing yet: {unavailable}"),
    }
}

/// A word of a command, in quotes where it would else be taken for several.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~${}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}
