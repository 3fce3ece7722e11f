//! The `dormouse` program. What it does is in the library; see its code map.

use std::process::ExitCode;

fn main() -> ExitCode {
    keep_memory_private();
    keep_memory_small();
    dormouse::cli::run(std::env::args_os())
}

/// Tokens are in it: no core dump is written of this process, and nobody else of this user's looks into it. What it starts
/// is not concerned.
#[cfg(target_os = "linux")]
fn keep_memory_private() {
    // Where it cannot be, there is no less to be done.
    let _ = nix::sys::prctl::set_dumpable(false);
}

#[cfg(not(target_os = "linux"))]
fn keep_memory_private() {}

/// Has glibc give the memory of large messages back to the system once they have passed.
///
/// By default it learns from the first large block to keep such blocks, so that one result of 16 MB
/// would stay resident for ever (mallopt(3), `M_MMAP_THRESHOLD`).
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
