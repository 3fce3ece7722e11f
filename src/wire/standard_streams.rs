//! The standard input and output of this process, or a socket in their place, as asynchronous
//! streams.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub type StdioReader = Box<dyn AsyncRead + Send + Unpin>;
pub type StdioWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens standard input. A pipe or a socket, which is what hosts provide, is polled directly, which
/// is several times faster; a terminal or a file is read by a helper thread.
///
/// # Errors
/// If the descriptor cannot be duplicated.
pub fn open_input() -> io::Result<StdioReader> {
    #[cfg(unix)]
    if let Some(reader) = unix::open_input()? {
        return Ok(reader);
    }
    Ok(Box::new(tokio::io::stdin()))
}

/// Opens standard output, in the same way as [`open_input`].
///
/// # Errors
/// If the descriptor cannot be duplicated.
pub fn open_output() -> io::Result<StdioWriter> {
    #[cfg(unix)]
    if let Some(writer) = unix::open_output()? {
        return Ok(writer);
    }
    Ok(Box::new(tokio::io::stdout()))
}

type ClosedFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The streams from and to a host.
pub struct HostStreams {
    pub input: StdioReader,
    pub output: StdioWriter,
    /// Resolves when the host has closed its end of `output`.
    pub output_closed: ClosedFuture,
}

impl HostStreams {
    /// Opens the standard streams of this process.
    ///
    /// # Errors
    /// If a descriptor cannot be duplicated.
    pub fn standard() -> io::Result<Self> {
        Ok(Self { input: open_input()?, output: open_output()?, output_closed: output_closed()? })
    }

    /// Opens a socket in place of standard streams. The other end sees the end of the output when
    /// all duplicates of the socket are closed, as with a pipe.
    ///
    /// # Errors
    /// If the descriptor cannot be duplicated.
    #[cfg(unix)]
    pub(crate) fn of_socket(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        let closed = unix::closed(unix::open_socket(stream.try_clone()?)?);
        let input = unix::open_socket(stream.try_clone()?)?;
        let output = unix::KeptOpen(unix::open_socket(stream)?);
        Ok(Self { input: Box::new(input), output: Box::new(output), output_closed: closed })
    }
}

/// Resolves when the reader of standard output has closed it, even if nothing is being written.
///
/// # Errors
/// If the descriptor cannot be duplicated.
fn output_closed() -> io::Result<ClosedFuture> {
    #[cfg(unix)]
    if let Some(closed) = unix::output_closed()? {
        return Ok(closed);
    }
    Ok(Box::pin(std::future::pending()))
}

/// Capacity of a pipe, in bytes. With the usual 64 KiB a large message needs many turns of two
/// processes; much more for many pipes would exceed the limit of one user.
#[cfg(target_os = "linux")]
const PIPE_CAPACITY: i32 = 256 * 1024;

/// Enlarges a pipe where the system supports and allows it.
pub fn widen_pipe(pipe: &impl AsPipe) {
    #[cfg(target_os = "linux")]
    {
        // A failure, or something that is not a pipe, costs only speed.
        let _ = nix::fcntl::fcntl(pipe, nix::fcntl::FcntlArg::F_SETPIPE_SZ(PIPE_CAPACITY));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

#[cfg(unix)]
pub use std::os::fd::AsFd as AsPipe;
#[cfg(windows)]
pub use std::os::windows::io::AsHandle as AsPipe;

#[cfg(unix)]
mod unix {
    use std::{
        fs::File,
        io,
        os::{
            fd::{AsFd, OwnedFd},
            unix::{fs::FileTypeExt, net::UnixStream},
        },
        pin::Pin,
        task::{Context, Poll},
    };

    use tokio::{
        io::{AsyncWrite, Interest, Ready},
        net::unix::pipe,
    };

    use super::{ClosedFuture, StdioReader, StdioWriter};

    enum StandardStream {
        Pipe(File),
        Socket(UnixStream),
        Other,
    }

    fn open_standard(standard: impl AsFd) -> io::Result<StandardStream> {
        let owned: OwnedFd = standard.as_fd().try_clone_to_owned()?;
        let file = File::from(owned);
        let kind = file.metadata()?.file_type();
        Ok(if kind.is_fifo() {
            super::widen_pipe(&file);
            StandardStream::Pipe(file)
        } else if kind.is_socket() {
            StandardStream::Socket(UnixStream::from(OwnedFd::from(file)))
        } else {
            StandardStream::Other
        })
    }

    pub(super) fn open_socket(stream: UnixStream) -> io::Result<tokio::net::UnixStream> {
        stream.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(stream)
    }

    pub(super) fn open_input() -> io::Result<Option<StdioReader>> {
        Ok(match open_standard(io::stdin())? {
            StandardStream::Pipe(file) => Some(Box::new(pipe::Receiver::from_file(file)?)),
            StandardStream::Socket(stream) => Some(Box::new(open_socket(stream)?)),
            StandardStream::Other => None,
        })
    }

    /// See [`super::output_closed`]. Returns `None` where a closed reader cannot be detected before
    /// a write.
    pub(super) fn output_closed() -> io::Result<Option<ClosedFuture>> {
        Ok(match open_standard(io::stdout())? {
            StandardStream::Pipe(file) => {
                let pipe = pipe::Sender::from_file(file)?;
                Some(Box::pin(
                    async move { while !is_closed(pipe.ready(Interest::ERROR).await) {} },
                ))
            }
            StandardStream::Socket(stream) => Some(closed(open_socket(stream)?)),
            StandardStream::Other => None,
        })
    }

    /// The output of a socket that other owners may still write to.
    pub(super) struct KeptOpen(pub(super) tokio::net::UnixStream);

    impl AsyncWrite for KeptOpen {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            slices: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write_vectored(context, slices)
        }

        fn is_write_vectored(&self) -> bool {
            self.0.is_write_vectored()
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        /// Does not end the output of the socket, which is the same for all owners.
        fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_flush(context)
        }
    }

    /// Resolves when the other end of the socket is closed.
    pub(super) fn closed(socket: tokio::net::UnixStream) -> ClosedFuture {
        Box::pin(async move {
            // A socket whose other end is closed is no error, so that the interest is to write.
            while !is_closed(socket.ready(Interest::WRITABLE).await) {
                // Waits for the next change of the socket.
                let _ = socket
                    .try_io(Interest::WRITABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            }
        })
    }

    fn is_closed(ready: io::Result<Ready>) -> bool {
        // A stream whose state cannot be read counts as closed.
        ready.map_or(true, |ready| ready.is_error() || ready.is_write_closed())
    }

    pub(super) fn open_output() -> io::Result<Option<StdioWriter>> {
        Ok(match open_standard(io::stdout())? {
            StandardStream::Pipe(file) => Some(Box::new(pipe::Sender::from_file(file)?)),
            StandardStream::Socket(stream) => Some(Box::new(open_socket(stream)?)),
            StandardStream::Other => None,
        })
    }
}
