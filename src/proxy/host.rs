//! A host as the proxy sees it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use super::{Endpoint, RunningScript, Span, Usage};
use crate::{
    catalog::Changes,
    identity::Person,
    peer::{Peer, ProgressSink},
    protocol::{ClientIdentity, Era, LogLevel, extension, method},
    wire::{Id, Raw, Request, edit},
};

/// The number of a host's session, unique for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub u64);

/// The host behind a session. A legacy host has one session; a modern host over HTTP has a session
/// for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Principal(u64);

impl Principal {
    /// Returns a principal that equals no other.
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// The user of a host, over all its sessions: the hash of its token. Hosts without a token belong
/// to one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct User(pub Option<[u8; 32]>);

/// One attached host.
pub(crate) trait Host: Send + Sync + 'static {
    fn id(&self) -> HostId;

    fn principal(&self) -> Principal;

    fn user(&self) -> User;

    /// Returns the person behind the host, if its token has told.
    fn person(&self) -> Option<&Arc<Person>>;

    /// Returns the use by the person, which has limits.
    fn usage(&self) -> Option<&Usage>;

    /// Returns the endpoint that the host has connected to.
    fn endpoint(&self) -> Endpoint;

    /// Returns what the host has said of itself; `None` before its handshake.
    fn client(&self) -> Option<Arc<ClientIdentity>>;

    /// Returns whether the host's user sits at this machine, as far as can be told.
    fn is_on_this_machine(&self) -> bool;

    /// Returns the connection to the host, for messages that belong to none of its requests.
    fn peer(&self) -> &Peer;

    /// Notifies the host of changed lists, in the order tools, resources, prompts.
    fn announce(&self, changes: Changes);

    /// Returns the number of `tools/list_changed` notifications that the host has been sent.
    fn tool_lists_announced(&self) -> u64;

    /// Resolves when the host has got a tool list that it requested after announcement `number`.
    fn tool_list_fetched(&self, number: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Passes on `notifications/resources/updated` for a resource that it has subscribed to.
    fn resource_updated(&self, uri: &str, params: &Raw);

    /// Passes on `notifications/tasks` for a task to which a modern host listens under the id
    /// `shown`.
    fn task_updated(&self, shown: &str, params: &Raw);
}

/// Everything about a host that decides what it sees.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    pub(super) principal: Principal,
    pub(super) endpoint: Endpoint,
    /// True if the host can show user interfaces of tools (MCP Apps).
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

/// The context of one request of a host.
#[derive(Clone)]
pub(crate) struct Caller {
    pub host: Arc<dyn Host>,
    /// The host's own description; a modern host gives one with each request.
    pub client: Arc<ClientIdentity>,
    /// The connection for messages that belong to this request.
    pub peer: Peer,
    /// The host's progress token, if it wants progress.
    pub progress_token: Option<Raw>,
    /// The id of the request.
    pub(super) id: Id,
    /// The span of the request, if it is recorded as a part of a trace.
    pub(super) span: Option<Arc<Span>>,
    /// The number of progress notifications that dormouse has sent on its own.
    pub(super) beats: Arc<AtomicU32>,
    /// The least severe log messages that a modern request asks for.
    pub log_level: Option<LogLevel>,
    /// The script of the host that makes the request.
    pub(super) script: Option<RunningScript>,
    /// The request of a modern host as received; dormouse recognizes its retry by it.
    pub request: Option<Arc<Request>>,
}

impl Caller {
    /// `meta` is the `_meta` of the request.
    pub(crate) fn new(
        host: Arc<dyn Host>,
        client: Arc<ClientIdentity>,
        peer: Peer,
        request: &Request,
        meta: Option<&Raw>,
    ) -> Self {
        let progress_token = meta.and_then(|meta| edit::get(meta, "progressToken"));
        let log_level = meta.and_then(LogLevel::of_meta);
        let id = request.id.clone();
        let request = (client.era == Era::Modern).then(|| Arc::new(request.clone()));
        Self {
            id,
            host,
            client,
            peer,
            progress_token,
            span: None,
            beats: Arc::default(),
            script: None,
            log_level,
            request,
        }
    }

    /// Returns the caller of the calls of a script.
    pub(super) fn for_script(&self, script: &RunningScript) -> Self {
        Self { script: Some(script.clone()), ..self.clone() }
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        self.host.endpoint()
    }

    pub(super) fn viewer(&self) -> Viewer {
        Viewer::of(self.host.as_ref())
    }

    /// Waits until the host has fetched its tool list after the announcement with this number, for
    /// at most `settle`. Hosts build the model's next request from the list that they have when a
    /// result arrives.
    pub(super) async fn await_tool_list(&self, announced: u64, settle: Duration) {
        if self.script.is_some() {
            // Scripts need no list.
            return;
        }
        let _ = tokio::time::timeout(settle, self.host.tool_list_fetched(announced)).await;
    }

    /// Tells the host of progress, if it wants any.
    pub(super) fn tell_progress(&self, progress: &Value, message: &str) {
        let Some(token) = &self.progress_token else { return };
        let params = Raw::encode(&json!({"progress": progress, "message": message}));
        let params = edit::set(&params, "progressToken", token);
        self.peer.notify(method::PROGRESS, Some(params));
    }

    /// Returns a sink that passes progress on under the host's token; `None` if the host wants
    /// none.
    pub(super) fn progress_sink(&self) -> Option<ProgressSink> {
        let token = self.progress_token.clone()?;
        let (peer, script) = (self.peer.clone(), self.script.clone());
        Some(Box::new(move |params| {
            let params = match &script {
                Some(script) => script.as_own_progress(&params),
                None => params,
            };
            let params = edit::set(&params, "progressToken", &token);
            peer.notify(method::PROGRESS, Some(params));
        }))
    }
}
