//! Keeps a modern server's `subscriptions/listen` open (2026-07-28, basic/patterns, Subscribe and Notify).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::json;

use super::{
    connect::Connection,
    fetch::{Kinds, Stale},
    handle::Subscriptions,
};
use crate::{
    peer::CallOptions,
    protocol::{Client, Greeting, adapt},
    wire::Raw,
};

/// How long to wait before listening again when a server has ended the stream.
const PAUSE: Duration = Duration::from_secs(2);

/// Listens until the connection closes, anew whenever the wanted resources change.
pub(super) async fn listen(
    connection: Arc<Connection>,
    subscriptions: Arc<Subscriptions>,
    stale: Arc<Stale>,
) {
    let peer = &connection.peer;
    loop {
        let changed = subscriptions.changed();
        let params = params(&connection.greeting, &subscriptions.uris());
        let request = peer.request(
            "subscriptions/listen",
            Some(params),
            CallOptions::silent_for(Duration::ZERO),
        );
        tokio::select! {
            biased;
            () = peer.closed() => return,
            // Dropping the request tells the server that this stream is over.
            () = changed => {}
            ended = request => {
                if !matches!(ended, Ok(Ok(_))) {
                    tracing::debug!(?ended, "subscriptions/listen ended");
                }
                tokio::select! {
                    () = peer.closed() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
                // What changed in the meantime was told to nobody.
                stale.mark(Kinds::ALL);
            }
        }
    }
}

fn params(greeting: &Greeting, uris: &BTreeSet<String>) -> Raw {
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
    if !uris.is_empty() {
        wanted.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    adapt::with_modern_meta(&Client::unknown(), &Raw::encode(&json!({"notifications": wanted})))
}
