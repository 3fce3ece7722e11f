//! The memory that the program's code takes while it serves.

/// Releases the pages of code that the start has used.
///
/// Half of them parse arguments and the config, and are not needed again. The others come back from
/// the page cache when they are used (madvise(2), `MADV_DONTNEED` on a private mapping of a file).
#[cfg(target_os = "linux")]
pub(super) fn give_back_start() {
    let Ok(program) = std::env::current_exe() else { return };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let of_program = maps.lines().filter(|line| line.ends_with(&*program.to_string_lossy()));
    for line in of_program {
        let mut fields = line.split_whitespace();
        let range = fields.next().and_then(|range| range.split_once('-'));
        if fields.next() == Some("r-xp")
            && let Some((start, end)) = range
            && let (Ok(start), Ok(end)) =
                (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16))
        {
            forget(start, end - start);
        }
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "madvise has no safe wrapper")]
fn forget(start: usize, length: usize) {
    use std::{ffi::c_void, ptr::NonNull};

    let Some(address) = NonNull::new(std::ptr::with_exposed_provenance_mut::<c_void>(start)) else {
        return;
    };
    // SAFETY: the range is that of this program's code, which the system has just named. It is
    // mapped from the file and never written to, so that reading it again gives the same bytes.
    let given_back = unsafe {
        nix::sys::mman::madvise(address, length, nix::sys::mman::MmapAdvise::MADV_DONTNEED)
    };
    if let Err(error) = given_back {
        tracing::debug!(%error, "cannot release the code pages of the start");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_back_start() {}
