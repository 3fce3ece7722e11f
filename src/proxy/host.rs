//! A host as the proxy sees it.

use std::{pin::Pin, sync::Arc};

use crate::{
    catalog::Changes,
    peer::{Peer, ProgressSink},
    protocol::Client,
    wire::{Notification, Raw, edit},
};

/// Tells hosts apart for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostId(pub u64);

/// One attached host.
pub trait Host: Send + Sync + 'static {
    fn id(&self) -> HostId;

    /// What it has said of itself; `None` before it has said anything.
    fn client(&self) -> Option<Arc<Client>>;

    /// The connection to it, for questions and for progress.
    fn peer(&self) -> &Peer;

    /// Tells it which lists have changed, in the order tools, resources, prompts.
    fn announce(&self, changes: Changes);

    /// How many changes of the tool list it has been told.
    fn tool_lists_announced(&self) -> u64;

    /// Resolves once it has been given a tool list that it asked for after announcement `number`.
    fn relisted(&self, number: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Passes on `notifications/resources/updated` for a resource that it has subscribed to.
    fn resource_updated(&self, uri: &str, params: &Raw);

    /// Passes on any other notification of a server.
    fn notify(&self, notification: Notification);
}

/// One request of a host, beside its method and params.
#[derive(Clone)]
pub struct Caller {
    pub host: Arc<dyn Host>,
    /// What the host said of itself, in this request where it is a modern one.
    pub client: Arc<Client>,
    /// The host's progress token, where it wants progress.
    pub progress_token: Option<Raw>,
}

impl Caller {
    /// `meta` is the `_meta` of the request.
    pub fn new(host: Arc<dyn Host>, client: Arc<Client>, meta: Option<&Raw>) -> Self {
        let progress_token = meta.and_then(|meta| edit::get(meta, "progressToken"));
        Self { host, client, progress_token }
    }

    /// Passes progress on under the host's own token; `None` where the host wants none.
    pub(super) fn progress_sink(&self) -> Option<ProgressSink> {
        let token = self.progress_token.clone()?;
        let peer = self.host.peer().clone();
        Some(Box::new(move |params| {
            let params = edit::set(&params, "progressToken", &token);
            peer.notify("notifications/progress", Some(params));
        }))
    }
}
