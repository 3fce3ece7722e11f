//! The laws of the thin client for bytes from outside (see `crate::fuzz`).

use std::collections::HashSet;

use bytes::Bytes;

use super::session_memory::{DaemonNumber, SessionMemory};
use crate::{
    base::FuzzInput,
    wire::{Id, Message, Request, Response, parse_line},
};

/// A host is told only of requests that it has sent, and once all have failed none is left,
/// whatever the host and its daemons write.
///
/// Arguments: the method of notices. Each further line is one of the host (`h`), one of the daemon
/// (`d`), or the end of the daemon (any other byte).
pub(crate) fn sessions(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let notices = input.text_line();
    let mut memory = SessionMemory::default();
    let (mut daemon, mut sent): (DaemonNumber, HashSet<Id>) = (0, HashSet::new());
    while !input.rest().is_empty() {
        let line = input.line();
        let Some((kind, line)) = line.split_first() else { continue };
        let line = Bytes::copy_from_slice(line);
        match kind {
            b'h' => {
                sent.extend(requests(&line));
                let unsent = memory.note_sent(&line, daemon);
                if memory.addressee(&line).is_some_and(|addressee| addressee != daemon) {
                    memory.retract(unsent);
                }
            }
            b'd' => {
                memory.note_received(&line, daemon, &notices);
            }
            _ => {
                check_told(&memory.lose_daemon(daemon), &sent);
                daemon += 1;
                for message in memory.open(daemon, &[]) {
                    let line = message.to_bytes();
                    assert!(parse_line(&line).iter().all(Result::is_ok), "{line:?}");
                }
            }
        }
    }
    check_told(&memory.fail_all("the end"), &sent);
    assert!(memory.fail_all("the end").is_empty());
}

/// Returns the ids of the requests in a line.
fn requests(line: &Bytes) -> impl Iterator<Item = Id> {
    parse_line(line).into_iter().filter_map(|message| match message {
        Ok(Message::Request(Request { id, .. })) => Some(id),
        _ => None,
    })
}

fn check_told(messages: &[Message], sent: &HashSet<Id>) {
    for message in messages {
        if let Message::Response(Response { id, .. }) = message {
            assert!(id.as_ref().is_some_and(|id| sent.contains(id)), "{message:?}");
        }
    }
}
