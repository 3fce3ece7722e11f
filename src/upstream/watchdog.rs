//! Ends the servers of a dormouse that was killed before it could do so itself.
//!
//! The watchdog is this same program in a hidden mode, in a process group and under a name of its own, so that what
//! ends dormouse by its name does not end it too. It is told over a pipe which process groups exist; when the pipe
//! closes, because dormouse is gone for whatever reason, it ends those that are left, and what has left them. It is
//! started before the first server, and again as soon as it has ended.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::strays::{self, MARK_VARIABLE};

use crate::base::Lock;

/// The hidden argument that makes the program a watchdog; the mark of its dormouse follows.
pub const ARGUMENT: &str = "__watchdog";

/// What the process is called, in at most 15 bytes.
#[cfg(unix)]
const PROCESS_NAME: &std::ffi::CStr = c"mcp-watchdog";

/// How long the servers have to end by themselves once dormouse is gone.
const GRACE_DELAY: Duration = Duration::from_millis(500);

/// The pipe to the watchdog. Cheap to clone.
#[derive(Clone)]
pub struct Watchdog(Arc<WatchdogInner>);

struct WatchdogInner {
    /// Tells the processes of this dormouse from those of others.
    mark: String,
    /// Servers that were started so far.
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
    /// It was told to end; servers then depend on dormouse ending in order.
    Missing,
}

impl Default for Watchdog {
    fn default() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(Arc::new(WatchdogInner {
            mark: format!("{}-{:x}", std::process::id(), since_epoch.as_nanos()),
            starts: AtomicU64::new(0),
            state: Lock::default(),
        }))
    }
}

impl Watchdog {
    /// Makes sure that the watchdog runs, before a server is started; returns the mark for its environment.
    pub(super) fn prepare(&self) -> String {
        self.0.state.lock().ensure_running(&self.0.mark);
        let number = self.0.starts.fetch_add(1, Ordering::Relaxed);
        // The end of the number must not be the beginning of another.
        format!("{}/{number}/", self.0.mark)
    }

    /// Names a process group that must not outlive dormouse.
    pub(super) fn guard(&self, group: u32) {
        let mut state = self.0.state.lock();
        state.groups.insert(group);
        state.tell(&self.0.mark, '+', group);
    }

    /// Takes back what `guard` said.
    pub(super) fn release(&self, group: u32) {
        let mut state = self.0.state.lock();
        state.groups.remove(&group);
        state.tell(&self.0.mark, '-', group);
    }

    /// Starts the watchdog again whenever it has ended while there is something to guard.
    pub async fn keep_running(self) {
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

    /// Ends the watchdog once nothing is left to guard. It ends what servers have left behind.
    pub fn end(&self) {
        if let WatchdogPipe::Open(mut child) =
            std::mem::replace(&mut self.0.state.lock().pipe, WatchdogPipe::Missing)
        {
            drop(child.stdin.take());
            // It ends at once when it guards nothing; one that cannot be waited for is init's.
            let _ = child.wait();
        }
    }
}

impl WatchdogState {
    /// Starts the watchdog if it does not run, or not any more, and tells it all that there is to guard.
    fn ensure_running(&mut self, mark: &str) {
        if cfg!(windows) {
            // Each server is in a job object there, which dies with our handle on it.
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
                // It is tried again with the next server.
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
            // One that has just ended is started again, and told all, with the next server.
            let _ = writeln!(stdin, "{sign}{group}");
        }
    }
}

fn start(mark: &str) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([ARGUMENT, mark]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Else it would be taken for a stray of the dormouse that has started this one.
    command.env_remove(MARK_VARIABLE);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0).arg0(PROCESS_NAME.to_string_lossy().as_ref());
    }
    command.spawn()
}

/// The watchdog process itself: returns when everything it had to guard is gone. `mark`: that of its dormouse.
pub fn run(mark: &str, commands: impl BufRead) {
    #[cfg(target_os = "linux")]
    // Under another name it does as well.
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
    use super::process::signal_group;
    use nix::sys::signal::Signal;

    if groups.is_empty() {
        return;
    }
    // Their standard input has just closed, which ends the polite ones.
    std::thread::sleep(GRACE_DELAY);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let alive = groups.iter().filter(|group| signal_group(**group, signal)).count();
        if alive == 0 {
            return;
        }
        std::thread::sleep(GRACE_DELAY);
    }
}

/// On Windows there is nothing to guard; see `WatchdogState::ensure`.
#[cfg(not(unix))]
fn end(_: &BTreeSet<u32>) {
    let _ = GRACE_DELAY;
}
