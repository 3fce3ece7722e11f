//! Servers behind a URL: streamable HTTP in both eras, and HTTP+SSE of 2024-11-05.
//!
//! A transport empties the connection's outbox and gives responses to the same reader as a process
//! does. Of MCP it knows only the parts that HTTP requires: sessions, versions, and the headers
//! that repeat parts of a message.

mod http_client;
mod http_endpoint;
mod modern_headers;
mod queue;
mod sse_transport;
mod standalone;
mod stream_backoff;
mod stream_cursor;
mod streamable;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use http_client::HttpClient;

use super::{
    AttemptError,
    carrier::{Carrier, CarrierFuture, ShutdownPolicy},
    inbound::ServerInbound,
};
use crate::{
    catalog::ServerCatalog,
    config::{Framing, Remote},
    peer::Peer,
    wire::{Outbox, credentials::Credentials},
};
use http_endpoint::HttpEndpoint;
use streamable::StreamableHttp;

/// Maximum time for requests in flight to be answered after their session has expired.
const EXPIRED_SESSION_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum time for a server to confirm the end of its session.
const SESSION_END_TIMEOUT: Duration = Duration::from_millis(400);

/// The parameters of an HTTP connection.
pub(super) struct HttpConnector<'a> {
    pub(super) remote: &'a Remote,
    pub(super) client: &'a HttpClient,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    pub(super) inbound: ServerInbound,
    pub(super) outbox: Outbox,
    /// The server's catalog, as soon as it is known.
    pub(super) catalog: Arc<ArcSwapOption<ServerCatalog>>,
    pub(super) max_message_bytes: usize,
    pub(super) tasks: &'a TaskTracker,
    pub(super) shutdown: &'a CancellationToken,
}

/// The carrier of an HTTP connection, which only the actor holds.
pub(super) struct HttpCarrier {
    /// Dropped with the carrier, so that nothing that it started outlives a failed attempt.
    stop: tokio_util::sync::DropGuard,
    streamable: Option<Arc<StreamableHttp>>,
    /// Cancelled when dormouse ends.
    shutdown: CancellationToken,
}

impl HttpConnector<'_> {
    /// Opens the connection in one framing. Streamable HTTP sends nothing before the first message.
    pub(super) async fn open(self, framing: Framing) -> Result<HttpCarrier, AttemptError> {
        let (stop, shutdown) = (CancellationToken::new(), self.shutdown.clone());
        let endpoint =
            HttpEndpoint::new(self.remote, self.client, self.credentials, self.max_message_bytes)?;
        let (inbound, outbox, tasks) = (self.inbound, self.outbox, self.tasks.clone());
        if framing == Framing::Sse {
            sse_transport::open(endpoint, inbound, outbox, &tasks, stop.clone()).await?;
            return Ok(HttpCarrier { stop: stop.drop_guard(), streamable: None, shutdown });
        }
        let streamable =
            StreamableHttp::new(endpoint, inbound, self.catalog, tasks.clone(), stop.clone());
        tasks.spawn(streamable.clone().carry(outbox));
        Ok(HttpCarrier { stop: stop.drop_guard(), streamable: Some(streamable), shutdown })
    }
}

impl HttpCarrier {
    /// Lets requests in flight end after the server has forgotten the session, since it may still
    /// answer them.
    async fn settle(&self) {
        if let Some(streamable) = self.streamable.as_ref().filter(|carrier| carrier.is_expired()) {
            tokio::select! {
                _ = tokio::time::timeout(EXPIRED_SESSION_TIMEOUT, streamable.peer().settled()) => {}
                () = self.shutdown.cancelled() => {}
            }
        }
    }
}

impl Carrier for HttpCarrier {
    fn end(self: Box<Self>, peer: Peer, _: ShutdownPolicy) -> CarrierFuture<'static, ()> {
        Box::pin(async move {
            self.settle().await;
            peer.close();
            if let Some(streamable) = &self.streamable {
                let _ = tokio::time::timeout(SESSION_END_TIMEOUT, streamable.end_session()).await;
            }
            drop(self.stop);
        })
    }

    fn describe_exit(&self) -> CarrierFuture<'_, String> {
        Box::pin(std::future::ready(String::new()))
    }

    fn stderr_quote(&self) -> String {
        String::new()
    }

    fn is_expired(&self) -> bool {
        self.streamable.as_ref().is_some_and(|carrier| carrier.is_expired())
    }

    fn must_end_before_next(&self) -> bool {
        false
    }
}
