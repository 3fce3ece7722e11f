//! Where what is measured keeps its files: not where the user's are.

use std::{path::PathBuf, process::Command};

/// A home in which nothing is known of any server.
pub const NEW: &str = "new";
/// One in which the catalogs of the servers have been learned.
pub const KNOWING: &str = "knowing";

/// The program of `command`, in a home of this bench.
pub fn command(command: &[String], home: &str) -> Command {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-homes").join(home);
    let mut started = Command::new(&command[0]);
    started.args(&command[1..]);
    for (variable, directory) in
        [("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data"), ("XDG_RUNTIME_DIR", "run")]
    {
        started.env(variable, place.join(directory));
    }
    started
}

/// Forgets what earlier runs have left.
pub fn clear() {
    let homes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-homes");
    // It is not there before the first run.
    let _ = std::fs::remove_dir_all(homes);
}
