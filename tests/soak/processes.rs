//! Figures of processes (Linux, `/proc`).

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Returns the ids of direct and indirect children.
pub fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(parent) = open.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

/// Returns the processes with these words at the start of their command lines.
pub fn of_command(program: &Path, argument: &str) -> Vec<u32> {
    let start = format!("{} {argument} ", program.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| command_line(*id).starts_with(&start)).collect()
}

/// Waits until the condition holds, and returns whether it does in time.
pub async fn wait_until(timeout: Duration, holds: impl Fn() -> bool) -> bool {
    let until = Instant::now() + timeout;
    while !holds() {
        if Instant::now() > until {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    true
}

/// Returns the arguments of a process, separated by spaces; empty if it has ended.
pub fn command_line(process: u32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Returns the resident memory of a process, in kilobytes.
pub fn resident_kilobytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Returns the number of open descriptors of a process.
pub fn descriptors(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).map(Iterator::count).unwrap_or_default()
}

pub fn signal(process: u32, signal: nix::sys::signal::Signal) {
    let Ok(process) = i32::try_from(process) else { return };
    // The process may have ended meanwhile.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), signal);
}
