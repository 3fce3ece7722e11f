//! `dormouse top`: the servers and the calls of the running dormouse, live in the terminal.

use std::{
    collections::VecDeque,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::bail;
use console::{Key, Term};
#[cfg(unix)]
use nix::sys::{
    signal::Signal,
    termios::{SetArg, Termios, tcgetattr, tcsetattr},
};

use super::{
    instances::running,
    joint_report::by_process,
    log::line_of_call,
    settings,
    shared_flags::Options,
    sharing_report::SharedServers,
    status::{hosts, savings, table_of},
};
use crate::{
    base::visible,
    config::ConfigFile,
    telemetry::{CallRecord, FollowedLog},
};

/// The pause between two pictures.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of calls that are kept for the picture.
const MAX_CALLS: usize = 200;

pub(super) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let terminal = Term::stdout();
    if !terminal.is_term() {
        bail!("`dormouse top` needs a terminal; `dormouse status --json` prints the same once");
    }
    let file = settings::find(options)?;
    let mut calls = LastCalls::of(&file);
    #[cfg(unix)]
    let _state = TerminalState::save();
    let ending = ending_by_signal()?;
    let keys = keys(&terminal);
    terminal.hide_cursor()?;
    let shown = loop {
        if ending.load(Ordering::Relaxed) {
            break Ok(());
        }
        if let Err(error) = show(&terminal, &file, &mut calls) {
            break Err(error);
        }
        match keys.recv_timeout(INTERVAL) {
            // The keys end with the one that quits.
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
    };
    terminal.show_cursor()?;
    terminal.write_line("")?;
    shown.map(|()| ExitCode::SUCCESS)
}

/// Returns a flag that is set when a signal asks the process to end.
fn ending_by_signal() -> std::io::Result<Arc<AtomicBool>> {
    let ending = Arc::<AtomicBool>::default();
    #[cfg(unix)]
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signal_hook::flag::register(signal as i32, ending.clone())?;
    }
    Ok(ending)
}

/// The mode of the terminal, which is restored when the value is dropped: a thread that reads a key
/// then has set raw mode.
#[cfg(unix)]
struct TerminalState(Option<Termios>);

#[cfg(unix)]
impl TerminalState {
    fn save() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }
}

#[cfg(unix)]
impl Drop for TerminalState {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            // The terminal may be gone.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, state);
        }
    }
}

/// Reads keys on a thread of its own, up to one that quits: reading another one would leave the
/// terminal in raw mode.
fn keys(terminal: &Term) -> mpsc::Receiver<Key> {
    let (sender, keys) = mpsc::channel();
    let terminal = terminal.clone();
    thread::spawn(move || {
        while let Ok(key) = terminal.read_key_raw() {
            if matches!(key, Key::Char('q') | Key::Escape | Key::CtrlC) || sender.send(key).is_err()
            {
                return;
            }
        }
    });
    keys
}

/// The end of the log of calls.
struct LastCalls {
    /// `None` without a home directory.
    log: Option<FollowedLog>,
    calls: VecDeque<CallRecord>,
}

impl LastCalls {
    fn of(file: &ConfigFile) -> Self {
        let log = settings::call_log_directory(file).map(FollowedLog::new);
        Self { log, calls: VecDeque::new() }
    }

    /// Returns the last calls, newest first.
    fn read(&mut self) -> impl Iterator<Item = &CallRecord> {
        self.calls.extend(self.log.iter_mut().flat_map(FollowedLog::next_calls));
        let excess = self.calls.len().saturating_sub(MAX_CALLS);
        self.calls.drain(..excess);
        self.calls.iter().rev()
    }
}

fn show(terminal: &Term, file: &ConfigFile, calls: &mut LastCalls) -> anyhow::Result<()> {
    let (rows, columns) = terminal.size();
    let mut lines = Vec::new();
    let shared = SharedServers::of(&file.path);
    for mut report in by_process(&running(file)?) {
        shared.count_processes(&mut report);
        let pid = report.pid.unwrap_or_default();
        lines.push(format!(
            "dormouse {}, process {pid}; hosts: {}",
            report.version,
            hosts(&report)
        ));
        lines.extend(table_of(&report).lines().map(str::to_owned));
        lines.extend(savings(&report));
        lines.push(String::new());
    }
    if lines.is_empty() {
        let config = visible(&file.path.display().to_string());
        lines.push(format!("no running dormouse uses {config}"));
        lines.push(String::new());
    }
    lines.extend(calls.read().map(line_of_call));
    // The last row shows the key that quits.
    lines.truncate(usize::from(rows).saturating_sub(1));
    let picture: Vec<String> = lines
        .iter()
        .map(|line| console::truncate_str(line, usize::from(columns), "…").into_owned())
        .collect();
    terminal.clear_screen()?;
    terminal.write_str(&format!("{}\nq: quit", picture.join("\n")))?;
    Ok(())
}
