//! Sockets between processes of the user.

use std::{
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::Path,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket},
};
use tokio::net::UnixListener;

/// Extension of a socket that does not accept connections yet.
pub(crate) const UNNAMED_EXTENSION: &str = "new";

/// Creates a socket for this user alone. The socket gets its name when it accepts connections, and
/// replaces one that is there, so that no process sees one that accepts none.
///
/// # Errors
/// If the socket cannot be created.
pub(crate) fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let unnamed = path.with_extension(UNNAMED_EXTENSION);
    // A process that was killed may have left it.
    let _ = fs::remove_file(&unnamed);
    let named = |socket| {
        fs::set_permissions(&unnamed, fs::Permissions::from_mode(0o600))?;
        fs::rename(&unnamed, path)?;
        Ok(socket)
    };
    UnixListener::bind(&unnamed).and_then(named).inspect_err(|_| {
        let _ = fs::remove_file(&unnamed);
    })
}

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
