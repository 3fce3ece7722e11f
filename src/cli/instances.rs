//! The processes that serve hosts with a config: what they say, and what they are told.

use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;

use super::runtime;
#[cfg(unix)]
use super::settings;
use crate::{
    config::{ConfigFile, visible},
    control::{AppliedChange, StatusReport},
};

/// A look takes no longer.
const BRIEF: Duration = Duration::from_secs(5);

/// What the processes say that serve hosts with this config.
pub(super) fn running(file: &ConfigFile) -> anyhow::Result<Vec<StatusReport>> {
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
    let answers = send_all::<AppliedChange>(file, &Method::POST, "/reload", BRIEF)?;
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
pub(super) fn send_all<T: DeserializeOwned>(
    file: &ConfigFile,
    method: &Method,
    path: &str,
    patience: Duration,
) -> anyhow::Result<Vec<Result<T, String>>> {
    let instances = settings::control_place(file).map(|place| place.running()).unwrap_or_default();
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
pub(super) fn send_all<T: DeserializeOwned>(
    _: &ConfigFile,
    _: &Method,
    _: &str,
    _: Duration,
) -> anyhow::Result<Vec<Result<T, String>>> {
    Ok(Vec::new())
}
