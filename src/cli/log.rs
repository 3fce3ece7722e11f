//! `dormouse log`: the calls to servers, from the log of all processes that serve the config.

use std::{process::ExitCode, thread, time::Duration};

use anstyle::{AnsiColor, Style};
use indicatif::HumanBytes;

use super::{
    arguments::LogArguments,
    instances::stderr_of,
    output::{is_output_lost, with_escapes},
    settings,
    shared_flags::Options,
};
use crate::{
    base::{one_line, visible},
    config::{CallLogging, ConfigFile},
    telemetry::{CallOutcome, CallRecord, FollowedLog},
};

/// The pause before a followed log is read again.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run(options: &Options, typed: &LogArguments) -> anyhow::Result<ExitCode> {
    let file = settings::find(options)?;
    let config = settings::parse(&file, options)?;
    if let Some(server) = &typed.server {
        settings::server(&config, server)?;
    }
    if let Some(server) = typed.server.as_ref().filter(|_| typed.stderr) {
        return print_stderr(&file, server, typed);
    }
    let Some(directory) = settings::call_log_directory(&file) else {
        anyhow::bail!("there is no log of calls without a home directory");
    };
    let mut log = FollowedLog::new(directory);
    let wanted = |call: &CallRecord| {
        let is_of_server = typed.server.as_ref().is_none_or(|server| call.server == *server);
        is_of_server && (!typed.failed || call.outcome != CallOutcome::Succeeded)
    };
    let mut calls: Vec<CallRecord> = log.next_calls().filter(&wanted).collect();
    let known = calls.split_off(calls.len().saturating_sub(typed.last));
    if known.is_empty() && typed.last > 0 && !typed.follow && !typed.json {
        outln!(
            "{}",
            if config.settings.telemetry.call_log == CallLogging::Off {
                "no calls; \"callLog\" is off in the config"
            } else {
                "no calls yet"
            }
        );
    }
    print_all(&known, typed.json)?;
    while typed.follow && !is_output_lost() {
        thread::sleep(FOLLOW_INTERVAL);
        let calls: Vec<CallRecord> = log.next_calls().filter(&wanted).collect();
        print_all(&calls, typed.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the last lines that each running process has of the server's standard error.
fn print_stderr(file: &ConfigFile, server: &str, typed: &LogArguments) -> anyhow::Result<ExitCode> {
    let mut lines = Vec::new();
    for answer in stderr_of(file, server)? {
        match answer {
            Ok(of_process) => lines.extend(of_process),
            Err(why) => errln!("dormouse: {}", visible(&why)),
        }
    }
    let lines = &lines[lines.len().saturating_sub(typed.last)..];
    if typed.json {
        outln!("{}", super::output::json(&lines)?);
    } else if lines.is_empty() {
        errln!("nothing is known of the standard error of {}", visible(server));
    }
    for line in lines.iter().filter(|_| !typed.json) {
        outln!("{}", visible(line));
    }
    Ok(ExitCode::SUCCESS)
}

fn print_all(calls: &[CallRecord], as_json: bool) -> anyhow::Result<()> {
    for call in calls {
        if as_json {
            outln!("{}", with_escapes(&serde_json::to_string(call)?));
        } else {
            print(call);
        }
    }
    Ok(())
}

fn print(call: &CallRecord) {
    outln!("{}", line_of_call(call));
    for (what, text) in [("arguments", &call.arguments), ("result", &call.result)] {
        if let Some(text) = text {
            outln!("  {what}: {}", one_line(text));
        }
    }
}

/// Returns a call as one line, with colors.
pub(super) fn line_of_call(call: &CallRecord) -> String {
    let (dim, bad) = (Style::new().dimmed(), AnsiColor::Red.on_default());
    let name = call.name.as_deref().unwrap_or(&call.method);
    let client = call.client.as_deref().unwrap_or("unnamed host");
    let size = |bytes: usize| HumanBytes(bytes as u64).to_string();
    let outcome = match &call.error {
        Some(error) => format!("{bad}{}: {}{bad:#}", call.outcome.name(), one_line(error)),
        None => format!("≈ {} tokens", call.tokens_out),
    };
    let policy = call.policy.as_deref().map(|effect| format!(", {}", one_line(effect)));
    let policy = policy.unwrap_or_default();
    let script = call.script.as_ref().map(|it| format!(", {} {}", one_line(&it.name), it.run));
    let script = script.unwrap_or_default();
    format!(
        "{dim}{}{dim:#} {}/{} {}, {} in, {} out, {outcome}{policy} {dim}{}{script}{dim:#}",
        call.at,
        one_line(&call.server),
        one_line(name),
        duration(call.took_ms),
        size(call.bytes_in),
        size(call.bytes_out),
        one_line(client),
    )
}

/// Returns milliseconds as text.
fn duration(milliseconds: f64) -> String {
    match milliseconds {
        few if few < 10.0 => format!("{few:.1} ms"),
        some if some < 1000.0 => format!("{some:.0} ms"),
        many => format!("{:.1} s", many / 1000.0),
    }
}
