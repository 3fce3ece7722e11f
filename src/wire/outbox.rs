//! The sending half of a connection: a queue, and the one task that empties it.

use std::{
    collections::VecDeque,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::Notify,
};

use super::Message;

use crate::base::Lock;

/// The number of queued bytes above which producers wait.
const HIGH_WATER_BYTES: usize = 16 * 1024 * 1024;
/// The number of queued bytes above which notifications are dropped and requests are refused, even
/// if the other side reads well.
const MAX_QUEUED_BYTES: usize = 128 * 1024 * 1024;
/// Time without a read after which the reader of a queue above the mark counts as stalled.
const STALL_TIMEOUT: Duration = Duration::from_millis(500);

/// A queue of messages for one connection. Clones are cheap and share the queue; messages leave in
/// the order of `push`.
#[derive(Clone, Default)]
pub(crate) struct Outbox(Arc<OutboxInner>);

#[derive(Default)]
struct OutboxInner {
    queue: Lock<MessageQueue>,
    filled: Notify,
    written: Notify,
    /// The number of queued bytes above which notifications are dropped; `None` if their producers
    /// can wait, so that only `MAX_QUEUED_BYTES` applies.
    drops_above: Option<usize>,
}

struct MessageQueue {
    messages: VecDeque<Message>,
    /// Bytes in the queue, and bytes that the writer has taken and not written yet.
    waiting: usize,
    /// The time at which the other side last read something, or had nothing to read.
    last_moved: Instant,
    closed: bool,
}

impl Default for MessageQueue {
    fn default() -> Self {
        Self { messages: VecDeque::new(), waiting: 0, last_moved: Instant::now(), closed: false }
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Outbox {
    /// Creates an outbox that never slows its producers: above `bytes` queued bytes it drops
    /// notifications.
    pub(crate) fn dropping_above(bytes: usize) -> Self {
        Self(Arc::new(OutboxInner { drops_above: Some(bytes), ..OutboxInner::default() }))
    }

    /// Returns whether producers have to wait for the reader.
    pub(crate) fn holds_up(&self) -> bool {
        self.0.drops_above.is_none()
    }

    /// Queues a message. Returns `false` if the connection is closed, so that the message will not
    /// be sent.
    pub(crate) fn push(&self, message: Message) -> bool {
        let mut queue = self.0.queue.lock();
        if queue.closed {
            return false;
        }
        if queue.waiting > self.0.drops_above.unwrap_or(MAX_QUEUED_BYTES)
            && matches!(message, Message::Notification(_))
        {
            return true;
        }
        if queue.waiting == 0 {
            queue.last_moved = Instant::now();
        }
        queue.waiting += message.weight();
        queue.messages.push_back(message);
        drop(queue);
        self.0.filled.notify_one();
        true
    }

    /// Returns whether the queue is so long that producers should add nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.0.queue.lock().waiting > HIGH_WATER_BYTES
    }

    /// Returns whether the other side has stopped reading, or is too far behind.
    pub(crate) fn is_stalled(&self) -> bool {
        let queue = self.0.queue.lock();
        if let Some(most) = self.0.drops_above {
            return queue.waiting > most;
        }
        queue.waiting > MAX_QUEUED_BYTES
            || (queue.waiting > HIGH_WATER_BYTES && queue.last_moved.elapsed() > STALL_TIMEOUT)
    }

    /// Waits until the queue is below the mark, or closed. Readers whose input feeds this queue
    /// wait here.
    pub(crate) async fn ready(&self) {
        self.wait_until(|queue| queue.waiting <= HIGH_WATER_BYTES || queue.closed).await;
    }

    /// Lets the writer finish the queue, and then closes the stream.
    pub(crate) fn close(&self) {
        self.0.queue.lock().closed = true;
        self.0.filled.notify_one();
        self.0.written.notify_waiters();
    }

    async fn wait_until(&self, reached: impl Fn(&MessageQueue) -> bool) {
        loop {
            let mut written = std::pin::pin!(self.0.written.notified());
            written.as_mut().enable();
            if reached(&self.0.queue.lock()) {
                return;
            }
            written.await;
        }
    }

    /// Returns the number of bytes that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.lock().waiting
    }

    /// Returns whether nothing more can be queued.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.queue.lock().closed
    }

    /// Moves the queue into the empty `taken`. Returns `false` if the queue is closed and empty.
    /// Only one task may take at a time; its messages count as waiting until `note_written`.
    pub(crate) async fn take(&self, taken: &mut VecDeque<Message>) -> bool {
        loop {
            {
                let mut queue = self.0.queue.lock();
                if !queue.messages.is_empty() {
                    std::mem::swap(&mut queue.messages, taken);
                    return true;
                }
                if queue.closed {
                    return false;
                }
            }
            self.0.filled.notified().await;
        }
    }

    fn note_moved(&self) {
        self.0.queue.lock().last_moved = Instant::now();
    }

    /// Notes that messages of this size have been written.
    pub(crate) fn note_written(&self, bytes: usize) {
        let mut queue = self.0.queue.lock();
        queue.waiting = queue.waiting.saturating_sub(bytes);
        drop(queue);
        self.0.written.notify_waiters();
    }

    fn abandon(&self) {
        let mut queue = self.0.queue.lock();
        queue.closed = true;
        queue.waiting = 0;
        queue.messages.clear();
        drop(queue);
        self.0.written.notify_waiters();
    }
}

/// Writes the messages of `outbox` until it is closed, many of them with one system call.
///
/// A message is always written whole, even if its request is cancelled.
///
/// # Errors
/// If writing fails; the rest of the queue is dropped.
pub(crate) async fn write_messages<W: AsyncWrite + Unpin>(
    outbox: Outbox,
    mut io: W,
) -> io::Result<()> {
    let mut batch = BytesMut::new();
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut messages = VecDeque::new();
    while outbox.take(&mut messages).await {
        let mut weight = 0;
        for message in messages.drain(..) {
            weight += message.weight();
            message.write_line(&mut batch, &mut chunks);
        }
        chunks.push(batch.split().freeze());
        if let Err(error) = write_chunks(&outbox, &mut io, &mut chunks).await {
            outbox.abandon();
            return Err(error);
        }
        outbox.note_written(weight);
    }
    io.shutdown().await
}

async fn write_chunks<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    io: &mut W,
    chunks: &mut Vec<Bytes>,
) -> io::Result<()> {
    for mut chunk in chunks.drain(..) {
        while chunk.has_remaining() {
            if io.write_buf(&mut chunk).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            outbox.note_moved();
        }
    }
    io.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Notification, Raw};

    fn note(size: usize) -> Message {
        let params = Raw::encode(&["x".repeat(size)]);
        Message::Notification(Notification { method: "n".into(), params: Some(params) })
    }

    #[tokio::test]
    async fn messages_queued_before_close_are_written_in_order() {
        let outbox = Outbox::default();
        outbox.push(note(1));
        outbox.push(note(40_000));
        outbox.close();
        assert!(!outbox.push(note(1)));
        let mut written = Vec::new();
        write_messages(outbox, &mut written).await.unwrap();
        let lines: Vec<_> = written.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1] - lines[0], 39_999);
    }

    #[tokio::test]
    async fn detects_a_peer_that_does_not_read() {
        let outbox = Outbox::default();
        let (ours, theirs) = tokio::io::duplex(1024);
        let writer = tokio::spawn(write_messages(outbox.clone(), ours));
        outbox.push(note(HIGH_WATER_BYTES));
        assert!(outbox.is_full() && !outbox.is_stalled());
        tokio::time::sleep(STALL_TIMEOUT * 2).await;
        assert!(outbox.is_stalled());
        drop(theirs);
        assert!(writer.await.unwrap().is_err());
        outbox.ready().await;
        assert!(!outbox.push(note(1)));
    }
}
