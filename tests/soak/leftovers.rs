//! What is left of hosts that have gone: sessions, instances, processes, descriptors and memory.

use std::time::{Duration, Instant};

use crate::{
    ledger::{Fault, Ledger},
    processes::{command_line, descendants, descriptors, resident_kilobytes},
    server_kind::ServerKind,
    world::Service,
};

/// Maximum time after the last host for everything to be gone: the timeouts of sessions (10 s) and
/// of idle servers (3 s), and the time that servers have to end.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Descriptors that may be open in addition to those before the first host, such as kept-alive
/// connections.
const DESCRIPTOR_SLACK: usize = 12;
/// Growth of resident memory, from one quarter of the time to the end, that is no leak: what
/// allocators keep.
const MEMORY_SLACK_KILOBYTES: u64 = 32 * 1024;

/// The figures of the service at one time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Instant,
    pub resident: u64,
    pub descriptors: usize,
}

impl Sample {
    pub fn of(process: u32) -> Self {
        Self {
            at: Instant::now(),
            resident: resident_kilobytes(process),
            descriptors: descriptors(process),
        }
    }
}

/// Waits until nothing is left of the hosts, and notes what stays.
pub async fn check(service: &Service, before: Sample, ledger: &Ledger) {
    let until = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let left = left(service, before).await;
        if left.is_empty() {
            return;
        }
        if Instant::now() > until {
            for what in left {
                ledger.find(Fault::Leaked, what);
            }
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn left(service: &Service, before: Sample) -> Vec<String> {
    let mut left = Vec::new();
    match service.status().await {
        Err(error) => left.push(format!("the service reports no status: {error}")),
        Ok(status) => {
            if status["hosts"] != 0 {
                left.push(format!("{} hosts are still attached", status["hosts"]));
            }
            for server in status["servers"].as_array().into_iter().flatten() {
                let expected = u64::from(server["startup"] == "eager");
                if server["awake"].as_u64() != Some(expected) {
                    left.push(format!("{} instances of {}", server["awake"], server["name"]));
                }
            }
        }
    }
    let lines = descendants(service.process).into_iter().map(command_line);
    let mut servers: Vec<String> = lines.filter(|line| line.contains(" server ")).collect();
    for kind in [ServerKind::Steady, ServerKind::Changing] {
        let marker = format!(" server {} ", kind.name());
        if let Some(at) = servers.iter().position(|line| line.contains(&marker)) {
            servers.remove(at);
        }
    }
    left.extend(servers.into_iter().map(|line| format!("a process: {line}")));
    let open = descriptors(service.process);
    if open > before.descriptors + DESCRIPTOR_SLACK {
        left.push(format!("{open} descriptors; {} before the first host", before.descriptors));
    }
    left
}

/// Notes growth of memory, and returns it in kilobytes per hour.
pub fn check_memory(samples: &[Sample], last: Sample, ledger: &Ledger) -> f64 {
    let Some(first) = samples.get(samples.len() / 4) else { return 0.0 };
    let grown = last.resident.saturating_sub(first.resident);
    if grown > MEMORY_SLACK_KILOBYTES {
        let what = format!("memory has grown from {} to {} kB", first.resident, last.resident);
        ledger.find(Fault::Leaked, what);
    }
    let hours = last.at.duration_since(first.at).as_secs_f64() / 3600.0;
    #[expect(clippy::cast_precision_loss, reason = "kilobytes of memory are far below 2^52")]
    let difference = last.resident as f64 - first.resident as f64;
    if hours > 0.0 { difference / hours } else { 0.0 }
}
