//! Server-Sent Events: the frames of messages over HTTP (WHATWG HTML, section 9.2).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream::BoxStream};
use sse_stream::SseByteStream;

use super::Message;

/// One event. An event without data changes only the cursor or the delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The event's type, if it is not the default `message`.
    pub kind: Option<String>,
    pub data: Option<Bytes>,
    pub id: Option<String>,
    /// The delay before the client reconnects.
    pub retry: Option<Duration>,
}

/// The reason that a stream has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    #[error("no data for {0:?}")]
    Silent(Duration),
    #[error("an event exceeds maxMessageBytes ({limit}); raise it in the config")]
    Oversized { limit: usize },
    #[error("the stream was interrupted: {0}")]
    Broken(String),
}

/// Reads the events of a response body.
pub(crate) struct EventReader {
    events: SseByteStream<BoxStream<'static, Result<Bytes, io::Error>>>,
    /// Bytes since the last event. An event is never larger than that.
    unfinished: Arc<AtomicUsize>,
    limit: usize,
    silence: Option<Duration>,
}

impl EventReader {
    /// Creates a reader. `limit` is the maximum size of an event in bytes, `silence` the maximum
    /// time without any data.
    pub(crate) fn new<E>(
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        limit: usize,
        silence: Option<Duration>,
    ) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let unfinished = Arc::new(AtomicUsize::new(0));
        let counted = unfinished.clone();
        let body = body.map(move |chunk| {
            let chunk = chunk.map_err(io::Error::other)?;
            let total = counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            // A chunk may contain the end of one event and the start of another.
            if total > limit.saturating_add(chunk.len()) {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(chunk)
        });
        let body: BoxStream<'static, _> = match silence {
            None => body.boxed(),
            Some(silence) => with_deadline(body.boxed(), silence).boxed(),
        };
        Self { events: SseByteStream::new(body), unfinished, limit, silence }
    }

    /// Returns the next event; `None` at the end of the stream. An event that the stream leaves
    /// incomplete is dropped.
    ///
    /// # Errors
    /// If the stream breaks, is silent for too long, or sends an event that is too large.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>, StreamError> {
        match self.events.next().await {
            None => Ok(None),
            Some(Ok(event)) => {
                self.unfinished.store(0, Ordering::Relaxed);
                // One chunk may contain several events, so that the size of each is known only now.
                if event.data.as_ref().is_some_and(|data| data.len() > self.limit) {
                    return Err(StreamError::Oversized { limit: self.limit });
                }
                Ok(Some(SseEvent {
                    kind: event.event,
                    data: event.data.filter(|data| !data.is_empty()).map(Bytes::from),
                    id: event.id,
                    retry: event.retry.map(Duration::from_millis),
                }))
            }
            Some(Err(sse_stream::Error::Body(error))) => Err(self.classify_error(error.as_ref())),
            Some(Err(error)) => Err(StreamError::Broken(error.to_string())),
        }
    }

    fn classify_error(&self, error: &(dyn std::error::Error + 'static)) -> StreamError {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        match (kind, self.silence) {
            (Some(io::ErrorKind::FileTooLarge), _) => StreamError::Oversized { limit: self.limit },
            (Some(io::ErrorKind::TimedOut), Some(silence)) => StreamError::Silent(silence),
            _ => StreamError::Broken(root_cause(error)),
        }
    }
}

/// Returns the innermost cause, which is the most specific one.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn with_deadline(
    body: BoxStream<'static, Result<Bytes, io::Error>>,
    silence: Duration,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send {
    futures_util::stream::unfold(body, move |mut body| async move {
        match tokio::time::timeout(silence, body.next()).await {
            Ok(chunk) => Some((chunk?, body)),
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), body)),
        }
    })
}

/// A comment line, sent so that no proxy on the way closes the connection as idle.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Returns an event with a message, under `id` if the stream can be resumed after it.
pub(crate) fn message_event(message: &Message, id: Option<&str>) -> Vec<Bytes> {
    let (mut batch, mut chunks) = (BytesMut::new(), Vec::new());
    if let Some(id) = id {
        batch.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    batch.extend_from_slice(b"data: ");
    message.write(&mut batch, &mut chunks);
    batch.extend_from_slice(b"\n\n");
    chunks.push(batch.freeze());
    chunks
}

/// Returns an event without a message. It gives the client an id to resume from, and the delay
/// before it reconnects (2025-11-25, basic/transports, Sending Messages to the Server).
pub(crate) fn priming_event(id: &str, retry: Duration) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()).into()
}

/// Returns an event whose type is not `message`.
pub(crate) fn named_event(kind: &str, data: &str) -> Bytes {
    format!("event: {kind}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Notification, Raw};

    async fn read(chunks: Vec<Vec<u8>>, limit: usize) -> Vec<Result<SseEvent, String>> {
        let chunks = chunks.into_iter().map(|chunk| Ok::<_, io::Error>(Bytes::from(chunk)));
        let mut reader = EventReader::new(futures_util::stream::iter(chunks), limit, None);
        let mut events = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(event)) => events.push(Ok(event)),
                Ok(None) => return events,
                Err(error) => {
                    events.push(Err(error.to_string()));
                    return events;
                }
            }
        }
    }

    fn event(data: &'static str) -> SseEvent {
        SseEvent { data: Some(Bytes::from_static(data.as_bytes())), ..SseEvent::default() }
    }

    #[tokio::test]
    async fn events_do_not_depend_on_chunk_boundaries() {
        let expected = [
            SseEvent { id: Some("1".to_owned()), ..event("{\n\"a\":\"ä\"}") },
            SseEvent { retry: Some(Duration::from_millis(30)), ..SseEvent::default() },
            SseEvent { kind: Some("endpoint".to_owned()), ..event("/x") },
        ];
        for end in ["\n", "\r", "\r\n"] {
            let lines = [
                ": a comment",
                "id: 1",
                "data: {",
                "data:\"a\":\"ä\"}",
                "",
                "retry: 30",
                "",
                "event: endpoint",
                "unknown: field",
                "data: /x",
                "",
                "data: never finished",
            ];
            let text = format!("\u{feff}{}", lines.join(end)).into_bytes();
            for cut in 0..=text.len() {
                let chunks = vec![text[..cut].to_vec(), text[cut..].to_vec()];
                let events: Vec<SseEvent> =
                    read(chunks, 1000).await.into_iter().map(Result::unwrap).collect();
                assert_eq!(events, expected, "cut at {cut}, lines end in {end:?}");
            }
            let bytes = text.iter().map(|byte| vec![*byte]).collect();
            let events: Vec<SseEvent> =
                read(bytes, 1000).await.into_iter().map(Result::unwrap).collect();
            assert_eq!(events, expected);
        }
    }

    #[tokio::test]
    async fn oversized_event_ends_the_stream() {
        let small = b"data: 1\n\n".to_vec();
        let chunks = std::iter::repeat_n(small, 100).chain(std::iter::repeat_n(vec![b'x'; 20], 10));
        let events = read(chunks.collect(), 100).await;
        assert_eq!(events.len(), 101);
        insta::assert_snapshot!(events[100].as_ref().unwrap_err());
    }

    #[tokio::test(start_paused = true)]
    async fn silent_stream_times_out() {
        let body = futures_util::stream::pending::<Result<Bytes, io::Error>>();
        let mut reader = EventReader::new(body, 100, Some(Duration::from_secs(9)));
        assert!(matches!(reader.next().await, Err(StreamError::Silent(_))));
    }

    #[tokio::test]
    async fn written_events_can_be_read_back() {
        let params = Some(Raw::parse(r#"{"x":1e2}"#).unwrap());
        let notification = Message::Notification(Notification { method: "m".to_owned(), params });
        let mut chunks = message_event(&notification, Some("7-1"));
        chunks.insert(0, priming_event("7-0", Duration::from_secs(1)));
        chunks.insert(1, KEEP_ALIVE);
        let chunks = chunks.into_iter().map(|chunk| chunk.to_vec()).collect();
        let events = read(chunks, 1000).await;
        let primed = SseEvent {
            id: Some("7-0".to_owned()),
            retry: Some(Duration::from_secs(1)),
            ..SseEvent::default()
        };
        let carried = event(r#"{"jsonrpc":"2.0","method":"m","params":{"x":1e2}}"#);
        assert_eq!(events, [Ok(primed), Ok(SseEvent { id: Some("7-1".to_owned()), ..carried })]);
    }
}
