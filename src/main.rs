//! The `dormouse` program. Its logic is in the library; see the code map there.

use std::process::ExitCode;

fn main() -> ExitCode {
    keep_memory_private();
    keep_memory_small();
    dormouse::run(std::env::args_os())
}

/// Prevents core dumps and access by other processes of the user, since this process holds tokens.
/// Processes that it starts are not affected.
#[cfg(target_os = "linux")]
fn keep_memory_private() {
    // Without this protection dormouse works as well.
    let _ = nix::sys::prctl::set_dumpable(false);
}

#[cfg(not(target_os = "linux"))]
fn keep_memory_private() {}

/// Makes glibc return the memory of large messages to the system.
///
/// By default glibc learns from the first large block to keep such blocks, so that one result of 16
/// MB would stay resident forever (mallopt(3), `M_MMAP_THRESHOLD`).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "mallopt has no safe wrapper; it only sets two integers")]
fn keep_memory_small() {
    const LARGE: libc::c_int = 256 * 1024;
    // SAFETY: called before any other thread exists, with parameters that mallopt(3) documents.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_memory_small() {}
