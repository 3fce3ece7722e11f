//! The one task that owns a server's life: it waits for the next event, lets the pure
//! [`ServerState`] decide, and performs the effects.

mod effects;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    AttemptError, ChangeAudience, Context, Lease, ListKinds, LoadError, Recalled, StaysAwake,
    attempt::ConnectedServer,
    carrier::ShutdownPolicy,
    command::ActorCommand,
    connection::{OwnedConnection, ServerConnection},
    era_choice::EraChoice,
    failure_log::FailureLog,
    fetch::{self, FetchedLists},
    freshness::Freshness,
    server_state::{ServerEvent, ServerState},
    shared_server::SharedServer,
    stale_lists::ReadingCover,
};
use crate::{
    catalog::{LoadOrigin, ProtocolSupport},
    config::Startup,
    protocol::Era,
    wire::credentials::Credentials,
};

/// Everything that can wake the actor.
enum ActorEvent {
    Command(ActorCommand),
    Attempted(Result<Box<ConnectedServer>, AttemptError>),
    Died,
    Idled,
    RetryDue,
    LoggedIn,
    Expired,
    ListsChanged(ListKinds),
    Refreshed { outcome: Result<Box<FetchedLists>, AttemptError>, cover: ReadingCover },
    Stopped,
}

type AttemptFuture<T> = Pin<Box<dyn Future<Output = Result<Box<T>, AttemptError>> + Send>>;

/// A server that changes its lists whenever they are read must not keep dormouse reading them.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(100);

/// The task of one server, with everything that it owns.
pub(super) struct ServerActor {
    shared: Arc<SharedServer>,
    credentials: Option<Arc<dyn Credentials>>,
    context: Context,
    commands: mpsc::UnboundedReceiver<ActorCommand>,
    /// `None` only inside `apply`.
    state: Option<ServerState<OwnedConnection>>,
    connecting: AttemptProgress,
    refresh: Refresh,
    eras: EraChoice,
    is_first_attempt_over: bool,
    failures: FailureLog,
}

/// The attempt in progress, and the callers that wait for it.
#[derive(Default)]
struct AttemptProgress {
    waiters: Vec<(Era, oneshot::Sender<Result<Lease, LoadError>>)>,
    attempt: Option<AttemptFuture<ConnectedServer>>,
    /// The end of the previous process. A new process waits for it, since both may use the same
    /// lock or port.
    ending: Option<AbortOnDropHandle<()>>,
}

/// The reading of lists that have changed or expired.
struct Refresh {
    running: Option<RunningRefresh>,
    not_before: Instant,
    freshness: Freshness,
}

struct RunningRefresh {
    work: AttemptFuture<FetchedLists>,
    /// What the refresh covers: later changes may be missing in the lists that are read.
    cover: ReadingCover,
}

impl ServerActor {
    pub(super) fn new(
        shared: Arc<SharedServer>,
        credentials: Option<Arc<dyn Credentials>>,
        context: Context,
        commands: mpsc::UnboundedReceiver<ActorCommand>,
    ) -> Self {
        let now = Instant::now();
        let eras = EraChoice::new(shared.config.connecting.protocol, shared.observer.clone());
        let is_hybrid = shared.config.startup == Startup::Hybrid;
        let freshness = Freshness::new(is_hybrid, context.catalog_ttl);
        Self {
            state: Some(initial_state(&shared)),
            shared,
            credentials,
            context,
            commands,
            connecting: AttemptProgress::default(),
            refresh: Refresh { running: None, not_before: now, freshness },
            eras,
            is_first_attempt_over: false,
            failures: FailureLog::default(),
        }
    }

    pub(super) async fn run(mut self) {
        while !matches!(self.state, Some(ServerState::Ended { .. })) {
            match self.next_event().await {
                ActorEvent::Stopped => self.apply(ServerEvent::Stopped),
                ActorEvent::Command(command) => self.handle_command(command).await,
                ActorEvent::Attempted(outcome) => self.finish_attempt(outcome),
                ActorEvent::Died => self.handle_death(),
                ActorEvent::Idled => self.close_if_unused(),
                ActorEvent::RetryDue => self.apply(ServerEvent::RetryDue),
                ActorEvent::LoggedIn => self.apply(ServerEvent::LoggedIn),
                ActorEvent::Expired => self.handle_expiry(),
                ActorEvent::ListsChanged(kinds) => self.begin_refresh(kinds),
                ActorEvent::Refreshed { outcome, cover } => {
                    self.finish_refresh(outcome, cover);
                }
            }
        }
        self.finish().await;
    }

    async fn next_event(&mut self) -> ActorEvent {
        let owned = self.connection().cloned();
        let retry_at = match &self.state {
            Some(ServerState::BackingOff { until, .. }) => Some(Instant::from_std(*until)),
            _ => None,
        };
        let awaited = match &self.state {
            Some(ServerState::AwaitingLogin { .. }) => self.credentials.clone(),
            _ => None,
        };
        let idle_timeout = self.idle_timeout();
        let is_asleep = matches!(self.state, Some(ServerState::Asleep { .. }));
        let is_awake = owned.is_some() && self.refresh.running.is_none();
        let expires_at =
            self.refresh.freshness.expires_at(is_awake).filter(|_| is_awake || is_asleep);
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => ActorEvent::Stopped,
            command = self.commands.recv() => {
                command.map_or(ActorEvent::Stopped, ActorEvent::Command)
            }
            outcome = poll_work(&mut self.connecting.attempt) => {
                self.connecting.attempt = None;
                ActorEvent::Attempted(outcome)
            }
            () = poll_with(owned.as_ref(), |owned| async move { owned.peer.closed().await }) => {
                ActorEvent::Died
            }
            (outcome, cover) = poll_refresh(&mut self.refresh.running) => {
                self.refresh.running = None;
                ActorEvent::Refreshed { outcome, cover }
            }
            kinds = self.shared.stale.take(), if is_awake => {
                ActorEvent::ListsChanged(kinds)
            }
            () = poll_with(retry_at, tokio::time::sleep_until) => ActorEvent::RetryDue,
            () = poll_with(awaited, |credentials| async move { credentials.changed().await }) => {
                ActorEvent::LoggedIn
            }
            () = poll_with(expires_at, tokio::time::sleep_until) => ActorEvent::Expired,
            () = poll_with(owned.as_ref().zip(idle_timeout), |(owned, timeout)| async move {
                owned.activity.idle_for(timeout).await;
            }) => ActorEvent::Idled,
        }
    }

    /// Returns the time without use after which the connection is closed.
    fn idle_timeout(&self) -> Option<Duration> {
        match &self.state {
            Some(ServerState::Retiring { .. }) => Some(Duration::ZERO),
            _ if self.shared.config.startup == Startup::Eager => None,
            _ if self.shared.subscriptions.has_uris() => None,
            _ => self.shared.config.settings.idle_timeout,
        }
    }

    fn connection(&self) -> Option<&Arc<ServerConnection>> {
        self.state.as_ref()?.connection().map(|owned| &owned.connection)
    }

    async fn handle_command(&mut self, command: ActorCommand) {
        match command {
            ActorCommand::Want { host_era, reply } => {
                if self.connection().is_some_and(|connection| connection.peer.is_closed()) {
                    // Noticed here before the event for it was handled.
                    self.handle_death();
                }
                if self.should_reconnect(host_era) {
                    self.eras.want(host_era);
                    self.cancel_refresh();
                    self.apply(ServerEvent::Unsuitable);
                }
                if let Some(lease) = self.connection().and_then(Lease::on) {
                    // The caller may have stopped waiting.
                    let _ = reply.send(Ok(lease.mark_used()));
                    return;
                }
                self.eras.want(host_era);
                self.connecting.waiters.push((host_era, reply));
                self.apply(ServerEvent::Wanted);
            }
            ActorCommand::Begin { host_era } => {
                self.eras.want(host_era);
                self.apply(ServerEvent::Wanted);
            }
            ActorCommand::Learn => self.learn().await,
            ActorCommand::Restore { read } => {
                if !self.take_recalled(LoadOrigin::HostsRequest).await && self.is_unloaded() {
                    self.apply(ServerEvent::Wanted);
                }
                // The caller may not wait for it.
                let _ = read.send(());
            }
            ActorCommand::Adopt(recalled) => self.adopt(recalled),
            ActorCommand::Reevaluate => {}
            ActorCommand::Sleep { reply } => {
                // The caller may have stopped waiting.
                let _ = reply.send(self.sleep());
            }
            ActorCommand::Retire => self.apply(ServerEvent::Retired),
        }
    }

    fn sleep(&mut self) -> Result<(), StaysAwake> {
        match &self.state {
            _ if self.shared.config.startup == Startup::Eager => Err(StaysAwake::Eager),
            Some(ServerState::Loading(_)) => Err(StaysAwake::Loading),
            _ if self.connection().is_none() => Ok(()),
            _ if self.shared.subscriptions.has_uris() => Err(StaysAwake::Subscribed),
            _ => {
                self.close_if_unused();
                if self.connection().is_some() { Err(StaysAwake::InUse) } else { Ok(()) }
            }
        }
    }

    /// Reads a hybrid server's catalog from disk, or connects the server for it.
    async fn learn(&mut self) {
        if self.take_recalled(LoadOrigin::OwnAccord).await {
            self.first_attempt_over();
        } else {
            self.apply(ServerEvent::CatalogWanted);
        }
    }

    /// Adopts the catalog of another run, if one is known and the server has not been loaded in
    /// this run.
    async fn take_recalled(&mut self, origin: LoadOrigin) -> bool {
        if !self.is_unloaded() {
            return false;
        }
        let Some(recalled) = self.shared.observer.recall().await else { return false };
        self.refresh.freshness.restore(&recalled);
        self.apply(ServerEvent::Recalled);
        self.shared.publish_recalled(recalled.catalog, origin);
        true
    }

    /// Shows a catalog that another process has stored. A server that is connected here announces
    /// its changes itself.
    fn adopt(&mut self, recalled: Recalled) {
        let is_asleep = matches!(self.state, Some(ServerState::Asleep { .. }));
        let known = self.shared.catalog.load_full();
        if is_asleep && known.is_some_and(|known| !known.lists_the_same_as(&recalled.catalog)) {
            self.refresh.freshness.restore(&recalled);
            self.shared.publish_recalled(recalled.catalog, LoadOrigin::HostsRequest);
        }
    }

    fn is_unloaded(&self) -> bool {
        matches!(self.state, Some(ServerState::Unloaded { .. }))
    }

    /// Returns whether no host has used the connection yet and another would suit this host better.
    /// Subscribed hosts would miss updates meanwhile.
    fn should_reconnect(&self, host_era: Era) -> bool {
        let Some(ServerState::Awake { connection: owned, .. }) = &self.state else { return false };
        let connection = &owned.connection;
        !connection.is_used()
            && !self.shared.subscriptions.has_uris()
            && self.eras.is_unsuitable(connection, host_era)
            // A request of dormouse itself may be in flight; the connection stays then.
            && connection.activity.try_close()
    }

    fn finish_attempt(&mut self, outcome: Result<Box<ConnectedServer>, AttemptError>) {
        match outcome {
            Ok(connected) => {
                let ConnectedServer { owned, timing } = *connected;
                self.eras.note_spoken(owned.connection.terms.spoken);
                let waiting = self.connecting.waiters.iter().map(|(host_era, _)| *host_era);
                if let Some(host_era) = self.eras.better(&owned.connection, waiting) {
                    self.eras.want(host_era);
                    return self.apply(ServerEvent::Mismatched(owned));
                }
                let mut status = self.shared.status.lock();
                status.last_wake = Some((SystemTime::now(), timing));
                status.is_pooled = owned.carrier.is_pooled();
                status.process_group = owned.carrier.process_group();
                status.last_error = None;
                drop(status);
                self.shared.observer.connected(timing.total());
                self.apply(ServerEvent::Connected(owned));
            }
            Err(error) => {
                // The program behind the config may have changed, and speak another era.
                self.eras.note_spoken(ProtocolSupport::default());
                self.shared.status.lock().last_error = Some(error.to_string());
                self.apply(ServerEvent::Failed(Arc::new(error)));
                self.first_attempt_over();
                self.postpone_expiry();
            }
        }
    }

    /// Notes that a due refresh has failed.
    fn postpone_expiry(&mut self) {
        if let Some(known) = self.shared.catalog.load_full() {
            self.refresh.freshness.postpone(&known);
        }
    }

    /// Ends a refresh with its connection, on which nothing waits any more.
    fn cancel_refresh(&mut self) {
        self.shared.stale.note_read(self.shared.stale.cover(), false);
        self.refresh.running = None;
        self.postpone_expiry();
    }

    fn handle_expiry(&mut self) {
        self.refresh.freshness.clear();
        if self.connection().is_some() {
            self.shared.stale.mark(ListKinds::ALL);
        } else {
            self.apply(ServerEvent::CatalogWanted);
        }
    }

    fn handle_death(&mut self) {
        self.apply(ServerEvent::Died);
        // Afterwards, so that a list that was marked before the connection was gone counts too.
        self.cancel_refresh();
    }

    /// Closes the connection, unless a use has begun since the timeout.
    fn close_if_unused(&mut self) {
        if !self.connection().is_some_and(|connection| connection.activity.try_close()) {
            return;
        }
        self.cancel_refresh();
        self.apply(ServerEvent::Idled);
        if matches!(self.state, Some(ServerState::Asleep { .. })) {
            tracing::info!(server = self.name(), "asleep");
        }
    }

    fn apply(&mut self, event: ServerEvent<OwnedConnection>) {
        let Some(state) = self.state.take() else { return };
        let startup = self.shared.config.startup;
        let now = Instant::now().into_std();
        let (state, effects) = state.step(event, startup, now, fastrand::f64());
        self.shared.status.lock().update(&state);
        self.state = Some(state);
        for effect in effects {
            self.perform(effect);
        }
        self.shared.observer.moved();
    }

    fn begin_refresh(&mut self, kinds: ListKinds) {
        if !self.context.reads_lists {
            return self.shared.stale.note_read(self.shared.stale.cover(), false);
        }
        let Some(connection) = self.connection().cloned() else { return };
        let not_before = self.refresh.not_before;
        let config = self.shared.config.clone();
        let cover = self.shared.stale.cover();
        let work: AttemptFuture<FetchedLists> = Box::pin(async move {
            tokio::time::sleep_until(not_before).await;
            let silence = config.settings.timeouts.request;
            let ServerConnection { peer, greeting, terms, .. } = connection.as_ref();
            fetch::fetch_lists(&config, peer, (greeting, terms), kinds, silence).await.map(Box::new)
        });
        self.refresh.running = Some(RunningRefresh { work, cover });
    }

    fn finish_refresh(
        &mut self,
        outcome: Result<Box<FetchedLists>, AttemptError>,
        cover: ReadingCover,
    ) {
        self.refresh.not_before = Instant::now() + MIN_REFRESH_INTERVAL;
        let has_failed = outcome.is_err();
        match outcome {
            Ok(lists) => {
                // True if the server has announced a change; false if the lists are read for
                // another reason.
                let is_announced = self.shared.stale.is_announced(cover);
                let audience =
                    if is_announced { ChangeAudience::Unaware } else { ChangeAudience::All };
                self.shared.merge(*lists, audience);
                if let Some(known) = self.shared.catalog.load_full() {
                    self.refresh.freshness.renew(&known);
                }
            }
            Err(error) => {
                tracing::warn!(
                    server = self.name(), %error,
                    "cannot refresh the lists; keeping the known catalog",
                );
                self.postpone_expiry();
            }
        }
        self.shared.stale.note_read(cover, has_failed);
    }

    fn first_attempt_over(&mut self) {
        let is_over = std::mem::replace(&mut self.is_first_attempt_over, true);
        if !is_over && self.shared.config.has_first_attempt() {
            self.shared.observer.first_attempt_over();
        }
    }

    /// Drops the attempt, and ends the connection and the process that remain.
    async fn finish(mut self) {
        self.first_attempt_over();
        // Dropping an attempt kills the process that it started.
        self.connecting.attempt = None;
        if let Some(ServerState::Ended { remaining: Some(owned) }) = self.state.take() {
            owned.end(ShutdownPolicy::QUICK).await;
        }
        effects::wait_for_end(self.connecting.ending.take()).await;
    }

    fn name(&self) -> &str {
        &self.shared.config.name
    }
}

fn initial_state(shared: &SharedServer) -> ServerState<OwnedConnection> {
    let state = ServerState::initial(shared.config.enabled, shared.is_known());
    shared.status.lock().update(&state);
    state
}

/// Returns the outcome of the work; never resolves if there is none.
async fn poll_work<T>(work: &mut Option<AttemptFuture<T>>) -> Result<Box<T>, AttemptError> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Returns the outcome of a refresh and its `cover`; never resolves if there is none.
async fn poll_refresh(
    running: &mut Option<RunningRefresh>,
) -> (Result<Box<FetchedLists>, AttemptError>, ReadingCover) {
    match running {
        Some(RunningRefresh { work, cover }) => (work.await, *cover),
        None => std::future::pending().await,
    }
}

/// Awaits the future made of `subject`; never resolves if there is none.
async fn poll_with<S, F: Future<Output = ()>>(subject: Option<S>, make: impl FnOnce(S) -> F) {
    match subject {
        Some(subject) => make(subject).await,
        None => std::future::pending().await,
    }
}
