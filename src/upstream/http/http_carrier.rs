//! The connection to a server over HTTP, from its opening to its end.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{HttpClient, http_endpoint::HttpEndpoint, sse_transport, streamable::StreamableHttp};
use crate::{
    catalog::ServerCatalog,
    config::{Framing, Remote},
    peer::Peer,
    upstream::{
        AttemptError,
        carrier::{Carrier, CarrierFuture, ShutdownPolicy},
        inbound::ServerInbound,
    },
    wire::{Outbox, credentials::Credentials},
};

/// Maximum time for requests in flight to be answered after their session has expired.
const EXPIRED_SESSION_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum time for a server to confirm the end of its session.
const SESSION_END_TIMEOUT: Duration = Duration::from_millis(400);

/// The parameters of an HTTP connection.
pub(in crate::upstream) struct HttpConnector<'a> {
    pub remote: &'a Remote,
    pub client: &'a HttpClient,
    pub credentials: Option<Arc<dyn Credentials>>,
    pub inbound: ServerInbound,
    pub outbox: Outbox,
    /// The server's catalog, as soon as it is known.
    pub catalog: Arc<ArcSwapOption<ServerCatalog>>,
    pub max_message_bytes: usize,
    pub tasks: &'a TaskTracker,
    pub shutdown: &'a CancellationToken,
}

/// The carrier of an HTTP connection, which only the actor holds.
pub(in crate::upstream) struct HttpCarrier {
    /// Dropped with the carrier, so that nothing that it started outlives a failed attempt.
    stop: tokio_util::sync::DropGuard,
    streamable: Option<Arc<StreamableHttp>>,
    /// Cancelled when dormouse ends.
    shutdown: CancellationToken,
}

impl HttpConnector<'_> {
    /// Opens the connection in one framing. Streamable HTTP sends nothing before the first message.
    pub(in crate::upstream) async fn open(
        self,
        framing: Framing,
    ) -> Result<HttpCarrier, AttemptError> {
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

    fn is_expired(&self) -> bool {
        self.streamable.as_ref().is_some_and(|carrier| carrier.is_expired())
    }
}
