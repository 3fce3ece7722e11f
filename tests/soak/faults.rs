//! What happens to servers and configs while hosts work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use nix::sys::signal::Signal;

use crate::{
    daemon,
    processes::{command_line, descendants, signal},
    server_kind::ServerKind,
    world::{Edit, World},
};

/// The faults so far.
#[derive(Default)]
pub struct FaultCounts {
    pub killed: AtomicU64,
    pub stopped: AtomicU64,
    pub edited: AtomicU64,
    pub daemons_killed: AtomicU64,
    pub daemons_restarted: AtomicU64,
    pub daemons_upgraded: AtomicU64,
}

/// Injects faults until the future is dropped.
pub async fn inject(world: Arc<World>, counts: Arc<FaultCounts>, seed: u64) {
    let kill = kill_servers(&world, &counts, fastrand::Rng::with_seed(seed ^ 1));
    let stop = stop_servers(&world, &counts, fastrand::Rng::with_seed(seed ^ 2));
    let edit = edit_config(&world, &counts, fastrand::Rng::with_seed(seed ^ 3));
    let replace = daemon::replace(&world, &counts, fastrand::Rng::with_seed(seed ^ 4));
    tokio::join!(kill, stop, edit, replace);
}

async fn kill_servers(world: &World, counts: &FaultCounts, mut random: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(random.u64(200..1000))).await;
        if let Some(process) = any_process(world, ServerKind::Mortal, &mut random) {
            signal(process, Signal::SIGKILL);
            counts.killed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Stops servers for a time within and beyond their deadline.
async fn stop_servers(world: &World, counts: &FaultCounts, mut random: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(random.u64(500..2000))).await;
        if let Some(process) = any_process(world, ServerKind::Frozen, &mut random) {
            signal(process, Signal::SIGSTOP);
            counts.stopped.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(random.u64(100..6000))).await;
            signal(process, Signal::SIGCONT);
        }
    }
}

async fn edit_config(world: &World, counts: &FaultCounts, mut random: fastrand::Rng) {
    loop {
        tokio::time::sleep(Duration::from_millis(random.u64(500..4000))).await;
        let number = counts.edited.fetch_add(1, Ordering::Relaxed);
        let edit = match random.u32(..4) {
            0 => Edit::Original,
            1 => Edit::Environment(number),
            2 => Edit::Described(number),
            _ => Edit::Removed,
        };
        world.write_config(edit).expect("the config can be written");
    }
}

/// Returns a process of such a server, of any dormouse.
fn any_process(world: &World, kind: ServerKind, random: &mut fastrand::Rng) -> Option<u32> {
    let marker = format!(" server {} ", kind.name());
    let all = world.running().into_iter().flat_map(descendants);
    let matching: Vec<u32> = all.filter(|id| command_line(*id).contains(&marker)).collect();
    (!matching.is_empty()).then(|| matching[random.usize(..matching.len())])
}
