//! Errors that describe the state of this machine, not of the peer.

use std::io;

/// Returns whether the system is out of file descriptors, processes, threads or memory, so that the
/// same operation may succeed later.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
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

/// Returns the error for a thread that the system cannot start.
pub(super) fn no_thread() -> io::Error {
    #[cfg(unix)]
    {
        io::Error::from_raw_os_error(nix::errno::Errno::EAGAIN as i32)
    }
    #[cfg(not(unix))]
    {
        io::ErrorKind::OutOfMemory.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_threads_is_exhaustion() {
        assert!(is_exhaustion(&no_thread()));
    }

    #[cfg(unix)]
    #[test]
    fn running_out_of_descriptors_is_exhaustion() {
        let of = |errno: nix::errno::Errno| io::Error::from_raw_os_error(errno as i32);
        assert!(is_exhaustion(&of(nix::errno::Errno::EMFILE)));
        assert!(!is_exhaustion(&of(nix::errno::Errno::ENOENT)));
    }
}
