//! One host: its handshake, its requests in flight, and its notifications.

#[cfg(test)]
mod model;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{
    HostIdentity,
    host_state::{HostState, ListenStream, RequestedTargets},
    reply_channel::ReplyChannel,
    request_tasks::RequestTasks,
    side_channel::NoticeFilter,
};
use crate::{
    base::Lock,
    catalog::Changes,
    identity::Person,
    peer::{MessageHandler, Peer, UnexpectedMessage},
    protocol::{
        ClientIdentity, Era, MODERN_VERSION, Meta, adapt, answer_discover, answer_initialize,
        error, extension, method,
    },
    proxy::{Caller, Endpoint, Fleet, Host, HostId, Principal, Subscriber, Usage, User},
    wire::{Id, InvalidMessage, Message, Notification, Raw, Request, edit},
};

pub(crate) struct Session {
    id: HostId,
    identity: HostIdentity,
    /// Carries the messages that belong to no request of the host.
    peer: Peer,
    fleet: Arc<Fleet>,
    state: Lock<HostState>,
    requests: RequestTasks,
    /// True after the host has shown its era.
    opened: watch::Sender<bool>,
}

static LAST_ID: AtomicU64 = AtomicU64::new(0);

impl Session {
    /// Creates a session for the host behind `peer` and attaches it to the fleet.
    pub(crate) fn attach(fleet: Arc<Fleet>, peer: Peer, identity: HostIdentity) -> Arc<Self> {
        let session = Arc::new(Self {
            id: HostId(LAST_ID.fetch_add(1, Ordering::Relaxed)),
            identity,
            peer,
            fleet,
            state: Lock::default(),
            requests: RequestTasks::default(),
            opened: watch::Sender::new(false),
        });
        let host: Arc<dyn Host> = session.clone();
        session.fleet.attach(&host);
        session
    }

    /// Waits until the host has told its era and capabilities.
    pub(crate) async fn wait_until_opened(&self) {
        // The sender lives as long as `self`.
        let _ = self.opened.subscribe().wait_for(|opened| *opened).await;
    }

    /// Waits until every request in flight has been answered.
    pub(crate) async fn wait_until_idle(&self) {
        self.requests.wait_until_idle().await;
    }

    /// Ends the session: cancels its requests in flight, and ends its subscriptions.
    pub(crate) async fn detach(&self) {
        self.requests.abort_all();
        // Aborted tasks end at once; the timeout only guards against a defect.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.wait_until_idle()).await;
        self.fleet.detach(self);
        if !self.identity.has_further_sessions {
            self.fleet.end_instances_of(self.identity.principal);
        }
    }

    /// Reads the host's era and capabilities for a request. A modern host sends them with each
    /// request.
    fn identify_caller(
        self: &Arc<Self>,
        request: &Request,
        meta: Option<&Raw>,
        reply: &ReplyChannel,
    ) -> Result<Caller, Raw> {
        let mut state = self.state.lock();
        let client = if let Some(client) = meta.and_then(ClientIdentity::from_meta) {
            if client.version != MODERN_VERSION.as_str() {
                return Err(error::unsupported_version(&client.version));
            }
            if meta.and_then(|meta| edit::get(meta, Meta::CLIENT_CAPABILITIES)).is_none() {
                let message = format!("_meta needs {:?}", Meta::CLIENT_CAPABILITIES);
                return Err(error::invalid_params(message));
            }
            state.record_modern_request(&client);
            Arc::new(client)
        } else {
            state.mark_ready();
            let client = state.client().filter(|client| client.era == Era::Legacy);
            client.cloned().ok_or_else(|| {
                let message = "send initialize first, or name the protocol version in _meta";
                error::invalid_request(message)
            })?
        };
        drop(state);
        let caller = Caller::new(self.clone(), client, reply.peer.clone(), request, meta);
        Ok(self.fleet.traced(caller, meta))
    }

    /// Handles `initialize`. The answer may have to wait if the session is for a single server.
    fn initialize(self: &Arc<Self>, request: &Request, meta: Option<&Raw>, reply: &ReplyChannel) {
        let params = request.params.clone().unwrap_or_else(Raw::empty_object);
        let client = Arc::new(ClientIdentity::from_initialize(&params).detached());
        *self.state.lock() = HostState::Initializing(client.clone());
        self.opened.send_replace(true);
        let caller = Caller::new(self.clone(), client, reply.peer.clone(), request, meta);
        let own = |session: &Self, caller: &Caller| {
            let version = &caller.client.version;
            let capabilities = session.fleet.capabilities(session, version);
            answer_initialize(version, &capabilities, &session.fleet.instructions(session))
        };
        self.introduce(caller, request.id.clone(), reply, own);
    }

    /// Answers a handshake with the text of the only server, or with dormouse's `own`.
    fn introduce(
        self: &Arc<Self>,
        caller: Caller,
        id: Id,
        reply: &ReplyChannel,
        own: impl Fn(&Self, &Caller) -> Raw + Send + 'static,
    ) {
        if self.identity.endpoint.passes_through().is_none() {
            return reply.peer.respond(id, Ok(own(self, &caller)));
        }
        let session = self.clone();
        self.requests.spawn(id.clone(), reply, async move {
            let introduced = session.fleet.introduce(&caller).await;
            let answer = introduced.unwrap_or_else(|| Ok(own(&session, &caller)));
            caller.peer.respond(id, answer);
        });
    }

    /// Takes up a session that another process has had with the host. `params`: those of the host's
    /// `initialize`.
    pub(super) fn resume(&self, params: &Raw) {
        let client = Arc::new(ClientIdentity::from_initialize(params).detached());
        *self.state.lock() = HostState::Initialized(client);
        self.opened.send_replace(true);
    }

    fn discover(&self) -> Raw {
        let capabilities = self.fleet.capabilities(self, MODERN_VERSION.as_str());
        let instructions = self.fleet.instructions(self);
        let answer = answer_discover(&capabilities, &instructions);
        adapt::own_result(method::SERVER_DISCOVER, Era::Modern, answer)
    }

    /// Handles a request, and ensures that it is answered.
    pub(super) fn answer(self: &Arc<Self>, request: Request, reply: &ReplyChannel) {
        let params = request.params.as_ref();
        let meta = params.and_then(|params| edit::get(params, "_meta"));
        let is_modern =
            meta.as_ref().is_some_and(|meta| edit::get(meta, Meta::PROTOCOL_VERSION).is_some());
        match request.method.as_str() {
            method::INITIALIZE if !is_modern => {
                return self.initialize(&request, meta.as_ref(), reply);
            }
            method::PING if !is_modern => {
                return reply.peer.respond(request.id, Ok(Raw::empty_object()));
            }
            _ => {}
        }
        let caller = match self.identify_caller(&request, meta.as_ref(), reply) {
            Ok(caller) => caller,
            Err(refusal) => return reply.peer.respond(request.id, Err(refusal)),
        };
        self.opened.send_replace(true);
        let id = request.id.clone();
        match (request.method.as_str(), caller.client.era) {
            (method::SERVER_DISCOVER, Era::Modern) => {
                self.introduce(caller, id, reply, |session, _| session.discover());
            }
            // A modern host has no session to open or to keep alive.
            (method::INITIALIZE | method::PING, Era::Modern) => {
                reply.peer.respond(id, Err(error::method_not_found(&request.method)));
            }
            (method::SUBSCRIPTIONS_LISTEN, Era::Modern) => {
                let params = params.cloned().unwrap_or_else(Raw::empty_object);
                let (listen, wanted) =
                    ListenStream::read(request.id, &params, reply.response.clone());
                if !wanted.tasks.is_empty() && !caller.client.declares_extension(extension::TASKS) {
                    let refusal = error::missing_extension(extension::TASKS);
                    return reply.peer.respond(id, Err(refusal));
                }
                // The stream is recorded before anything is awaited, so that a cancellation finds
                // it.
                self.end_stream(&id);
                self.state.lock().listen(listen);
                self.requests.spawn(
                    id.clone(),
                    reply,
                    self.clone().listen(caller, id, wanted, params),
                );
            }
            _ => {
                // Read before the list is made: the list may lack a change that is announced later.
                let announced = self.tool_lists_announced();
                let handling = self.clone().handle(caller, request, announced);
                self.requests.spawn(id, reply, handling);
            }
        }
    }

    async fn handle(self: Arc<Self>, caller: Caller, request: Request, announced: u64) {
        let Request { id, method, params } = request;
        let is_tool_list = method == method::TOOLS_LIST;
        let outcome = self.fleet.handle(&caller, &method, params).await;
        caller.peer.respond(id, outcome);
        if is_tool_list {
            // The list is sent before anything that waits for it continues.
            self.identity.tool_list_sync.record_listing(announced);
        }
    }

    /// Opens a stream of notifications, whose request is answered when it ends.
    async fn listen(
        self: Arc<Self>,
        caller: Caller,
        id: Id,
        wanted: RequestedTargets,
        params: Raw,
    ) {
        if let Some(ended) = self.fleet.pass_stream(&caller, &params).await {
            self.end_stream(&id);
            return caller.peer.respond(id, ended);
        }
        for uri in wanted.uris {
            match self.fleet.subscribe(&caller, self.stream(&id), &uri, None).await {
                Ok(_) => self.state.lock().accept_resource(&id, uri),
                Err(refusal) => tracing::debug!(uri, %refusal, "cannot subscribe to a resource"),
            }
        }
        for task in wanted.tasks {
            if self.fleet.listen_to_task(&caller, self.stream(&id), &task).await {
                self.state.lock().accept_task(&id, task);
            }
        }
        let acknowledgement = self.state.lock().acknowledge(&id);
        if let Some(acknowledgement) = acknowledgement {
            self.tell(acknowledgement);
        }
    }

    /// Ends a stream that is open or being opened.
    fn end_stream(&self, id: &Id) {
        if self.state.lock().end_stream(id) {
            self.fleet.end_stream(&self.stream(id));
        }
    }

    fn stream(&self, id: &Id) -> Subscriber {
        Subscriber { host: self.id, stream: Some(id.clone()) }
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.peer
    }

    fn tell(&self, notification: Notification) {
        self.peer.notify(&notification.method, notification.params);
    }

    /// Returns whether something is in flight in this session that a message is about: the question
    /// that a reply or progress names, or the request that a cancellation names.
    pub(super) fn awaits(&self, message: &Message) -> bool {
        match message {
            Message::Response(reply) => self.peer.awaits(reply.id.as_ref()),
            Message::Notification(Notification { method, params }) => {
                let named = |member| edit::get(params.as_ref()?, member).and_then(Id::new);
                match method.as_str() {
                    method::CANCELLED => {
                        named("requestId").is_some_and(|id| self.requests.is_running(&id))
                    }
                    method::PROGRESS => self.peer.awaits(named("progressToken").as_ref()),
                    _ => false,
                }
            }
            Message::Request(_) => false,
        }
    }

    fn cancel(&self, id: &Id) {
        self.requests.cancel(id);
        self.end_stream(id);
    }

    /// Ends the streams of a modern host in order, when dormouse shuts down.
    pub(crate) fn complete_listens(&self) {
        if let HostState::Modern { listens, .. } = &mut *self.state.lock() {
            for listen in listens.drain(..) {
                self.peer.respond(listen.id.clone(), Ok(listen.completion()));
            }
        }
    }
}

/// Handles the messages of a host for one session.
pub(super) struct HostHandler {
    pub(super) session: Arc<Session>,
    pub(super) reply: ReplyChannel,
    /// Takes the notifications of the thin client that carries the host's stream, if one does.
    pub(super) notices: Option<NoticeFilter>,
}

impl HostHandler {
    pub(super) fn new(session: Arc<Session>, reply: ReplyChannel) -> Self {
        Self { session, reply, notices: None }
    }
}

impl MessageHandler for HostHandler {
    fn request(&self, request: Request) {
        self.session.answer(request, &self.reply);
    }

    fn notification(&self, notification: Notification) {
        let session = &self.session;
        if self.notices.as_ref().is_some_and(|notices| notices.take(&notification)) {
            return;
        }
        match notification.method.as_str() {
            method::INITIALIZED => session.state.lock().mark_ready(),
            method::CANCELLED => {
                let id = notification.params.and_then(|params| edit::get(&params, "requestId"));
                if let Some(id) = id.and_then(Id::new) {
                    session.cancel(&id);
                }
            }
            _ => session.fleet.notice(session.as_ref(), &notification),
        }
    }

    /// Answers as JSON-RPC 2.0 section 5.1 requires.
    fn unexpected(&self, what: UnexpectedMessage) {
        let peer = &self.reply.peer;
        match what {
            UnexpectedMessage::Invalid(InvalidMessage::Unparsable { problem, .. }) => {
                let message = format!("not JSON: {problem}");
                peer.respond_to_unreadable(None, error::parse_error(message));
            }
            UnexpectedMessage::Invalid(InvalidMessage::MalformedCall { id, reason }) => {
                peer.respond_to_unreadable(id, error::invalid_request(reason));
            }
            UnexpectedMessage::Oversized { summary, limit }
                if summary.is_call && summary.id.is_some() =>
            {
                peer.respond_to_unreadable(summary.id, error::oversized(summary.size, limit));
            }
            // Replies and notifications are never answered. Their content stays out of the log,
            // because it may be confidential.
            UnexpectedMessage::Invalid(InvalidMessage::MalformedReply { id, reason }) => {
                tracing::warn!(%id, reason, "skipped an invalid reply of the host");
            }
            UnexpectedMessage::Stray(reply) => {
                tracing::warn!(id = ?reply.id, "skipped a reply of the host to an unknown request");
            }
            UnexpectedMessage::Oversized { summary, limit } => {
                tracing::warn!(
                    size = summary.size,
                    limit,
                    "skipped a message that exceeds maxMessageBytes"
                );
            }
        }
    }

    async fn ready(&self) {
        // A host that does not read its answers must not get more of them.
        let peer = &self.session.peer;
        if peer.is_full() {
            peer.ready(std::time::Duration::from_hours(1)).await;
        }
    }
}

impl Host for Session {
    fn id(&self) -> HostId {
        self.id
    }

    fn principal(&self) -> Principal {
        self.identity.principal
    }

    fn endpoint(&self) -> Endpoint {
        self.identity.endpoint.clone()
    }

    fn client(&self) -> Option<Arc<ClientIdentity>> {
        self.state.lock().client().cloned()
    }

    fn user(&self) -> User {
        self.identity.user
    }

    fn person(&self) -> Option<&Arc<Person>> {
        self.identity.person.as_ref()
    }

    fn usage(&self) -> Option<&Usage> {
        self.identity.usage.as_ref()
    }

    fn is_on_this_machine(&self) -> bool {
        self.identity.is_on_this_machine
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn announce(&self, changes: Changes) {
        let announcements = self.state.lock().announcements(changes);
        for announcement in announcements {
            if announcement.method == method::TOOLS_LIST_CHANGED {
                self.identity.tool_list_sync.record_announcement();
            }
            self.tell(announcement);
        }
    }

    fn tool_lists_announced(&self) -> u64 {
        self.identity.tool_list_sync.announced()
    }

    fn tool_list_fetched(&self, number: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.identity.tool_list_sync.wait_for_listing(number))
    }

    fn resource_updated(&self, uri: &str, params: &Raw) {
        let updates = self.state.lock().resource_updates(uri, params);
        for update in updates {
            self.tell(update);
        }
    }

    fn task_updated(&self, shown: &str, params: &Raw) {
        let updates = self.state.lock().task_updates(shown, params);
        for update in updates {
            self.tell(update);
        }
    }
}
