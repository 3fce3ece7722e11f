//! Process groups, each of which is a server's process with all that it started.

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// Sends `signal` to a process group. Returns whether the group had any process left.
pub(super) fn signal_group(group: u32, signal: Signal) -> bool {
    let Ok(group) = i32::try_from(group) else { return false };
    killpg(Pid::from_raw(group), signal).is_ok()
}

/// Returns whether a process group has any process left.
pub(super) fn group_exists(group: u32) -> bool {
    let Ok(group) = i32::try_from(group) else { return false };
    killpg(Pid::from_raw(group), None).is_ok()
}
