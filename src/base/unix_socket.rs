//! Connections to the sockets of other processes of the user.

use std::{io, os::unix::net::UnixStream, path::Path};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket},
};

/// Connects to a socket without waiting for the other process. Returns `None` if no process listens
/// on it.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if the process does not accept connections as fast as they are
/// made; others if the socket cannot be used.
pub(crate) fn connect_at_once(path: &Path) -> io::Result<Option<UnixStream>> {
    let address = UnixAddr::new(path)?;
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
    let stream = UnixStream::from(socket);
    // A process that this one starts must not inherit the connection.
    fcntl(&stream, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // A connection to a process that does not accept would wait forever.
    stream.set_nonblocking(true)?;
    match connect(std::os::fd::AsRawFd::as_raw_fd(&stream), &address).map_err(io::Error::from) {
        Ok(()) => {
            stream.set_nonblocking(false)?;
            Ok(Some(stream))
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
