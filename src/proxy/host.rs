//! A host as the proxy sees it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use super::Endpoint;
use crate::{
    catalog::Changes,
    peer::{Peer, ProgressSink},
    protocol::{Client, Era, LogLevel, extension, method},
    wire::{Raw, Request, edit},
};

/// Tells sessions of hosts apart for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

/// Who is behind a session. A legacy host has one session; each request of a modern HTTP host is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Principal(u64);

impl Principal {
    /// Somebody who is not known yet.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Who a host has shown to be, over all its sessions: the hash of its token. Hosts without one are one user's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct User(pub Option<[u8; 32]>);

/// One attached host.
pub trait Host: Send + Sync + 'static {
    fn id(&self) -> HostId;

    fn principal(&self) -> Principal;

    fn user(&self) -> User;

    /// What it has connected to.
    fn endpoint(&self) -> Endpoint;

    /// What it has said of itself; `None` before it has said anything.
    fn client(&self) -> Option<Arc<Client>>;

    /// Whether its user sits at this machine, as far as can be told.
    fn is_on_this_machine(&self) -> bool;

    /// The connection to it, for what belongs to none of its requests.
    fn peer(&self) -> &Peer;

    /// Tells it which lists have changed, in the order tools, resources, prompts.
    fn announce(&self, changes: Changes);

    /// How many changes of the tool list it has been told.
    fn tool_lists_announced(&self) -> u64;

    /// Resolves once it has been given a tool list that it asked for after announcement `number`.
    fn relisted(&self, number: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Passes on `notifications/resources/updated` for a resource that it has subscribed to.
    fn resource_updated(&self, uri: &str, params: &Raw);

    /// Passes on `notifications/tasks` for a task to which a modern host listens under the id `shown`.
    fn task_updated(&self, shown: &str, params: &Raw);
}

/// All of a host on which depends what it sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Viewer {
    pub(super) principal: Principal,
    pub(super) endpoint: Endpoint,
    /// Whether it can show user interfaces of tools (MCP Apps).
    pub(super) shows_apps: bool,
}

impl Viewer {
    pub(super) fn of(host: &dyn Host) -> Self {
        let client = host.client();
        Self {
            principal: host.principal(),
            endpoint: host.endpoint(),
            shows_apps: client.is_some_and(|client| client.declares_extension(extension::UI)),
        }
    }
}

/// One request of a host, beside its method and params.
#[derive(Clone)]
pub struct Caller {
    pub host: Arc<dyn Host>,
    /// What the host said of itself, in this request where it is a modern one.
    pub client: Arc<Client>,
    /// Where what belongs to this request is sent.
    pub peer: Peer,
    /// The host's progress token, where it wants progress.
    pub progress_token: Option<Raw>,
    /// How often it was shown that the request goes on.
    pub(super) beats: Arc<AtomicU32>,
    /// The log messages that a modern request asks for.
    pub log_level: Option<LogLevel>,
    /// The request of a modern host as it came; its retry is known by it.
    pub request: Option<Arc<Request>>,
}

impl Caller {
    /// `meta` is the `_meta` of the request.
    pub fn new(
        host: Arc<dyn Host>,
        client: Arc<Client>,
        peer: Peer,
        request: &Request,
        meta: Option<&Raw>,
    ) -> Self {
        let progress_token = meta.and_then(|meta| edit::get(meta, "progressToken"));
        let log_level = meta.and_then(LogLevel::of_meta);
        let request = (client.era == Era::Modern).then(|| Arc::new(request.clone()));
        Self { host, client, peer, progress_token, beats: Arc::default(), log_level, request }
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        self.host.endpoint()
    }

    pub(super) fn viewer(&self) -> Viewer {
        Viewer::of(self.host.as_ref())
    }

    /// Passes progress on under the host's own token; `None` where the host wants none.
    pub(super) fn progress_sink(&self) -> Option<ProgressSink> {
        let token = self.progress_token.clone()?;
        let peer = self.peer.clone();
        Some(Box::new(move |params| {
            let params = edit::set(&params, "progressToken", &token);
            peer.notify(method::PROGRESS, Some(params));
        }))
    }
}
