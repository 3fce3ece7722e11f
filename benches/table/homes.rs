//! The directories in which the measured programs store their files, separate from the user's own.

use std::{path::PathBuf, process::Command};

/// A home without stored catalogs.
pub const EMPTY_HOME: &str = "new";
/// A home in which the catalogs of all servers are stored.
pub const WARM_HOME: &str = "knowing";

/// Returns the command as a process that uses a home of this bench, and no daemon.
pub fn command(command: &[String], home: &str) -> Command {
    let mut started = Command::new(&command[0]);
    started.args(&command[1..]);
    started.env("DORMOUSE_DAEMON", "0");
    for (variable, directory) in
        [("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data"), ("XDG_RUNTIME_DIR", "run")]
    {
        started.env(variable, self::directory(home, directory));
    }
    started
}

/// Returns a directory of a home.
pub fn directory(home: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-homes").join(home).join(name)
}

/// Returns the command as a process that uses a home of this bench, and the daemon.
pub fn command_by_daemon(words: &[String], home: &str) -> Command {
    let mut started = command(words, home);
    started.env("DORMOUSE_DAEMON", "1");
    started
}

/// Removes the files of earlier runs.
pub fn clear() {
    let homes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-homes");
    // The directory does not exist before the first run.
    let _ = std::fs::remove_dir_all(homes);
}
