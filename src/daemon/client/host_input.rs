//! The standard input of a thin client, which also ends when the host stops reading.

use std::{
    io::{self, Read},
    os::fd::AsFd as _,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

/// Standard input without a buffer, which ends when the host closes it or standard output.
pub(super) struct HostInput;

impl Read for HostInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (input, output) = (io::stdin(), io::stdout());
        loop {
            // A closed output is reported even if no event is requested.
            let mut streams = [
                PollFd::new(input.as_fd(), PollFlags::POLLIN),
                PollFd::new(output.as_fd(), PollFlags::empty()),
            ];
            match poll(&mut streams, PollTimeout::NONE) {
                Ok(_) if has_event(&streams[1]) => return Ok(0),
                Ok(_) => return Ok(nix::unistd::read(&input, buffer)?),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn has_event(stream: &PollFd<'_>) -> bool {
    stream.any().unwrap_or(true)
}
