//! The state of a server that its actor and all handles share.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    ChangeAudience, ServerObserver, Status, command::ActorCommand, connection::ServerConnection,
    fetch::FetchedLists, server_subscriptions::ServerSubscriptions, stale_lists::StaleLists,
    stderr::StderrTail,
};
use crate::{
    base::Lock,
    catalog::{LoadOrigin, ServerCatalog},
    config::ServerConfig,
    peer::CallOptions,
    protocol::{Era, method},
    wire::Raw,
};

pub(super) struct SharedServer {
    pub(super) config: Arc<ServerConfig>,
    pub(super) observer: Arc<dyn ServerObserver>,
    pub(super) current: ArcSwapOption<ServerConnection>,
    /// The known catalog. Transports repeat parts of it in headers.
    pub(super) catalog: Arc<ArcSwapOption<ServerCatalog>>,
    pub(super) subscriptions: Arc<ServerSubscriptions>,
    /// The lists that the server has announced as changed.
    pub(super) stale: Arc<StaleLists>,
    pub(super) status: Lock<Status>,
    pub(super) stderr: Arc<StderrTail>,
    pub(super) commands: mpsc::UnboundedSender<ActorCommand>,
    pub(super) stop: CancellationToken,
}

impl SharedServer {
    pub(super) fn is_known(&self) -> bool {
        self.catalog.load().is_some()
    }

    pub(super) async fn tell_log_level(&self, connection: &ServerConnection) {
        let Some(level) = self.subscriptions.log_level() else { return };
        let greeting = &connection.greeting;
        if greeting.era == Era::Legacy && greeting.offers("logging") {
            let options = CallOptions::silent_for(self.config.settings.timeouts.request);
            let params = Raw::encode(&serde_json::json!({"level": level.name()}));
            let told =
                connection.peer.request(method::LOGGING_SET_LEVEL, Some(params), options).await;
            if !matches!(told, Ok(Ok(_))) {
                tracing::debug!(server = self.config.name, ?told, "server refused the log level");
            }
        }
    }

    /// Publishes the known catalog with these lists in place of its own.
    pub(super) fn merge(&self, lists: FetchedLists, audience: ChangeAudience) {
        let _order = self.stale.merge_alone();
        if let Some(known) = self.catalog.load_full() {
            let merged = lists.merged_into(ServerCatalog::clone(&known));
            // A change loads nothing that no host has requested.
            self.publish(merged, LoadOrigin::HostsRequest, audience);
        }
    }

    /// Stores and publishes a catalog that the server has just shown.
    pub(super) fn publish(
        &self,
        catalog: ServerCatalog,
        origin: LoadOrigin,
        audience: ChangeAudience,
    ) {
        let catalog = Arc::new(catalog);
        self.catalog.store(Some(catalog.clone()));
        self.observer.live(catalog.clone(), origin, audience);
        self.observer.learned(&catalog);
    }

    /// Stores and publishes a catalog of another run.
    pub(super) fn publish_recalled(&self, catalog: Arc<ServerCatalog>, origin: LoadOrigin) {
        self.catalog.store(Some(catalog.clone()));
        self.observer.live(catalog, origin, ChangeAudience::All);
    }
}
