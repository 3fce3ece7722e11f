//! The daemon that serves hosts on standard streams: it is killed, restarted and upgraded while they
//! work, and leaves nothing.

use std::{
    io,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;

use crate::{
    faults::FaultCounts,
    ledger::{Fault, Ledger},
    processes::{self, command_line, signal},
    world::World,
};

/// Maximum time until a host starts a daemon of the new program.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in which hosts move to the next daemon.
const MOVE_TIME: Duration = Duration::from_secs(2);
/// Maximum time after the last host for the daemon to be gone. Its idle timeout is a second, and
/// its servers have time to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after a change in which hosts may still hear of it.
const ECHO_TIME: Duration = Duration::from_secs(3);

/// Counts changes of the daemon.
#[derive(Default)]
pub struct DaemonChanges {
    /// The number of beginnings and ends: odd during a change.
    steps: AtomicU64,
    last: Mutex<Option<Instant>>,
}

impl DaemonChanges {
    /// Returns the number of changes so far, or `None` during a change.
    pub fn count(&self) -> Option<u64> {
        let steps = self.steps.load(Ordering::SeqCst);
        steps.is_multiple_of(2).then_some(steps / 2)
    }

    /// Returns whether a request may have been lost with a daemon that this driver has ended.
    pub fn may_have_lost(&self) -> bool {
        let last = *self.last.lock().expect("no holder panics");
        self.count().is_none() || last.is_some_and(|last| last.elapsed() < ECHO_TIME)
    }

    fn step(&self) {
        *self.last.lock().expect("no holder panics") = Some(Instant::now());
        self.steps.fetch_add(1, Ordering::SeqCst);
    }
}

/// Kills, restarts and upgrades the daemon until the future is dropped.
pub async fn replace(world: &World, counts: &FaultCounts, mut random: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(random.u64(3_000..9_000))).await;
        let running = world.daemons();
        let Some(running) = running.first() else { continue };
        world.daemon_changes.step();
        let (count, done) = match random.u32(..3) {
            0 => {
                signal(*running, Signal::SIGKILL);
                (&counts.daemons_killed, Ok(()))
            }
            1 => (&counts.daemons_restarted, restart(world).await),
            _ => (&counts.daemons_upgraded, upgrade(world, *running).await),
        };
        done.expect("the daemon can be replaced");
        tokio::time::sleep(MOVE_TIME).await;
        world.daemon_changes.step();
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn restart(world: &World) -> io::Result<()> {
    let output = world.daemon_command(&["daemon", "restart"])?.output().await?;
    if output.status.success() { Ok(()) } else { Err(io::Error::other(format!("{output:?}"))) }
}

/// Replaces the program, and waits until a host has started the new one as the daemon.
async fn upgrade(world: &World, running: u32) -> io::Result<()> {
    world.write_daemon_program().await?;
    let is_replaced = || world.daemons().iter().any(|process| *process != running);
    // Without a new host in this time the next one brings the new daemon.
    processes::wait_until(UPGRADE_TIMEOUT, is_replaced).await;
    Ok(())
}

/// Notes what is left of the daemon after its last host.
pub async fn check_end(world: &World, ledger: &Ledger) {
    let is_over = || world.daemons().is_empty() && files(&world.daemon_files()).is_empty();
    if processes::wait_until(END_TIMEOUT, is_over).await {
        return;
    }
    for process in world.daemons() {
        ledger.find(Fault::Leaked, format!("a daemon: {}", command_line(process)));
    }
    for file in files(&world.daemon_files()) {
        ledger.find(Fault::Leaked, format!("a file of the daemon: {file}"));
    }
}

/// Returns the names of the files in a directory.
fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
