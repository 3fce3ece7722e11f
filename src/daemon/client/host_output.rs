//! The standard output of a thin client, on which the host reads its messages.

use std::{
    io::{self, Write as _},
    os::fd::AsFd as _,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::wire::Message;

/// Maximum time for a host that does not read to take its last answers.
const UNREAD_TIMEOUT: Duration = Duration::from_millis(500);
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// Size of the pieces of a line whose writing is noted one by one, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// Standard output, which several threads write line by line.
#[derive(Default)]
pub(super) struct HostOutput {
    /// The number of bytes that were written.
    written: AtomicU64,
    /// True once the host expects no answers that the client makes itself.
    is_ending: AtomicBool,
}

impl HostOutput {
    /// Writes a line as a whole.
    ///
    /// # Errors
    /// If the host has closed its end.
    pub(super) fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        for piece in line.chunks(PIECE_BYTES).chain([&b"\n"[..]]) {
            output.write_all(piece)?;
            self.written.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        output.flush()
    }

    /// Writes messages of the client itself, unless the host expects none any more.
    pub(super) fn tell(&self, messages: impl IntoIterator<Item = Message>) {
        if self.is_ending.load(Ordering::Relaxed) {
            return;
        }
        for message in messages {
            // The next answer finds out that the host does not read.
            let _ = self.write_line(&message.to_bytes());
        }
    }

    /// Notes that the client was asked to end.
    pub(super) fn note_ending(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Waits for a time, or until the host does not read what it is sent.
    pub(super) fn wait_while_read(&self, timeout: Duration) {
        let (mut waited, mut unread) = (Duration::ZERO, Duration::ZERO);
        let mut written = self.written.load(Ordering::Relaxed);
        while waited < timeout && unread < UNREAD_TIMEOUT {
            thread::sleep(CHECK_PERIOD);
            waited += CHECK_PERIOD;
            let now = self.written.load(Ordering::Relaxed);
            let is_stuck = now == written && is_full();
            unread = if is_stuck { unread + CHECK_PERIOD } else { Duration::ZERO };
            written = now;
        }
    }
}

/// Returns whether the host has closed its end.
pub(super) fn is_closed() -> bool {
    let output = io::stdout();
    // A closed end is reported even if no event is requested.
    let mut streams = [PollFd::new(output.as_fd(), PollFlags::empty())];
    poll(&mut streams, PollTimeout::ZERO).is_ok() && streams[0].any().unwrap_or(true)
}

/// Returns whether the host does not read fast enough.
fn is_full() -> bool {
    let output = io::stdout();
    let mut streams = [PollFd::new(output.as_fd(), PollFlags::POLLOUT)];
    poll(&mut streams, PollTimeout::ZERO).is_ok_and(|ready| ready == 0)
}
