//! One call of a tool, for commands that call as an agent would.

use std::{
    io::{IsTerminal as _, Read as _, Write},
    process::ExitCode,
    sync::Weak,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    UsageError, runtime, settings, shared_flags::Options, shared_pool::shared_pool, signals,
    state_stores::StateStores,
};
use crate::{
    auth::Auth,
    base::{one_line, visible},
    config::{Config, ConfigFile},
    downstream::in_process_host,
    proxy::{Fleet, Storage},
    telemetry::{FleetTelemetry, TelemetryOptions},
    upstream::ProcessServices,
    wire::{Outcome, Raw},
};

/// A call of a tool by a process that ends with it.
pub(super) struct OneCall<'a> {
    pub(super) file: &'a ConfigFile,
    pub(super) options: &'a Options,
    pub(super) config: Config,
    /// True if servers of the daemon's pool may be used.
    pub(super) is_shared: bool,
    /// The `params` of the `tools/call`.
    pub(super) params: Raw,
}

/// The answer to a call.
pub(super) struct CallAnswer {
    pub(super) outcome: Outcome,
    /// The reason that a server could not be loaded, if there is one.
    pub(super) load_failure: Option<String>,
}

impl OneCall<'_> {
    /// # Errors
    /// If there is no answer.
    pub(super) fn make(self) -> anyhow::Result<CallAnswer> {
        let Self { file, options, config, is_shared, params } = self;
        let stores = StateStores::of(&config.settings)?;
        let storage = stores.storage(Some(file));
        let auth = stores.auth(Some(file), options);
        let pool = is_shared.then(|| shared_pool(file, options, &config.settings)).flatten();
        let services = ProcessServices { pool, ..ProcessServices::default() };
        let telemetry = TelemetryOptions {
            fleet: Weak::new(),
            logging: config.settings.telemetry.call_log,
            log: settings::call_log_directory(file),
            export: None,
        };
        runtime()?.block_on(call(config, services, storage, auth, telemetry, params))
    }
}

async fn call(
    config: Config,
    services: ProcessServices,
    storage: Storage,
    auth: Auth,
    telemetry: TelemetryOptions,
    params: Raw,
) -> anyhow::Result<CallAnswer> {
    let fleet = Fleet::new(config, &services, storage, auth);
    let (telemetry, log) = FleetTelemetry::new(telemetry);
    fleet.operator().report_to(telemetry.clone());
    let log = tokio::spawn(log);
    let stop = CancellationToken::new();
    let _signals = signals::cancel_when_asked(stop.clone(), false);
    let waiting = AbortOnDropHandle::new(tokio::spawn(say_that_it_waits()));
    let outcome = stop.run_until_cancelled(in_process_host::call_tool(&fleet, params)).await;
    drop(waiting);
    let failed = fleet.operator().overview().into_iter().find(|server| server.status.strikes > 0);
    fleet.stop().await;
    services.watchdog.end();
    telemetry.end();
    // The log of calls is not worth a failure.
    let _ = log.await;
    let load_failure = failed.and_then(|server| server.status.last_error);
    let outcome = outcome.context("stopped before the tool answered").and_then(|it| Ok(it?));
    match (outcome, load_failure) {
        (Ok(outcome), load_failure) => Ok(CallAnswer { outcome, load_failure }),
        (Err(_), Some(cause)) => bail!("cannot load a server: {}", one_line(&cause)),
        (Err(error), None) => Err(error),
    }
}

/// Returns the JSON that was typed, or an empty object.
pub(super) fn read_input(typed: Option<&str>) -> anyhow::Result<Value> {
    let text = match typed {
        None => return Ok(json!({})),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            text
        }
        Some(text) => text.to_owned(),
    };
    let input = serde_json::from_str(&text);
    Ok(input.map_err(|error| UsageError(format!("the input is not valid JSON: {error}")))?)
}

/// Tells the user at intervals that there is no answer yet.
async fn say_that_it_waits() {
    let start = Instant::now();
    for pause in [3, 7, 20].into_iter().chain(std::iter::repeat(30)) {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        errln!("waiting for the answer ({} s)", start.elapsed().as_secs());
    }
}

/// Prints the result of a tool.
pub(super) fn print(outcome: &Outcome, as_json: bool) -> ExitCode {
    let (Ok(answer) | Err(answer)) = outcome;
    let value = answer.to_value();
    let is_error = outcome.is_err() || value["isError"] == true;
    let text = match outcome {
        _ if as_json => answer.to_string(),
        Err(_) => value["message"].as_str().unwrap_or_default().to_owned(),
        Ok(_) => readable(&value),
    };
    let (is_terminal, mut to): (bool, Box<dyn Write>) = if is_error && !as_json {
        (std::io::stderr().is_terminal(), Box::new(std::io::stderr()))
    } else {
        (std::io::stdout().is_terminal(), Box::new(std::io::stdout()))
    };
    // A server's text must not control the terminal. Elsewhere it is printed unchanged.
    let is_shown = is_terminal || is_error && !as_json;
    let text = if is_shown { visible(&text) } else { text };
    super::output::print_line(&mut to, format_args!("{text}"));
    if is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns a result for people: its text, and a short note for other content.
fn readable(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    if blocks.is_empty() && !result["structuredContent"].is_null() {
        return format!("{:#}", result["structuredContent"]);
    }
    let lines: Vec<String> = blocks.iter().map(readable_block).collect();
    lines.join("\n")
}

fn readable_block(block: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => text(&block["text"]),
        Some("resource") if block["resource"]["text"].is_string() => {
            text(&block["resource"]["text"])
        }
        Some("resource") => format!("[resource {}]", text(&block["resource"]["uri"])),
        Some("resource_link") => format!("[resource {}]", text(&block["uri"])),
        Some(kind @ ("image" | "audio")) => format!(
            "[{kind} {}: {} bytes of base64; --json prints them]",
            text(&block["mimeType"]),
            block["data"].as_str().map_or(0, str::len)
        ),
        kind => format!("[{} content; --json prints it]", kind.unwrap_or("unknown")),
    }
}
