//! Ends the servers of a dormouse that was killed before it could end them itself.
//!
//! The watchdog is this same program in a hidden mode, in its own process group and under its own
//! name, so that a signal to dormouse by name does not reach it. It learns over a pipe which
//! process groups exist. When the pipe closes, because dormouse is gone, it ends the remaining
//! groups and the processes that have left them. It is started before the first server, and again
//! if it ends.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

#[cfg(unix)]
use nix::sys::signal::Signal;

#[cfg(unix)]
use super::process_group::signal_group;
use super::strays::{self, MARK_VARIABLE};
use crate::base::{Lock, own_program, since_1970};

/// The hidden argument that makes the program a watchdog; the mark of its dormouse follows.
pub(crate) const ARGUMENT: &str = "__watchdog";

/// The name of the process, at most 15 bytes.
#[cfg(unix)]
const PROCESS_NAME: &std::ffi::CStr = c"mcp-watchdog";

/// Time for the servers to end by themselves once dormouse is gone.
const GRACE_DELAY: Duration = Duration::from_millis(500);

/// The pipe to the watchdog. Clones are cheap.
#[derive(Clone)]
pub(crate) struct Watchdog(Arc<WatchdogInner>);

struct WatchdogInner {
    /// Distinguishes the processes of this dormouse from those of others.
    mark: String,
    /// The number of servers started so far.
    starts: AtomicU64,
    state: Lock<WatchdogState>,
}

#[derive(Default)]
struct WatchdogState {
    pipe: WatchdogPipe,
    /// The process groups that must not outlive dormouse.
    groups: BTreeSet<u32>,
}

#[derive(Default)]
enum WatchdogPipe {
    #[default]
    NotStarted,
    Open(Child),
    /// The watchdog was told to end; only dormouse itself ends the servers now.
    Missing,
}

impl Default for Watchdog {
    fn default() -> Self {
        let since_epoch = since_1970();
        Self(Arc::new(WatchdogInner {
            mark: format!("{}-{:x}", std::process::id(), since_epoch.as_nanos()),
            starts: AtomicU64::new(0),
            state: Lock::default(),
        }))
    }
}

impl Watchdog {
    /// Ensures that the watchdog runs before a server is started. Returns the mark for the server's
    /// environment.
    pub(super) fn prepare(&self) -> String {
        self.0.state.lock().ensure_running(&self.0.mark);
        let number = self.0.starts.fetch_add(1, Ordering::Relaxed);
        // The trailing slash keeps one number from being the prefix of another.
        format!("{}/{number}/", self.0.mark)
    }

    /// Adds a process group that must not outlive dormouse.
    pub(super) fn guard(&self, group: u32) {
        let mut state = self.0.state.lock();
        state.groups.insert(group);
        state.tell(&self.0.mark, '+', group);
    }

    /// Removes a process group.
    pub(super) fn release(&self, group: u32) {
        let mut state = self.0.state.lock();
        state.groups.remove(&group);
        state.tell(&self.0.mark, '-', group);
    }

    /// Starts the watchdog again whenever it has ended while a group needs it.
    pub(crate) async fn keep_running(self) {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};

            let Ok(mut child_ended) = signal(SignalKind::child()) else { return };
            while child_ended.recv().await.is_some() {
                let mut state = self.0.state.lock();
                if !state.groups.is_empty() {
                    state.ensure_running(&self.0.mark);
                }
            }
        }
    }

    /// Ends the watchdog once no group needs it. It ends the processes that servers have left
    /// behind.
    pub(crate) fn end(&self) {
        if let WatchdogPipe::Open(mut child) =
            std::mem::replace(&mut self.0.state.lock().pipe, WatchdogPipe::Missing)
        {
            drop(child.stdin.take());
            // A watchdog without groups ends at once; one that cannot be waited for belongs to
            // init.
            let _ = child.wait();
        }
    }
}

impl WatchdogState {
    /// Starts the watchdog if it does not run, and tells it all groups.
    fn ensure_running(&mut self, mark: &str) {
        if cfg!(windows) {
            // On Windows each server is in a job object, which ends with dormouse's handle on it.
            return;
        }
        let is_running = match &mut self.pipe {
            WatchdogPipe::NotStarted => false,
            WatchdogPipe::Open(child) => matches!(child.try_wait(), Ok(None)),
            WatchdogPipe::Missing => return,
        };
        if is_running {
            return;
        }
        self.pipe = start(mark).map_or_else(
            |error| {
                // The next server tries it again.
                tracing::warn!(%error, "cannot start the watchdog");
                WatchdogPipe::NotStarted
            },
            WatchdogPipe::Open,
        );
        for group in self.groups.clone() {
            self.write('+', group);
        }
    }

    fn tell(&mut self, mark: &str, sign: char, group: u32) {
        self.ensure_running(mark);
        self.write(sign, group);
    }

    fn write(&mut self, sign: char, group: u32) {
        if let WatchdogPipe::Open(Child { stdin: Some(stdin), .. }) = &mut self.pipe {
            // A watchdog that has just ended is started again, with all groups, by the next server.
            let _ = writeln!(stdin, "{sign}{group}");
        }
    }
}

fn start(mark: &str) -> io::Result<Child> {
    let mut command = Command::new(own_program()?);
    command.args([ARGUMENT, mark]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Otherwise the watchdog would count as a stray of the dormouse that has started this one.
    command.env_remove(MARK_VARIABLE);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0).arg0(PROCESS_NAME.to_string_lossy().as_ref());
    }
    command.spawn()
}

/// Runs the watchdog process; returns when all its groups are gone. `mark` is that of its dormouse.
pub(crate) fn run(mark: &str, commands: impl BufRead) {
    #[cfg(target_os = "linux")]
    // The watchdog works under another name as well.
    let _ = nix::sys::prctl::set_name(PROCESS_NAME);
    let mut groups: BTreeSet<u32> = BTreeSet::new();
    for line in commands.lines().map_while(Result::ok) {
        let Some((sign, group)) = line.split_at_checked(1) else { continue };
        let Ok(group) = group.parse() else { continue };
        if sign == "+" {
            groups.insert(group);
        } else {
            groups.remove(&group);
        }
    }
    end(&groups);
    if !mark.is_empty() {
        strays::end(&format!("{mark}/"), GRACE_DELAY);
    }
}

#[cfg(unix)]
fn end(groups: &BTreeSet<u32>) {
    if groups.is_empty() {
        return;
    }
    // Their standard input has just closed, which ends most servers.
    std::thread::sleep(GRACE_DELAY);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let alive = groups.iter().filter(|group| signal_group(**group, signal)).count();
        if alive == 0 {
            return;
        }
        std::thread::sleep(GRACE_DELAY);
    }
}

/// Windows needs no watchdog; see `WatchdogState::ensure_running`.
#[cfg(not(unix))]
fn end(_: &BTreeSet<u32>) {
    let _ = GRACE_DELAY;
}
