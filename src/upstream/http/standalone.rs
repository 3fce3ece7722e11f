//! The streams of a legacy session that are requested by GET: the standalone stream, and those of
//! requests that were interrupted (2025-11-25, basic/transports, Resumability and Redelivery).

use std::sync::Arc;

use super::{
    http_endpoint::{HttpRefusal, is_events},
    stream_cursor::{SILENCE_TIMEOUT, StreamCursor, read_events},
    streamable::StreamableHttp,
};
use crate::{peer::CallError, wire::sse::EventReader};

/// Consecutive attempts without a stream after which a request fails, or the server counts as gone.
const MAX_FAILURES: u32 = 8;

impl StreamableHttp {
    /// Requests the rest of a request's stream.
    ///
    /// # Errors
    /// If the stream cannot be resumed; the request may have been executed.
    pub(super) async fn resume(&self, cursor: &mut StreamCursor) -> Result<EventReader, CallError> {
        while cursor.failures < MAX_FAILURES {
            tokio::time::sleep(cursor.backoff.next_delay(fastrand::f64())).await;
            match self.get(cursor).await {
                Ok(response) if is_events(&response) => {
                    cursor.failures = 0;
                    return Ok(self.events(response, None));
                }
                // A server that fails temporarily may still have the stream.
                Ok(response) if response.status().is_server_error() => {}
                Ok(response) => {
                    self.notice_expiry(response.status());
                    break;
                }
                Err(error) => {
                    tracing::debug!(server = self.server(), %error, "cannot resume a stream");
                }
            }
            cursor.failures += 1;
        }
        Err(CallError::Broken("the stream ended and cannot be resumed".to_owned()))
    }

    /// Keeps the standalone stream open for the life of the session. Many servers have none.
    pub(super) async fn listen(self: Arc<Self>) {
        let mut cursor = StreamCursor::default();
        loop {
            match self.get(&cursor).await {
                Ok(response) if is_events(&response) => {
                    cursor.failures = 0;
                    let mut events = self.events(response, Some(SILENCE_TIMEOUT));
                    read_events(&mut events, &mut cursor, self.inbound(), |data| {
                        self.receive_standalone(data);
                        true
                    })
                    .await;
                }
                Ok(response) if response.status().is_server_error() => {}
                Ok(response) => {
                    let status = response.status();
                    if !self.notice_expiry(status) {
                        let refusal = HttpRefusal::read(response).await;
                        let reason = refusal.error().to_string();
                        tracing::debug!(
                            server = self.server(),
                            reason,
                            "server offers no standalone stream"
                        );
                    }
                    return;
                }
                Err(_) if cursor.failures >= MAX_FAILURES => {
                    tracing::warn!(server = self.server(), "server unreachable");
                    return self.peer().close();
                }
                Err(error) => {
                    cursor.failures += 1;
                    let server = self.server();
                    tracing::debug!(server, %error, "cannot open the standalone stream");
                }
            }
            tokio::time::sleep(cursor.backoff.next_delay(fastrand::f64())).await;
        }
    }
}
