//! Figures of a process and its descendants (Linux, `/proc`).

use std::{fs, time::Duration};

/// Returns the processor time of all threads of one process.
pub fn processor_time(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Returns the ids of direct and indirect children.
pub fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(parent) = open.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|id| id.parse::<u32>().ok());
            for child in children {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

/// Counts the descendants whose command line contains `word`.
pub fn descendants_named(process: u32, word: &str) -> usize {
    let is_named = |id: &u32| {
        fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains(word))
    };
    descendants(process).iter().filter(|id| is_named(id)).count()
}

/// Returns the resident memory of a process and its descendants, in megabytes.
pub fn resident(process: u32) -> f64 {
    let all = descendants(process).into_iter().chain([process]);
    all.map(|id| status(id, "VmRSS:")).sum()
}

/// Returns the resident memory of the process alone, in megabytes.
pub fn resident_of(process: u32) -> f64 {
    status(process, "VmRSS:")
}

/// Returns the peak resident memory of the process alone, in megabytes.
pub fn peak(process: u32) -> f64 {
    status(process, "VmHWM:")
}

/// Returns the resident memory that the process shares with no other, in megabytes.
pub fn private_of(process: u32) -> f64 {
    rollup(process, "Private_Clean:") + rollup(process, "Private_Dirty:")
}

/// Returns the resident memory of the process, with its part of shared pages, in megabytes.
pub fn proportional_of(process: u32) -> f64 {
    rollup(process, "Pss:")
}

/// Returns the first word of the command line of a process.
pub fn program_of(process: u32) -> String {
    let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.split('\0').next().unwrap_or_default().to_owned()
}

fn rollup(process: u32, key: &str) -> f64 {
    megabytes(&format!("/proc/{process}/smaps_rollup"), key)
}

fn status(process: u32, key: &str) -> f64 {
    megabytes(&format!("/proc/{process}/status"), key)
}

/// Returns the figure of a file that has a name and a number of kilobytes in each line.
fn megabytes(path: &str, key: &str) -> f64 {
    let status = fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0");
    let kilobytes: f64 = line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    kilobytes / 1024.0
}
