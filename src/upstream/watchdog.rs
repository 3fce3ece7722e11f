//! Ends the servers of a dormouse that was killed before it could do so itself.
//!
//! The watchdog is this same program in a hidden mode, in a process group of its own. It is told over
//! a pipe which process groups exist; when the pipe closes, because dormouse is gone for whatever
//! reason, it ends those that are left. It is started with the first server and not before.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

/// The hidden argument that makes the program a watchdog.
pub const ARGUMENT: &str = "__watchdog";

/// How long the servers have to end by themselves once dormouse is gone.
const GRACE: Duration = Duration::from_millis(500);

/// The pipe to the watchdog. Cheap to clone.
#[derive(Clone, Default)]
pub struct Watchdog {
    // A std mutex: held for one short write to a pipe whose reader does nothing but read.
    pipe: Arc<Mutex<Pipe>>,
}

#[derive(Default)]
enum Pipe {
    #[default]
    NotStarted,
    Open(Child),
    /// It cannot be started or has gone; servers then depend on dormouse ending in order.
    Missing,
}

impl Watchdog {
    /// Names a process group that must not outlive dormouse.
    pub(super) fn guard(&self, group: u32) {
        self.tell('+', group);
    }

    /// Takes back what `guard` said.
    pub(super) fn release(&self, group: u32) {
        self.tell('-', group);
    }

    /// Ends the watchdog once nothing is left to guard.
    pub fn end(&self) {
        let mut pipe = self.pipe.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Pipe::Open(mut child) = std::mem::replace(&mut *pipe, Pipe::Missing) {
            drop(child.stdin.take());
            // It ends at once when it guards nothing; one that cannot be waited for is init's.
            let _ = child.wait();
        }
    }

    fn tell(&self, sign: char, group: u32) {
        if cfg!(windows) {
            // Each server is in a job object there, which dies with our handle on it.
            return;
        }
        let mut pipe = self.pipe.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if matches!(*pipe, Pipe::NotStarted) {
            *pipe = start().map_or_else(
                |error| {
                    tracing::warn!(%error, "cannot start the watchdog");
                    Pipe::Missing
                },
                Pipe::Open,
            );
        }
        if let Pipe::Open(Child { stdin: Some(stdin), .. }) = &mut *pipe
            && writeln!(stdin, "{sign}{group}").is_err()
        {
            *pipe = Pipe::Missing;
        }
    }
}

fn start() -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// The watchdog process itself: returns when everything it had to guard is gone.
pub fn run(commands: impl BufRead) {
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
}

#[cfg(unix)]
fn end(groups: &BTreeSet<u32>) {
    use super::process::signal_group;
    use nix::sys::signal::Signal;

    if groups.is_empty() {
        return;
    }
    // Their standard input has just closed, which ends the polite ones.
    std::thread::sleep(GRACE);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let alive = groups.iter().filter(|group| signal_group(**group, signal)).count();
        if alive == 0 {
            return;
        }
        std::thread::sleep(GRACE);
    }
}

/// On Windows there is nothing to guard; see `tell`.
#[cfg(not(unix))]
fn end(_: &BTreeSet<u32>) {
    let _ = GRACE;
}
