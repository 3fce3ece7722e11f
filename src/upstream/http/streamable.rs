//! Streamable HTTP, both eras: each message is a POST, and each request is answered in its own
//! response.

use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use reqwest::{Response, StatusCode, header::HeaderMap};
use tokio::task::AbortHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    super::inbound::ServerInbound,
    http_endpoint::{HttpEndpoint, HttpRefusal, ResponseBody},
    modern_headers,
    queue::{self, UnsentGuard},
    server_session::{ServerSession, SessionExpiry},
    stream_cursor::{self, SILENCE_TIMEOUT, StreamCursor, StreamEnd},
};
use crate::{
    base::Lock,
    catalog::ServerCatalog,
    peer::{CallError, Peer, receive},
    protocol::method,
    wire::{
        Id, InvalidMessage, Message, Notification, Outbox, Request, Response as Reply, edit,
        parse_line,
        sse::{EventReader, StreamError},
    },
};

/// Maximum time for a server to accept a message that has no answer.
pub(super) const POST_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct StreamableHttp {
    endpoint: HttpEndpoint,
    inbound: ServerInbound,
    catalog: Arc<ArcSwapOption<ServerCatalog>>,
    session: ServerSession,
    in_flight: Lock<HashMap<u64, AbortHandle>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl StreamableHttp {
    pub(super) fn new(
        endpoint: HttpEndpoint,
        inbound: ServerInbound,
        catalog: Arc<ArcSwapOption<ServerCatalog>>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let (session, in_flight) = Default::default();
        Arc::new(Self { endpoint, inbound, catalog, session, in_flight, tasks, stop })
    }

    pub(super) fn peer(&self) -> &Peer {
        self.inbound.peer()
    }

    pub(super) fn is_expired(&self) -> bool {
        self.session.is_expired()
    }

    /// Sends the messages of the connection until it is closed.
    pub(super) async fn carry(self: Arc<Self>, outbox: Outbox) {
        while let Some(messages) = queue::take_messages(&outbox, &self.stop).await {
            for (message, guard) in messages {
                tokio::select! {
                    () = self.send(message, guard) => {}
                    () = self.stop.cancelled() => return,
                }
            }
        }
    }

    async fn send(self: &Arc<Self>, message: Message, guard: UnsentGuard) {
        match message {
            Message::Request(request) => self.start_request(request, guard),
            Message::Notification(notification) => match notification.method.as_str() {
                // No message may overtake this one.
                method::INITIALIZED => {
                    self.post_unanswered(Message::Notification(notification), guard).await;
                    self.spawn(self.clone().listen());
                }
                method::CANCELLED => self.cancel(notification, guard),
                _ => self.post_in_background(Message::Notification(notification), guard),
            },
            Message::Response(reply) => self.post_in_background(Message::Response(reply), guard),
        }
    }

    fn start_request(self: &Arc<Self>, request: Request, guard: UnsentGuard) {
        // All ids of dormouse's requests are numbers.
        let Some(id) = request.id.as_u64() else { return };
        let carrier = self.clone();
        let mut in_flight = self.in_flight.lock();
        let task = self.tasks.spawn(async move {
            let stop = carrier.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = carrier.exchange(id, request, guard) => {}
            }
            carrier.in_flight.lock().remove(&id);
        });
        in_flight.insert(id, task.abort_handle());
    }

    /// Cancels a request. A modern server notices the end of the response, a legacy one is notified
    /// as well (2026-07-28 and 2025-11-25, basic/transports).
    fn cancel(self: &Arc<Self>, notification: Notification, guard: UnsentGuard) {
        let id = notification.params.as_ref().and_then(|params| edit::get(params, "requestId"));
        let task = id.and_then(Id::new).and_then(|id| self.in_flight.lock().remove(&id.as_u64()?));
        if self.session.has_version() {
            self.post_in_background(Message::Notification(notification), guard);
        }
        if let Some(task) = task {
            task.abort();
        }
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    fn post_in_background(self: &Arc<Self>, message: Message, guard: UnsentGuard) {
        let carrier = self.clone();
        self.spawn(async move { carrier.post_unanswered(message, guard).await });
    }

    /// Posts a message that has no answer.
    async fn post_unanswered(&self, message: Message, _guard: UnsentGuard) {
        let posting = self.endpoint.post(&message, self.session.headers());
        let Ok(posted) = tokio::time::timeout(POST_TIMEOUT, posting).await else {
            tracing::debug!(server = self.inbound.server(), "server refused a notification");
            return;
        };
        match posted {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                let refusal = HttpRefusal::read(response).await;
                self.notice_expiry(refusal.status);
                let error = refusal.error();
                tracing::debug!(server = self.inbound.server(), %error, "refused a notification");
            }
            Err(error) => {
                tracing::debug!(
                    server = self.inbound.server(), %error,
                    "cannot send a notification",
                );
            }
        }
    }

    /// Posts a request, and ensures that it is answered or failed.
    async fn exchange(&self, id: u64, request: Request, guard: UnsentGuard) {
        let mirrored = modern_headers::build(&request, self.catalog.load().as_deref());
        let is_initialize = request.method == method::INITIALIZE;
        let headers = match mirrored {
            Some(headers) => headers,
            None if is_initialize => HeaderMap::new(),
            None => self.session.headers(),
        };
        let is_stream = request.method == method::SUBSCRIPTIONS_LISTEN;
        let posted = self.endpoint.post(&Message::Request(request), headers).await;
        drop(guard);
        let exchanged = match posted {
            Ok(response) => self.read(id, response, is_initialize, is_stream).await,
            Err(error) => Err(error),
        };
        let broken = || CallError::Broken("the stream ended".to_owned());
        let cause = exchanged.err().unwrap_or_else(broken);
        // Answered requests are not pending any more, so that this fails only unanswered ones.
        self.peer().fail(id, cause);
    }

    async fn read(
        &self,
        id: u64,
        response: Response,
        is_initialize: bool,
        is_stream: bool,
    ) -> Result<(), CallError> {
        if !response.status().is_success() {
            return self.read_refusal(id, &HttpRefusal::read(response).await);
        }
        if is_initialize {
            self.session.store_id(response.headers());
        }
        let silence = is_stream.then_some(SILENCE_TIMEOUT);
        let status = response.status().as_u16();
        match self.endpoint.body(response, silence).await? {
            Some(ResponseBody::Json(body)) => {
                self.receive_messages(id, &body, is_initialize);
                if !self.peer().is_waiting(id) {
                    return Ok(());
                }
                match parse_line(&body).as_slice() {
                    // The server could not read the id of the request.
                    [Ok(Message::Response(Reply { id: None, outcome: Err(problem) }))] => {
                        self.peer().settle(id, Err(problem.clone()));
                        Ok(())
                    }
                    [Err(InvalidMessage::Unparsable { .. })] => {
                        Err(CallError::Malformed("the answer is not JSON"))
                    }
                    _ => Err(CallError::Malformed("the answer belongs to another request")),
                }
            }
            Some(ResponseBody::Events(events)) => {
                self.read_response_stream(id, events, is_initialize).await
            }
            None => {
                let detail = ": the answer is neither JSON nor a stream of events".to_owned();
                Err(CallError::Refused { status, detail })
            }
        }
    }

    /// Reads a refusal. If it carries a JSON-RPC error, that is the answer.
    fn read_refusal(&self, id: u64, refusal: &HttpRefusal) -> Result<(), CallError> {
        if self.notice_expiry(refusal.status) {
            // The server does not know the request, so that it can be sent again in a new session.
            return Err(CallError::NotSent);
        }
        let error = refusal.error();
        if refusal.status != StatusCode::UNAUTHORIZED
            && let [Ok(Message::Response(Reply { outcome: Err(problem), .. }))] =
                parse_line(&refusal.body).as_slice()
        {
            self.peer().settle(id, Err(problem.clone()));
            return Ok(());
        }
        Err(error)
    }

    /// Returns whether this status means that the server has forgotten the session.
    pub(super) fn notice_expiry(&self, status: StatusCode) -> bool {
        let expiry = self.session.notice_expiry(status);
        if expiry == SessionExpiry::New {
            tracing::info!(server = self.inbound.server(), "session expired; starting another");
            self.peer().retire();
        }
        expiry != SessionExpiry::No
    }

    /// Reads the stream of a request. A legacy stream that was interrupted after an event with an
    /// id is requested again.
    async fn read_response_stream(
        &self,
        id: u64,
        mut events: EventReader,
        is_initialize: bool,
    ) -> Result<(), CallError> {
        let mut cursor = StreamCursor::default();
        loop {
            let end = stream_cursor::read_events(&mut events, &mut cursor, &self.inbound, |data| {
                self.receive_messages(id, data, is_initialize);
                self.peer().is_waiting(id)
            });
            match end.await {
                StreamEnd::Enough => return Ok(()),
                StreamEnd::Failed(StreamError::Oversized { limit }) => {
                    return Err(CallError::OversizedEvent { limit });
                }
                StreamEnd::Finished if !cursor.can_resume() => {
                    return Err(CallError::Broken("the stream ended".to_owned()));
                }
                StreamEnd::Failed(error) if !cursor.can_resume() => {
                    return Err(CallError::Broken(error.to_string()));
                }
                StreamEnd::Finished | StreamEnd::Failed(_) => {
                    events = self.resume(&mut cursor).await?;
                }
            }
        }
    }

    /// Handles the messages that answer a request.
    fn receive_messages(&self, id: u64, text: &Bytes, is_initialize: bool) {
        if is_initialize {
            self.session.store_version(text);
        }
        receive(text, self.peer(), &self.inbound.caused_by(id));
    }

    /// Handles the messages of a stream that belongs to no request.
    pub(super) fn receive_standalone(&self, text: &Bytes) {
        receive(text, self.peer(), &self.inbound);
    }

    pub(super) async fn get(&self, cursor: &StreamCursor) -> Result<Response, CallError> {
        let mut headers = self.session.headers();
        headers.extend(cursor.header());
        self.endpoint.get(headers).await
    }

    pub(super) fn events(&self, response: Response, silence: Option<Duration>) -> EventReader {
        self.endpoint.events(response, silence)
    }

    pub(super) fn inbound(&self) -> &ServerInbound {
        &self.inbound
    }

    pub(super) fn server(&self) -> &str {
        self.inbound.server()
    }

    /// Ends the session, if there is one.
    pub(super) async fn end_session(&self) {
        if self.session.is_open() {
            // A server that cannot end sessions on request forgets them after some time.
            let _ = self.endpoint.delete(self.session.headers()).await;
        }
    }
}
