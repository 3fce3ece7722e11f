//! Lines from a stream that blocks.

use std::{
    io::{self, Read},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::wire::{Line, LineReader};

/// Splits a stream into lines, exactly as the daemon does.
pub(super) struct BlockingLines<R>(LineReader<Blocking<R>>);

impl<R: Read + Unpin> BlockingLines<R> {
    /// Creates a reader. `max_line` is the size limit of a line in bytes, without the line break.
    pub(super) fn new(io: R, max_line: usize) -> Self {
        Self(LineReader::new(Blocking(io), max_line))
    }

    /// Waits for the next line that is not blank; `None` at the end of the stream.
    ///
    /// # Errors
    /// If reading fails.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut next = pin!(self.0.next());
        // The stream is always ready, so this repeats only where the reader lets other tasks run.
        loop {
            if let Poll::Ready(line) = next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return line;
            }
        }
    }
}

/// A stream that blocks, as one that is always ready.
struct Blocking<R>(R);

impl<R: Read + Unpin> AsyncRead for Blocking<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = loop {
            match self.0.read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        Poll::Ready(read.map(|length| buffer.advance(length)))
    }
}
