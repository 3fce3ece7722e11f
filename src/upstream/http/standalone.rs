//! The streams of a legacy session that are requested by GET: the standalone stream, and those of
//! requests that were interrupted (2025-11-25, basic/transports, Resumability and Redelivery).

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{HeaderName, HeaderValue};

use super::{
    super::inbound::ServerInbound,
    http_endpoint::{HttpRefusal, is_events},
    stream_backoff::StreamBackoff,
    streamable::{SILENCE_TIMEOUT, StreamableHttp},
};
use crate::{
    peer::{CallError, MessageHandler as _},
    wire::{
        on_one_line,
        sse::{EventReader, StreamError},
    },
};

/// Consecutive attempts without a stream after which a request fails, or the server counts as gone.
const MAX_FAILURES: u32 = 8;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The position up to which a stream has been read.
#[derive(Default)]
pub(super) struct StreamCursor {
    last_id: Option<HeaderValue>,
    backoff: StreamBackoff,
    /// Consecutive attempts that did not open a stream.
    failures: u32,
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

/// Requests the rest of a request's stream.
///
/// # Errors
/// If the stream cannot be resumed; the request may have been executed.
pub(super) async fn resume(
    carrier: &StreamableHttp,
    cursor: &mut StreamCursor,
) -> Result<EventReader, CallError> {
    while cursor.failures < MAX_FAILURES {
        tokio::time::sleep(cursor.backoff.next_delay(fastrand::f64())).await;
        match carrier.get(cursor).await {
            Ok(response) if is_events(&response) => {
                cursor.failures = 0;
                return Ok(carrier.events(response, None));
            }
            // A server that fails temporarily may still have the stream.
            Ok(response) if response.status().is_server_error() => {}
            Ok(response) => {
                carrier.notice_expiry(response.status());
                break;
            }
            Err(error) => tracing::debug!(server = carrier.server(), %error, "cannot resume"),
        }
        cursor.failures += 1;
    }
    Err(CallError::Broken("the stream ended and cannot be resumed".to_owned()))
}

/// Keeps the standalone stream open for the life of the session. Many servers have none.
pub(super) async fn listen(carrier: Arc<StreamableHttp>) {
    let mut cursor = StreamCursor::default();
    loop {
        match carrier.get(&cursor).await {
            Ok(response) if is_events(&response) => {
                cursor.failures = 0;
                let mut events = carrier.events(response, Some(SILENCE_TIMEOUT));
                read_events(&mut events, &mut cursor, carrier.inbound(), |data| {
                    carrier.receive_standalone(data);
                    true
                })
                .await;
            }
            Ok(response) if response.status().is_server_error() => {}
            Ok(response) => {
                let status = response.status();
                if !carrier.notice_expiry(status) {
                    let refusal = HttpRefusal::read(response).await;
                    let reason = refusal.error().to_string();
                    tracing::debug!(
                        server = carrier.server(),
                        reason,
                        "server offers no \
                        standalone stream"
                    );
                }
                return;
            }
            Err(_) if cursor.failures >= MAX_FAILURES => {
                tracing::warn!(server = carrier.server(), "server unreachable");
                return carrier.peer().close();
            }
            Err(error) => {
                cursor.failures += 1;
                tracing::debug!(server = carrier.server(), %error, "cannot listen");
            }
        }
        tokio::time::sleep(cursor.backoff.next_delay(fastrand::f64())).await;
    }
}
