//! The program of this process, to start it again.

use std::{io, path::PathBuf};

/// Returns a path under which this program can be started, even after an update has replaced its
/// file.
///
/// # Errors
/// If the system does not tell the path.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    // Linux keeps a replaced file for the processes that run it (proc(5), /proc/pid/exe).
    if cfg!(target_os = "linux") && !path.exists() {
        return Ok("/proc/self/exe".into());
    }
    Ok(path)
}
