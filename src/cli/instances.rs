//! The running dormouse processes that serve hosts with a config, and requests to them.

use std::time::Duration;

#[cfg(unix)]
use futures_util::future::join_all;
use reqwest::Method;
use serde::de::DeserializeOwned;

use super::runtime;
#[cfg(unix)]
use super::settings;
use crate::{
    base::visible,
    config::ConfigFile,
    control::{AppliedChange, StatusReport},
};

/// Maximum time for a process to answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the path of a part of a server's API.
pub(super) fn path_of_server(server: &str, part: &str) -> String {
    let encoded = percent_encoding::utf8_percent_encode(server, percent_encoding::NON_ALPHANUMERIC);
    format!("/servers/{encoded}/{part}")
}

/// Returns the last lines of a server's standard error, once for each process of the server.
pub(super) fn stderr_of(
    file: &ConfigFile,
    server: &str,
) -> anyhow::Result<Vec<Result<Vec<String>, String>>> {
    let path = path_of_server(server, "stderr");
    let mut answers: Vec<Result<Vec<String>, String>> = Vec::new();
    for answer in send_all(file, &Method::GET, &path, REQUEST_TIMEOUT)? {
        // Hosts that share a process have the same lines.
        if !answers.contains(&answer) {
            answers.push(answer);
        }
    }
    Ok(answers)
}

/// Returns the reports of the processes that serve hosts with this config.
pub(super) fn running(file: &ConfigFile) -> anyhow::Result<Vec<StatusReport>> {
    let mut reports = Vec::new();
    for answer in send_all(file, &Method::GET, "/status", REQUEST_TIMEOUT)? {
        match answer {
            Ok(report) => reports.push(report),
            Err(why) => errln!("dormouse: cannot read a status: {}", visible(&why)),
        }
    }
    Ok(reports)
}

/// Tells running processes to reload the config, and prints the outcome.
pub(super) fn tell_running(file: &ConfigFile) -> anyhow::Result<()> {
    let answers = send_all::<AppliedChange>(file, &Method::POST, "/reload", REQUEST_TIMEOUT)?;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    if !taken.is_empty() {
        outln!("running dormouse processes reloaded the config ({})", taken.len());
    }
    for why in refused.into_iter().filter_map(Result::err) {
        errln!("a running dormouse has not reloaded the config: {}", visible(&why));
    }
    Ok(())
}

/// Sends a request to every process that serves hosts with this config. Returns their answers, or
/// the reasons for refusals.
#[cfg(unix)]
pub(super) fn send_all<T: DeserializeOwned>(
    file: &ConfigFile,
    method: &Method,
    path: &str,
    patience: Duration,
) -> anyhow::Result<Vec<Result<T, String>>> {
    let running = settings::control_place(file).map(|place| place.running()).unwrap_or_default();
    if running.is_empty() {
        return Ok(Vec::new());
    }
    // All at once, so that one that hangs does not hold up the others.
    let answers = running.into_iter().map(|process| async move {
        let answer = process.send_if_alive(method.clone(), path, patience).await;
        answer.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    });
    Ok(runtime()?.block_on(join_all(answers)))
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
