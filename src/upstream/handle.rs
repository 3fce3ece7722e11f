//! The handle on a server, for everyone but its actor.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    ChangeAudience, Context, Lease, ListKinds, LoadError, Recalled, ServerObserver, Status,
    StaysAwake,
    actor::ServerActor,
    command::ActorCommand,
    connection::ServerConnection,
    fetch,
    shared_server::SharedServer,
    stderr::{RecentLines, StderrTail},
};
use crate::{
    auth::LoginOwner,
    base::Lock,
    catalog::ServerCatalog,
    config::ServerConfig,
    peer::{CallError, CallOptions},
    protocol::{Era, LogLevel, method},
    wire::{Outcome, Raw, credentials::Credentials},
};

/// A handle on one server. Clones are cheap. Calls do not pass through the actor.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<SharedServer>);

impl Upstream {
    /// Starts the actor of a server, which connects nothing before it is asked to. `known` is the
    /// catalog, if another instance of the server has shown it, and `login_owner` the person whose
    /// login requests carry.
    pub(crate) fn start(
        config: Arc<ServerConfig>,
        observer: Arc<dyn ServerObserver>,
        context: &Context,
        known: Option<Arc<ServerCatalog>>,
        login_owner: Option<LoginOwner>,
    ) -> Self {
        let credentials = context.auth.credentials(&config, login_owner);
        Self::start_with(config, observer, context, known, credentials)
    }

    /// As [`Self::start`], with another source of credentials.
    pub(super) fn start_with(
        config: Arc<ServerConfig>,
        observer: Arc<dyn ServerObserver>,
        context: &Context,
        known: Option<Arc<ServerCatalog>>,
        credentials: Option<Arc<dyn Credentials>>,
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(SharedServer {
            config,
            observer,
            current: ArcSwapOption::empty(),
            catalog: Arc::new(ArcSwapOption::new(known)),
            subscriptions: Arc::default(),
            stale: Arc::default(),
            status: Lock::new(Status::new()),
            stderr: Arc::new(StderrTail::new()),
            commands,
            stop: context.stop.child_token(),
        });
        let actor = ServerActor::new(shared.clone(), credentials, context.clone(), inbox);
        context.tasks.spawn(actor.run());
        Self(shared)
    }

    /// Adds a subscription of an earlier instance, which the server is told when it is connected.
    /// The actor is not told: this instance has no connection yet, or knows the subscription.
    pub(crate) fn restore_subscription(&self, uri: &str) {
        self.0.subscriptions.set(uri, true);
    }

    /// Ends the server for good once nothing is in flight, without waiting for that. Callers that
    /// wait for a connection are refused.
    pub(crate) fn retire(&self) {
        self.send(ActorCommand::Retire);
    }

    /// Ends the server for good, without waiting.
    pub(crate) fn stop(&self) {
        self.0.stop.cancel();
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Connects in the background, without waiting.
    pub(crate) fn begin(&self, host_era: Era) {
        self.send(ActorCommand::Begin { host_era });
    }

    /// Puts the server to sleep, unless it has to stay awake.
    ///
    /// # Errors
    /// The reason that it has to.
    pub(crate) async fn sleep(&self) -> Result<(), StaysAwake> {
        let (reply, answer) = oneshot::channel();
        self.send(ActorCommand::Sleep { reply });
        // An actor that has ended is not awake.
        answer.await.unwrap_or(Ok(()))
    }

    /// Learns the catalog of a hybrid server in the background: from disk, or by connecting it.
    pub(crate) fn learn(&self) {
        self.send(ActorCommand::Learn);
    }

    /// Treats the server as loaded: with the catalog of its last connection, or by connecting it in
    /// the background if that is not known. The receiver is told when it is known which.
    pub(crate) fn restore(&self) -> oneshot::Receiver<()> {
        let (read, is_read) = oneshot::channel();
        self.send(ActorCommand::Restore { read });
        is_read
    }

    /// Shows a catalog that another process has stored, if the server is asleep here.
    pub(crate) fn adopt(&self, recalled: Recalled) {
        self.send(ActorCommand::Adopt(recalled));
    }

    /// Returns the known catalog.
    pub(crate) fn catalog(&self) -> Option<Arc<ServerCatalog>> {
        self.0.catalog.load_full()
    }

    /// Returns the present status.
    pub(crate) fn status(&self) -> Status {
        let noise =
            self.0.current.load().as_ref().and_then(|connection| connection.noise.describe());
        Status { noise, ..self.0.status.lock().clone() }
    }

    /// Returns the last lines of standard error, oldest first.
    pub(crate) fn stderr(&self) -> RecentLines {
        self.0.stderr.lines()
    }

    /// Returns the server awake: connected already, or woken or loaded now, in one attempt that all
    /// concurrent callers share. `host_era` is the era of the host that needs it.
    ///
    /// # Errors
    /// If it cannot be connected; see [`LoadError`].
    pub(crate) async fn lease(&self, host_era: Era) -> Result<Lease, LoadError> {
        if let Some(lease) = self.awake().filter(|lease| lease.connection().is_used()) {
            return Ok(lease.mark_used());
        }
        let (reply, answer) = oneshot::channel();
        self.send(ActorCommand::Want { host_era, reply });
        let gone = LoadError::Gone { server: self.name().to_owned() };
        answer.await.unwrap_or(Err(gone))
    }

    /// Returns the server if it is connected now.
    pub(crate) fn awake(&self) -> Option<Lease> {
        let connection = self.0.current.load_full()?;
        if connection.peer.is_closed() { None } else { Lease::on(&connection) }
    }

    /// Returns the era of the server's connection if it is connected now. Unlike
    /// [`awake`](Self::awake), this is no use, after which the server would stay awake for longer.
    pub(crate) fn connected_era(&self) -> Option<Era> {
        let connection = self.0.current.load();
        let connection = connection.as_ref().filter(|connection| !connection.peer.is_closed())?;
        Some(connection.greeting.era)
    }

    /// Asks an awake server for the lists in `kinds`, and publishes them. Hosts are told only after
    /// `quiet_until`, since the requesting host waits for the lists until then. A server that
    /// sleeps, or does not answer, keeps its known catalog.
    pub(crate) async fn relist(&self, kinds: ListKinds, quiet_until: Instant) {
        let Some(lease) = self.awake() else { return };
        let silence = self.0.config.settings.timeouts.request;
        let ServerConnection { peer, greeting, terms, .. } = lease.connection().as_ref();
        match fetch::fetch_lists(&self.0.config, peer, (greeting, terms), kinds, silence).await {
            Ok(lists) => {
                let is_late = Instant::now() >= quiet_until;
                self.0.merge(
                    lists,
                    if is_late { ChangeAudience::All } else { ChangeAudience::NotListing },
                );
            }
            Err(error) => {
                tracing::warn!(
                    server = self.name(), %error,
                    "cannot read the lists; keeping the known catalog",
                );
            }
        }
    }

    /// Resolves when the lists that an awake server has announced as changed have been read.
    pub(crate) async fn caught_up(&self) {
        if self.connected_era().is_some() {
            self.0.stale.wait_until_read().await;
        }
    }

    /// Resolves when the lists of an awake server have been read since it was woken, and with the
    /// changes that it has announced. They are read once more if that has failed. Returns false
    /// if that fails too. A connection that ends meanwhile cannot be used anyway.
    pub(crate) async fn lists_current(&self) -> bool {
        if self.connected_era().is_none() || self.0.stale.wait_until_current().await {
            return true;
        }
        self.0.stale.mark(ListKinds::TOOLS);
        self.connected_era().is_none() || self.0.stale.wait_until_current().await
    }

    /// Sets the level of the log messages that a legacy server sends after every later start.
    pub(crate) fn want_log_level(&self, level: LogLevel) {
        self.0.subscriptions.set_log_level(level);
    }

    /// Tells the server the wanted level, if it is awake.
    pub(crate) async fn tell_log_level(&self) {
        if let Some(lease) = self.awake() {
            self.0.tell_log_level(lease.connection()).await;
        }
    }

    /// Sets the level unless the server sends as much already.
    pub(crate) async fn raise_log_level(&self, level: LogLevel) {
        let is_enough = self.0.subscriptions.log_level().is_some_and(|known| known <= level);
        if !is_enough {
            self.want_log_level(level);
            self.tell_log_level().await;
        }
    }

    /// Subscribes to a resource in the server's era, and keeps the server awake from now on.
    /// `params` are those of the host's request.
    ///
    /// # Errors
    /// If the server does not answer; its refusal is the `Err` of [`Outcome`].
    pub(crate) async fn subscribe(
        &self,
        lease: &Lease,
        uri: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, CallError> {
        let outcome =
            self.request_subscription(lease, method::RESOURCES_SUBSCRIBE, uri, params).await?;
        if outcome.is_ok() {
            self.set_subscription(uri, true);
        }
        Ok(outcome)
    }

    /// Ends a subscription.
    ///
    /// # Errors
    /// As `subscribe`.
    pub(crate) async fn unsubscribe(
        &self,
        lease: &Lease,
        uri: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, CallError> {
        // The subscription is gone whatever the server answers.
        self.forget_subscription(uri);
        self.request_subscription(lease, method::RESOURCES_UNSUBSCRIBE, uri, params).await
    }

    async fn request_subscription(
        &self,
        lease: &Lease,
        method: &str,
        uri: &str,
        params: Option<Raw>,
    ) -> Result<Outcome, CallError> {
        match lease.greeting().era {
            Era::Legacy => {
                let params =
                    params.unwrap_or_else(|| Raw::encode(&serde_json::json!({"uri": uri})));
                let options = CallOptions::silent_for(self.0.config.settings.timeouts.request);
                lease.peer().request(method, Some(params), options).await
            }
            // The one stream that the actor keeps open covers all subscriptions.
            Era::Modern => Ok(Ok(Raw::empty_object())),
        }
    }

    /// Removes a subscription of a server that is not connected any more.
    pub(crate) fn forget_subscription(&self, uri: &str) {
        self.set_subscription(uri, false);
    }

    fn set_subscription(&self, uri: &str, wanted: bool) {
        self.0.subscriptions.set(uri, wanted);
        // The actor checks again whether the server may be idle.
        self.send(ActorCommand::Reevaluate);
    }

    /// Subscribes to the updates of a task of a modern server, or ends the subscription.
    pub(crate) fn set_task_subscription(&self, id: &str, wanted: bool) {
        self.0.subscriptions.set_task(id, wanted);
    }

    fn send(&self, command: ActorCommand) {
        // The actor has returned if the instance was retired or stopped.
        let _ = self.0.commands.send(command);
    }
}
