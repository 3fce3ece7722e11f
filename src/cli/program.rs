//! A run of the program: reads the arguments, runs one command, and reports how it ended.

use std::{ffi::OsString, io::Write as _, path::Path, process::ExitCode};

use anyhow::Context as _;
use clap::{
    CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use tracing_appender::non_blocking::WorkerGuard;

#[cfg(unix)]
use super::arguments::DaemonSubcommand;
#[cfg(unix)]
use super::daemon::{self as cli_daemon, Attempt, serve_by_daemon};
use super::{
    approve,
    arguments::{Arguments, Command},
    call, check, complete, connect, demo, edit, failure, get, import, list, log, logging, login,
    operate::{self, ServerOperation},
    options,
    output::is_output_lost,
    policy, refresh, schema, script_commands, serve,
    shared_flags::Options,
    status, store, test, top, trust, ui,
    usage_error::{USAGE_EXIT_CODE, UsageError},
};
#[cfg(unix)]
use crate::daemon::{self, LAUNCHER_ARGUMENT};
use crate::{demo as embedded, script, upstream::watchdog};

/// Runs the program and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match arguments.get(1).and_then(|argument| argument.to_str()) {
        // Hidden modes: dormouse starts itself with these arguments.
        Some(watchdog::ARGUMENT) => {
            let mark = arguments.get(2).and_then(|mark| mark.to_str()).unwrap_or_default();
            watchdog::run(mark, std::io::stdin().lock());
            return ExitCode::SUCCESS;
        }
        Some(script::ARGUMENT) => {
            script::run_worker(std::io::stdin().lock(), std::io::stdout().lock());
            return ExitCode::SUCCESS;
        }
        Some(embedded::SERVER_ARGUMENT) => {
            let theme = arguments.get(2).and_then(|theme| theme.to_str()).unwrap_or_default();
            return embedded::serve(theme, std::io::stdin().lock(), std::io::stdout().lock());
        }
        #[cfg(unix)]
        Some(LAUNCHER_ARGUMENT) => return daemon::launch(&arguments[2..]),
        _ => {}
    }
    #[cfg(unix)]
    let no_daemon = match serve_by_daemon(&arguments) {
        Attempt::Done(code) => return code,
        Attempt::NotForDaemon => None,
        Attempt::NoDaemon(reason) => Some(reason),
    };
    #[cfg(not(unix))]
    let no_daemon = None;
    let parsed = complete::answer(&arguments).and_then(|is_answered| {
        if is_answered {
            Ok(None)
        } else {
            options::parse(arguments, |name| std::env::var_os(name)).map(Some)
        }
    });
    let arguments = match parsed {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return ExitCode::SUCCESS,
        Err(usage) => {
            // If standard error is closed, the error cannot be reported anywhere.
            let _ = usage.print();
            if let Some(near) = near_command(&usage) {
                errln!("did you mean `dormouse {near}`?");
            }
            return ExitCode::from(if usage.use_stderr() { USAGE_EXIT_CODE } else { 0 });
        }
    };
    let done = dispatch(arguments, no_daemon);
    // The log has ended: from here on, the default hook prints panics.
    drop(std::panic::take_hook());
    match done {
        Ok(_) if is_output_lost() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            // If standard error is closed, the error cannot be reported anywhere.
            // (The exit code still tells of it.)
            let _ = writeln!(std::io::stderr(), "{}", failure::report(&error));
            ExitCode::from(failure::exit_code(&error))
        }
    }
}

/// Returns the command whose name is most similar to an unexpected word.
fn near_command(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || typed.starts_with('-') {
        return None;
    }
    let commands = Arguments::command();
    let names = commands.get_subcommands().filter(|command| !command.is_hide_set());
    let likeness = |name: &str| strsim::jaro_winkler(name, typed);
    names
        .map(|command| command.get_name().to_owned())
        .filter(|name| likeness(name) > 0.8)
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
}

/// Runs the command. `no_daemon`: the reason that a host is not served by a daemon.
fn dispatch(arguments: Arguments, no_daemon: Option<String>) -> anyhow::Result<ExitCode> {
    let Arguments { command, options, wrapped } = arguments;
    let command = command.unwrap_or(Command::Serve);
    if !wrapped.is_empty() && !matches!(command, Command::Serve) {
        let message = "only `serve` accepts a command after `--`".to_owned();
        return Err(UsageError(message).into());
    }
    if !wrapped.is_empty() && options.config.is_some() {
        let message = "a command after `--` is served without a config: remove --config".to_owned();
        return Err(UsageError(message).into());
    }
    let _log = start_log(&command, &options)?;
    if let Some(reason) = no_daemon {
        tracing::warn!(reason, "serving the host without the daemon");
    }
    match command {
        Command::Serve => serve::run(&options, wrapped),
        Command::Check { json } => check::run(&options, json),
        Command::Init => edit::init(&options),
        Command::Add(typed) => edit::add(&options, &typed),
        Command::Remove(typed) => edit::remove(&options, &typed),
        Command::Enable(typed) => edit::switch(&options, &typed, true),
        Command::Disable(typed) => edit::switch(&options, &typed, false),
        Command::Share(typed) => edit::share(&options, &typed),
        Command::Approve(typed) => approve::run(&options, &typed),
        Command::Call { server, tool, input, json, limit } => {
            let timeout = limit.timeout;
            call::run(&options, &call::WantedCall { server, tool, input, json, timeout })
        }
        Command::Connect(typed) => connect::connect(&options, &typed),
        Command::Disconnect(typed) => connect::disconnect(&options, &typed),
        Command::Get { server, json } => get::run(&options, &server, json),
        Command::Import(typed) => import::run(&options, &typed),
        Command::List { servers, json } => list::run(&options, &servers, json),
        Command::Log(typed) => log::run(&options, &typed),
        Command::Login(typed) => login::log_in(&options, &typed),
        Command::Logout(arguments) => login::log_out(&options, arguments),
        Command::Load(named) => operate::run(&options, &named.servers, ServerOperation::Load),
        Command::Sleep(named) => operate::run(&options, &named.servers, ServerOperation::Sleep),
        Command::Reset(named) => operate::run(&options, &named.servers, ServerOperation::Reset),
        Command::Policy { command } => policy::run(&options, &command),
        Command::Refresh(typed) => refresh::run(&options, &typed),
        Command::Status { json } => status::run(&options, json),
        Command::Test { servers, json, limit } => test::run(&options, &servers, json, limit),
        Command::Top => top::run(&options),
        Command::Ui(typed) => ui::run(&options, &typed),
        Command::Store { command } => store::run(&options, &command),
        Command::Trust { path } => trust::run(path.as_deref()),
        Command::Completions { shell } => {
            let script = complete::script(shell)?;
            outln!("{}", String::from_utf8_lossy(&script).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { directory } => write_manual(&directory),
        Command::Script { command } => script_commands::run(&options, &command),
        Command::Schema { reference } => schema::run(reference),
        Command::Demo { json } => demo::run(json),
        #[cfg(unix)]
        Command::Daemon { command } => cli_daemon::command(&options, command),
    }
}

fn write_manual(directory: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(options::command(), directory))
        .with_context(|| format!("cannot write manual pages into {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the log. Only what serves logs its work; all other commands print their results.
fn start_log(command: &Command, options: &Options) -> anyhow::Result<Option<WorkerGuard>> {
    let is_serving = match command {
        Command::Serve => true,
        #[cfg(unix)]
        Command::Daemon { command: DaemonSubcommand::Run { .. } } => true,
        _ => false,
    };
    let usual = "error,dormouse::catalog=warn,dormouse::config::find=warn";
    logging::start(options, if is_serving { "info" } else { usual })
}
