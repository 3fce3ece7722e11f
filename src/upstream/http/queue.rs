//! The queue of a connection, for transports that send each message separately.

use std::collections::VecDeque;

use tokio_util::sync::CancellationToken;

use crate::wire::{Message, Outbox};

/// A message that counts as waiting until it is sent.
pub(super) struct UnsentGuard {
    outbox: Outbox,
    weight: usize,
}

impl Drop for UnsentGuard {
    fn drop(&mut self) {
        self.outbox.note_written(self.weight);
    }
}

/// Returns the next messages; `None` if the connection is closed or stopped.
pub(super) async fn take_messages(
    outbox: &Outbox,
    stop: &CancellationToken,
) -> Option<Vec<(Message, UnsentGuard)>> {
    let mut messages = VecDeque::new();
    let has_more = tokio::select! {
        has_more = outbox.take(&mut messages) => has_more,
        () = stop.cancelled() => false,
    };
    let unsent = |message: Message| {
        let weight = message.weight();
        (message, UnsentGuard { outbox: outbox.clone(), weight })
    };
    has_more.then(|| messages.into_iter().map(unsent).collect())
}
