//! The daemons that serve the hosts of a test.

use std::{fs, path::Path};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// Returns whether the suite is run with the daemon: each host is served by one.
pub fn by_daemon() -> bool {
    std::env::var_os("TEST_BY_DAEMON").is_some_and(|value| value == "1")
}

/// Returns the daemons whose configs are in a directory.
pub fn daemons_of(directory: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let directory = directory.to_string_lossy();
    let is_daemon = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let mut words = words.split('\0');
        words.nth(1) == Some("daemon") && words.any(|word| word.starts_with(&*directory))
    };
    ids.filter(is_daemon).collect()
}

/// Ends the daemons whose configs are in a directory, and waits until they have ended.
pub fn end_daemons(directory: &Path) {
    for id in daemons_of(directory) {
        let process = Pid::from_raw(i32::try_from(id).expect("a process id"));
        // It may have ended by itself.
        let _ = kill(process, Signal::SIGTERM);
        for _ in 0..500 {
            if !super::is_alive(id) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
