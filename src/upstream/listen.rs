//! The subscriptions of hosts at a server, on each of its connections: a modern server's
//! `subscriptions/listen` is kept open (2026-07-28, basic/patterns, Subscribe and Notify), a legacy
//! one gets a request for each resource.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    connection::ServerConnection,
    server_subscriptions::{ServerSubscriptions, SubscriptionSet},
    shared_server::SharedServer,
};
use crate::{
    peer::{CallOptions, Peer},
    protocol::{ClientIdentity, Era, Greeting, adapt, extension, method},
    wire::Raw,
};

/// Delay before listening again after a server has ended the stream; doubled while streams last no
/// longer than the delay.
const INITIAL_DELAY: Duration = Duration::from_secs(2);
const MAX_DELAY: Duration = Duration::from_mins(5);

/// Restores the hosts' subscriptions and log level on a new connection.
pub(super) fn resume(
    shared: &Arc<SharedServer>,
    tasks: &TaskTracker,
    connection: &Arc<ServerConnection>,
) {
    let subscriptions = shared.subscriptions.clone();
    match connection.greeting.era {
        Era::Modern => {
            tasks.spawn(listen(connection.clone(), subscriptions));
        }
        Era::Legacy => {
            let (shared, connection) = (shared.clone(), connection.clone());
            tasks.spawn(async move {
                shared.tell_log_level(&connection).await;
                let renewals = subscriptions.uris().into_iter();
                let silence = shared.config.settings.timeouts.request;
                let renewals =
                    renewals.map(|uri| renew_subscription(&connection.peer, uri, silence));
                futures_util::future::join_all(renewals).await;
            });
        }
    }
}

async fn renew_subscription(peer: &Peer, uri: String, silence: Duration) {
    let params = Raw::encode(&json!({"uri": uri}));
    let options = CallOptions::silent_for(silence);
    let renewed = peer.request(method::RESOURCES_SUBSCRIBE, Some(params), options).await;
    if !matches!(renewed, Ok(Ok(_))) {
        tracing::warn!(uri, ?renewed, "cannot restore a subscription");
    }
}

/// Listens until the connection closes, and again whenever the subscribed resources change.
async fn listen(connection: Arc<ServerConnection>, subscriptions: Arc<ServerSubscriptions>) {
    let peer = &connection.peer;
    let mut delay = INITIAL_DELAY;
    loop {
        let changed = subscriptions.changed();
        let Some(params) = listen_params(&connection.greeting, &subscriptions.wanted()) else {
            // The server has no event to which a host subscribes.
            tokio::select! {
                () = peer.closed() => return,
                () = changed => continue,
            }
        };
        let options = CallOptions::silent_for(Duration::ZERO);
        let began = Instant::now();
        let request = peer.request(method::SUBSCRIPTIONS_LISTEN, Some(params), options);
        tokio::select! {
            biased;
            () = peer.closed() => return,
            // Dropping the request tells the server that this stream is over.
            () = changed => delay = INITIAL_DELAY,
            ended = request => {
                // A stream that is interrupted, for example at a proxy's deadline, was not refused.
                let is_refused = matches!(ended, Ok(Err(_)));
                tracing::debug!(?ended, "subscriptions/listen ended");
                if began.elapsed() > delay {
                    delay = INITIAL_DELAY;
                }
                tokio::select! {
                    () = peer.closed() => return,
                    () = subscriptions.changed() => delay = INITIAL_DELAY,
                    // A server that refuses is not asked the same again.
                    () = tokio::time::sleep(delay), if !is_refused => {
                        delay = (delay * 2).min(MAX_DELAY);
                    }
                }
            }
        }
    }
}

/// `None` if there is nothing to listen to.
fn listen_params(greeting: &Greeting, subscribed: &SubscriptionSet) -> Option<Raw> {
    let mut wanted = serde_json::Map::new();
    for (capability, member) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        if greeting.offers_detail(capability, "listChanged") {
            wanted.insert(member.to_owned(), true.into());
        }
    }
    let SubscriptionSet { uris, tasks } = subscribed;
    let mut client = ClientIdentity::ourselves();
    if !uris.is_empty() {
        wanted.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    if !tasks.is_empty() {
        wanted.insert("taskIds".to_owned(), json!(tasks));
        // A server must refuse clients that do not declare the extension for tasks (SEP-2663, Task
        // Status Notifications).
        client.capabilities = Raw::encode(&json!({"extensions": {extension::TASKS: {}}}));
    }
    let params = Raw::encode(&json!({"notifications": wanted}));
    (!wanted.is_empty()).then(|| adapt::with_modern_meta(&client, &params))
}
