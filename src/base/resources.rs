//! Errors that say something of this machine, and nothing of who is spoken to.

use std::io;

/// Whether the system is out of descriptors, processes, threads or memory, so that the same may succeed later.
pub fn is_exhaustion(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use nix::errno::Errno;
        let number = error.raw_os_error().map(Errno::from_raw);
        matches!(
            number,
            Some(Errno::EMFILE | Errno::ENFILE | Errno::EAGAIN | Errno::ENOMEM | Errno::ENOBUFS)
        )
    }
    #[cfg(not(unix))]
    {
        error.kind() == io::ErrorKind::OutOfMemory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_lack_of_descriptors_is_exhaustion_and_a_missing_file_is_none() {
        let of = |errno: nix::errno::Errno| io::Error::from_raw_os_error(errno as i32);
        assert!(is_exhaustion(&of(nix::errno::Errno::EMFILE)));
        assert!(!is_exhaustion(&of(nix::errno::Errno::ENOENT)));
    }
}
