//! HTTP+SSE of 2024-11-05: one stream carries everything from the server, and messages are posted
//! to the address in its first event.

use std::{sync::Arc, time::Duration};

use reqwest::{Response, header::HeaderMap};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{
    super::{AttemptError, inbound::ServerInbound},
    http_endpoint::{HttpEndpoint, HttpRefusal, is_events},
    queue::{self, UnsentGuard},
    stream_cursor::{SILENCE_TIMEOUT, StreamCursor, StreamEnd, read_events},
    streamable::POST_TIMEOUT,
};
use crate::{
    peer::{CallError, CallOptions, Peer, receive},
    protocol::method,
    wire::{
        Message, Outbox,
        sse::{EventReader, StreamError},
    },
};

const OPEN_PHASE: &str = "opening the stream";
/// Maximum time for a silent server to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the stream, and carries messages once the server has named the address for them.
pub(super) async fn open(
    endpoint: HttpEndpoint,
    inbound: ServerInbound,
    outbox: Outbox,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> Result<(), AttemptError> {
    let failed = |cause| AttemptError::Call { phase: OPEN_PHASE, cause };
    let response = endpoint.get(HeaderMap::new()).await.map_err(failed)?;
    if !is_events(&response) {
        return Err(failed(HttpRefusal::read(response).await.error()));
    }
    let mut events = endpoint.events(response, None);
    let address = read_address(&mut events, &endpoint.url).await?;
    let transport = Arc::new(SseTransport {
        endpoint: endpoint.at(address),
        inbound,
        tasks: tasks.clone(),
        stop,
    });
    tasks.spawn(transport.clone().read(events));
    tasks.spawn(transport.carry(outbox));
    Ok(())
}

/// Returns the address in the `endpoint` event. It must have the same origin, since it gets the
/// same headers.
async fn read_address(events: &mut EventReader, base: &Url) -> Result<Url, AttemptError> {
    let refused = |message: String| AttemptError::Refused {
        phase: OPEN_PHASE,
        code: i64::from(rmcp::model::ErrorCode::INTERNAL_ERROR.0),
        message,
    };
    loop {
        let event = match events.next().await {
            Ok(Some(event)) => event,
            Ok(None) => {
                return Err(refused("the stream ended before it named an endpoint".to_owned()));
            }
            Err(error) => return Err(refused(error.to_string())),
        };
        if event.kind.as_deref() != Some("endpoint") {
            continue;
        }
        let data = event.data.unwrap_or_default();
        let named = String::from_utf8_lossy(&data).trim().to_owned();
        return match base.join(&named) {
            Ok(address) if address.origin() == base.origin() => Ok(address),
            Ok(_) => Err(refused(format!("the endpoint {named:?} has another origin"))),
            Err(_) => Err(refused(format!("the endpoint {named:?} is not a URL"))),
        };
    }
}

struct SseTransport {
    endpoint: HttpEndpoint,
    inbound: ServerInbound,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl SseTransport {
    fn peer(&self) -> &Peer {
        self.inbound.peer()
    }

    /// Reads until the stream ends, which is the end of the connection: such a stream cannot be
    /// resumed.
    async fn read(self: Arc<Self>, mut events: EventReader) {
        let reading = async {
            let mut cursor = StreamCursor::default();
            let receive_data = |data: &bytes::Bytes| {
                receive(data, self.peer(), &self.inbound);
                true
            };
            read_events(&mut events, &mut cursor, &self.inbound, receive_data).await
        };
        let end = tokio::select! {
            end = reading => end,
            () = self.ping_until_silent() => {
                StreamEnd::Failed(StreamError::Silent(SILENCE_TIMEOUT + PING_TIMEOUT))
            }
            () = self.stop.cancelled() => StreamEnd::Finished,
        };
        if let StreamEnd::Failed(error) = end {
            tracing::warn!(server = self.inbound.server(), %error, "event stream interrupted");
        }
        self.peer().close();
    }

    /// Pings the server at intervals; returns when a ping is unanswered.
    async fn ping_until_silent(&self) {
        loop {
            tokio::time::sleep(SILENCE_TIMEOUT).await;
            let options = CallOptions::silent_for(PING_TIMEOUT);
            if self.peer().request(method::PING, None, options).await.is_err() {
                return;
            }
        }
    }

    async fn carry(self: Arc<Self>, outbox: Outbox) {
        while let Some(messages) = queue::take_messages(&outbox, &self.stop).await {
            for (message, guard) in messages {
                let is_initialized = matches!(&message,
                    Message::Notification(said) if said.method == method::INITIALIZED);
                let posting = self.clone().post(message, guard);
                if is_initialized {
                    // No message may overtake this one.
                    posting.await;
                } else {
                    self.tasks.spawn(posting);
                }
            }
        }
    }

    /// Posts a message; `None` if the server has not accepted it in time.
    async fn post_in_time(&self, message: &Message) -> Option<Result<Response, CallError>> {
        // Waiting for authorization may take longer; nothing is sent before.
        if let Err(error) = self.endpoint.wait_for_authorization().await {
            return Some(Err(error));
        }
        let posting = self.endpoint.post(message, HeaderMap::new());
        tokio::time::timeout(POST_TIMEOUT, posting).await.ok()
    }

    async fn post(self: Arc<Self>, message: Message, guard: UnsentGuard) {
        let posted = tokio::select! {
            posted = self.post_in_time(&message) => posted,
            () = self.stop.cancelled() => return,
        };
        // The answer arrives on the stream in any case.
        let Some(posted) = posted else { return };
        drop(guard);
        let error = match posted {
            Ok(response) if response.status().is_success() => return,
            Ok(response) => HttpRefusal::read(response).await.error(),
            Err(error) => error,
        };
        match message {
            Message::Request(request) => {
                if let Some(id) = request.id.as_u64() {
                    self.peer().fail(id, error);
                }
            }
            Message::Notification(_) | Message::Response(_) => {
                let server = self.inbound.server();
                tracing::debug!(server, %error, "cannot send a message to the server");
            }
        }
    }
}
