//! Processes that have left the group of their server (`setsid`, daemons). They are found by a
//! variable that they have inherited from the server.
//!
//! Linux only: elsewhere no process can read another's environment without further rights, and such
//! processes stay. On Linux, a process that was started with another environment stays too.

/// The variable of a server's environment that names the dormouse and the start that it belongs to.
pub(super) const MARK_VARIABLE: &str = "DORMOUSE_PROCESS";

/// Ends the processes whose mark begins with `mark`: with SIGTERM, and after `grace` with SIGKILL.
/// Blocks.
#[cfg(target_os = "linux")]
pub(super) fn end(mark: &str, grace: std::time::Duration) {
    use nix::sys::signal::{Signal, kill};

    let mut strays = find(mark);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if strays.is_empty() {
            return;
        }
        for stray in &strays {
            // The process may have ended by itself.
            let _ = kill(*stray, signal);
        }
        let until = std::time::Instant::now() + grace;
        while !strays.is_empty() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(10));
            strays = find(mark);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_: &str, _: std::time::Duration) {}

/// Finds the processes whose mark begins with `mark`. Only processes of this user can be read.
#[cfg(target_os = "linux")]
fn find(mark: &str) -> Vec<nix::unistd::Pid> {
    let wanted = format!("{MARK_VARIABLE}={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_marked = |id: &i32| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(wanted.as_bytes()))
    };
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    ids.filter(|id| *id != own).filter(is_marked).map(nix::unistd::Pid::from_raw).collect()
}
