//! `dormouse load`, `sleep` and `reset`: what is done to servers of the dormouse that runs; and what the others tell it.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use reqwest::Method;
use serde::de::DeserializeOwned;

use super::{arguments::Options, runtime, settings, status::state};
use crate::{
    config::{ConfigFile, visible},
    control::{Changed, Report, ServerReport},
};

/// A look takes no longer.
const BRIEF: Duration = Duration::from_secs(5);
/// A server may be loaded for it.
const LONG: Duration = Duration::from_mins(3);

/// What can be done to servers.
#[derive(Clone, Copy)]
pub(super) enum Deed {
    Load,
    Sleep,
    Reset,
}

impl Deed {
    fn path(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Sleep => "sleep",
            Self::Reset => "reset",
        }
    }
}

pub(super) fn run(options: &Options, servers: &[String], deed: Deed) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    let mut code = ExitCode::SUCCESS;
    for name in servers {
        settings::server(&config, name)?;
        let encoded =
            percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
        let path = format!("/servers/{encoded}/{}", deed.path());
        let answers = send_all::<ServerReport>(&file, &Method::POST, &path, LONG)?;
        if answers.is_empty() {
            bail!("no dormouse runs with {}", file.path.display());
        }
        for answer in answers {
            match answer {
                Ok(server) => outln!("{}: {}", visible(name), state(&server)),
                Err(why) => {
                    errln!("{}: {}", visible(name), visible(&why));
                    code = ExitCode::FAILURE;
                }
            }
        }
    }
    Ok(code)
}

/// What the processes say that serve hosts with this config.
pub(super) fn running(file: &ConfigFile) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    for answer in send_all(file, &Method::GET, "/status", BRIEF)? {
        match answer {
            Ok(report) => reports.push(report),
            Err(why) => errln!("dormouse: a process does not answer: {}", visible(&why)),
        }
    }
    Ok(reports)
}

/// Has those that run take over what the config says now, and says what came of it.
pub(super) fn tell_running(file: &ConfigFile) -> anyhow::Result<()> {
    let answers = send_all::<Changed>(file, &Method::POST, "/reload", BRIEF)?;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    if !taken.is_empty() {
        outln!("in force in the dormouse that runs ({})", taken.len());
    }
    for why in refused.into_iter().filter_map(Result::err) {
        errln!("a dormouse that runs has not taken it over: {}", visible(&why));
    }
    Ok(())
}

/// Asks or tells every process that serves hosts with this config; why those that refuse do.
#[cfg(unix)]
fn send_all<T: DeserializeOwned>(
    file: &ConfigFile,
    method: &Method,
    path: &str,
    patience: Duration,
) -> anyhow::Result<Vec<Result<T, String>>> {
    let instances =
        settings::control_place(file).map(|place| place.instances()).unwrap_or_default();
    if instances.is_empty() {
        return Ok(Vec::new());
    }
    runtime()?.block_on(async {
        let mut answers = Vec::new();
        for instance in instances {
            let answer = instance.send(method.clone(), path, patience).await;
            answers.push(answer.map_err(|error| format!("{:#}", anyhow::Error::from(error))));
        }
        Ok(answers)
    })
}

#[cfg(not(unix))]
fn send_all<T: DeserializeOwned>(
    _: &ConfigFile,
    _: &Method,
    _: &str,
    _: Duration,
) -> anyhow::Result<Vec<Result<T, String>>> {
    Ok(Vec::new())
}
