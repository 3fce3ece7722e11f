//! The messages that one response carries, and the responses that resume it.

use std::{any::Any, collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::Stream;
use tokio_util::sync::CancellationToken;

use crate::{
    base::Lock,
    wire::{Message, Outbox, sse},
};

/// Time without an event after which a comment shows that the connection is alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(25);
/// Time after which a host may resume the stream.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of bytes that wait for a host that does not read, not counting the answers to its
/// own requests.
pub(super) const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;
/// Limits of the events of a stream that can be sent again: their bytes and their number.
const MAX_KEPT_BYTES: usize = 1024 * 1024;
const MAX_KEPT_EVENTS: usize = 512;

pub(super) struct MessageStream {
    outbox: Outbox,
    state: Lock<StreamState>,
    /// Ends the stream even if more messages could come.
    stop: CancellationToken,
    /// The number of the stream in its session; `None` if it cannot be resumed.
    number: Option<u64>,
    /// True if the stream begins with an event that carries only an id, which older hosts cannot
    /// read.
    is_primed: bool,
}

#[derive(Default)]
struct StreamState {
    /// The events that were sent last, with their numbers.
    kept: VecDeque<(u64, Vec<Bytes>)>,
    kept_bytes: usize,
    last_event: u64,
    /// Bytes that were taken out of the outbox and have not been sent.
    taken: usize,
    /// Cancelled when another response continues the stream.
    reader: CancellationToken,
    /// True if a response reads the stream.
    is_read: bool,
}

impl MessageStream {
    /// Creates a stream that ends with its response.
    pub(super) fn once(stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self::new(stop, None, false))
    }

    /// Creates a stream that can be resumed under this number.
    pub(super) fn resumable(stop: CancellationToken, number: u64, is_primed: bool) -> Arc<Self> {
        Arc::new(Self::new(stop, Some(number), is_primed))
    }

    fn new(stop: CancellationToken, number: Option<u64>, is_primed: bool) -> Self {
        let outbox = Outbox::dropping_above(MAX_WAITING_BYTES);
        Self { outbox, state: Lock::default(), stop, number, is_primed }
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns whether the stream has no more messages to come and no reader. A host may still
    /// resume it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.outbox.is_closed() && !self.state.lock().is_read
    }

    pub(super) fn is_read(&self) -> bool {
        self.state.lock().is_read
    }

    /// Returns the next messages; `None` if there will be none.
    pub(super) async fn take(&self) -> Option<Vec<Message>> {
        let mut messages = VecDeque::new();
        if !self.outbox.take(&mut messages).await {
            return None;
        }
        self.state.lock().taken += messages.iter().map(Message::weight).sum::<usize>();
        Some(messages.into())
    }

    /// Tells the outbox that all messages taken out of it have been sent.
    pub(super) fn confirm_sent(&self) {
        let taken = std::mem::take(&mut self.state.lock().taken);
        self.outbox.note_written(taken);
    }

    /// Returns whether all events after the event `after` are still available.
    pub(super) fn reaches_back_to(&self, after: u64) -> bool {
        let state = self.state.lock();
        let oldest = state.kept.front().map_or(state.last_event + 1, |(event, _)| *event);
        after <= state.last_event && oldest <= after.saturating_add(1)
    }

    /// Reads the stream, beginning with the messages `first` that were taken out of it, or again
    /// after the event `after`. An earlier reader ends. `keep` is dropped with the returned stream.
    pub(super) fn events<K: Any + Send>(
        self: &Arc<Self>,
        first: Vec<Message>,
        after: Option<u64>,
        keep: K,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<K> {
        let reader = CancellationToken::new();
        let mut ready = VecDeque::new();
        {
            let mut state = self.state.lock();
            std::mem::replace(&mut state.reader, reader.clone()).cancel();
            state.is_read = true;
            match (after, self.number) {
                (Some(after), _) => {
                    let missed = state.kept.iter().filter(|(event, _)| *event > after);
                    ready.extend(missed.flat_map(|(_, chunks)| chunks.iter().cloned()));
                }
                (None, Some(number)) if self.is_primed => {
                    let id = format!("{number}-{}", state.last_event);
                    ready.push_back(sse::priming_event(&id, RETRY_DELAY));
                }
                (None, _) => {}
            }
        }
        for message in first {
            ready.extend(self.encode(&message));
        }
        let reading = StreamReader { stream: self.clone(), ready, reader, _keep: keep };
        futures_util::stream::unfold(reading, |mut reading| async move {
            let chunk = reading.next().await?;
            Some((Ok(chunk), reading))
        })
    }

    /// Encodes a message as an event, and keeps it for a host that resumes the stream.
    fn encode(&self, message: &Message) -> Vec<Bytes> {
        let Some(number) = self.number else { return sse::message_event(message, None) };
        let mut state = self.state.lock();
        state.last_event += 1;
        let event = state.last_event;
        let chunks = sse::message_event(message, Some(&format!("{number}-{event}")));
        state.kept_bytes += chunks.iter().map(Bytes::len).sum::<usize>();
        state.kept.push_back((event, chunks.clone()));
        // The latest event stays however large it is: it may be the answer to the request.
        while state.kept.len() > MAX_KEPT_EVENTS
            || state.kept_bytes > MAX_KEPT_BYTES && state.kept.len() > 1
        {
            let Some((_, dropped)) = state.kept.pop_front() else { break };
            state.kept_bytes -= dropped.iter().map(Bytes::len).sum::<usize>();
        }
        chunks
    }
}

/// One response that reads a stream.
struct StreamReader<K> {
    stream: Arc<MessageStream>,
    ready: VecDeque<Bytes>,
    reader: CancellationToken,
    _keep: K,
}

impl<K> Drop for StreamReader<K> {
    fn drop(&mut self) {
        if !self.reader.is_cancelled() {
            self.stream.state.lock().is_read = false;
        }
    }
}

impl<K> StreamReader<K> {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.ready.pop_front() {
            return Some(chunk);
        }
        // The connection asks for more, so that everything before has been sent.
        self.stream.confirm_sent();
        let messages = tokio::select! {
            biased;
            () = self.reader.cancelled() => return None,
            messages = self.stream.take() => messages?,
            // Messages that were available were sent by the branch above.
            () = self.stream.stop.cancelled() => return None,
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => return Some(sse::KEEP_ALIVE),
        };
        for message in &messages {
            self.ready.extend(self.stream.encode(message));
        }
        self.ready.pop_front()
    }
}

/// Parses the stream and the event that a `Last-Event-ID` names.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;
    use crate::wire::{Notification, Raw};

    fn push(stream: &MessageStream, bytes: usize) {
        let params = Some(Raw::encode(&serde_json::json!({"x": "x".repeat(bytes)})));
        let method = "m".to_owned();
        stream.outbox().push(Message::Notification(Notification { method, params }));
    }

    /// Reads all events that are available, and returns their ids.
    async fn read(stream: &Arc<MessageStream>, after: Option<u64>) -> Vec<String> {
        let events = stream.events(Vec::new(), after, ());
        let texts = events.map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap());
        let all: Vec<String> = texts.collect().await;
        let lines = all.concat();
        lines.lines().filter_map(|line| Some(line.strip_prefix("id: ")?.to_owned())).collect()
    }

    #[tokio::test]
    async fn missed_events_are_resent_and_gaps_are_detected() {
        let stream = MessageStream::resumable(CancellationToken::new(), 7, true);
        for _ in 0..3 {
            push(&stream, 10);
        }
        // Larger than all that may be kept together, but the last event: it may be the answer.
        push(&stream, MAX_KEPT_BYTES * 2);
        stream.outbox().close();
        assert_eq!(read(&stream, None).await, ["7-0", "7-1", "7-2", "7-3", "7-4"]);
        assert!(stream.is_abandoned());
        assert!(!stream.reaches_back_to(2) && stream.reaches_back_to(3));
        assert!(!stream.reaches_back_to(5), "an event that has never been");
        assert_eq!(read(&stream, Some(3)).await, ["7-4"]);
        assert_eq!(read(&stream, Some(4)).await, [""; 0]);
    }

    #[tokio::test]
    async fn second_reader_ends_the_first() {
        let stream = MessageStream::resumable(CancellationToken::new(), 0, false);
        let first = stream.events(Vec::new(), None, ());
        let second = stream.events(Vec::new(), None, ());
        assert_eq!(first.count().await, 0);
        push(&stream, 1);
        stream.outbox().close();
        assert_eq!(second.count().await, 1);
    }
}
