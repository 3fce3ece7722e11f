//! What a connection has to send, for transports that send each message on its own.

use std::collections::VecDeque;

use tokio_util::sync::CancellationToken;

use crate::wire::{Message, Outbox};

/// A message that counts as waiting until it has left.
pub(super) struct Unsent {
    outbox: Outbox,
    weight: usize,
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.outbox.wrote(self.weight);
    }
}

/// The next messages; `None` when the connection is closed, or stopped.
pub(super) async fn next(
    outbox: &Outbox,
    stop: &CancellationToken,
) -> Option<Vec<(Message, Unsent)>> {
    let mut messages = VecDeque::new();
    let has_more = tokio::select! {
        has_more = outbox.take(&mut messages) => has_more,
        () = stop.cancelled() => false,
    };
    let unsent = |message: Message| {
        let weight = message.weight();
        (message, Unsent { outbox: outbox.clone(), weight })
    };
    has_more.then(|| messages.into_iter().map(unsent).collect())
}
