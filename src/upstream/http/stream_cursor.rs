//! Reading a stream of events, and the position from which it can be resumed.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderName, HeaderValue};

use super::{super::inbound::ServerInbound, stream_backoff::StreamBackoff};
use crate::{
    peer::MessageHandler as _,
    protocol::request_headers,
    wire::{
        on_one_line,
        sse::{EventReader, StreamError},
    },
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static(request_headers::LAST_EVENT_ID);

/// The position up to which a stream has been read.
#[derive(Default)]
pub(super) struct StreamCursor {
    last_id: Option<HeaderValue>,
    pub(super) backoff: StreamBackoff,
    /// Consecutive attempts that did not open a stream.
    pub(super) failures: u32,
}

impl StreamCursor {
    pub(super) fn can_resume(&self) -> bool {
        self.last_id.is_some()
    }

    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        Some((LAST_EVENT_ID, self.last_id.clone()?))
    }
}

/// The reason that reading a stream has ended.
pub(super) enum StreamEnd {
    /// The awaited message has arrived.
    Enough,
    /// The server has closed the stream.
    Finished,
    Failed(StreamError),
}

/// Reads events until `take` needs no more, or the stream ends.
pub(super) async fn read_events(
    events: &mut EventReader,
    cursor: &mut StreamCursor,
    inbound: &ServerInbound,
    mut receive_data: impl FnMut(&Bytes) -> bool,
) -> StreamEnd {
    loop {
        let event = match events.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return StreamEnd::Finished,
            Err(error) => return StreamEnd::Failed(error),
        };
        if let Some(id) = event.id.and_then(|id| HeaderValue::try_from(id).ok()) {
            cursor.last_id = Some(id);
        }
        if let Some(retry) = event.retry {
            cursor.backoff.request_delay(retry);
        }
        // Events of other types do not belong to MCP.
        let is_message = event.kind.is_none_or(|kind| kind.is_empty() || kind == "message");
        if let Some(data) = event.data.filter(|_| is_message) {
            cursor.backoff.reset();
            if !receive_data(&on_one_line(data)) {
                return StreamEnd::Enough;
            }
            inbound.ready().await;
        }
    }
}

/// Maximum time without data on the standalone stream before it is requested again. A connection
/// whose other end has vanished is noticed after this time at the latest.
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_mins(5);
