//! The one task that owns a server's life: it waits for whatever can happen next, lets the pure
//! [`State`] decide, and performs the effects.

mod effects;

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    AttemptError, Audience, Kinds, Lease, LoadError, StaysAwake,
    connect::{Connected, Surroundings},
    connection::{Connection, Link},
    fetch::{self, Lists},
    freshness::Freshness,
    greet::Approach,
    handle::Shared,
    process::Grace,
    state::{Event, Refusal, State},
};
use crate::{
    catalog::{Origin, ProtocolSupport},
    config::Startup,
    protocol::Era,
};

pub(super) enum Command {
    /// Somebody needs the server and waits for it.
    Want { host: Era, reply: oneshot::Sender<Result<Lease, LoadError>> },
    /// Connect, though nobody waits.
    Begin { host: Era },
    /// Find out what it has, though nobody needs it.
    Learn,
    /// It was loaded in another run.
    Restore,
    /// Something that this task cannot wait for has changed.
    LookAgain,
    /// Go to sleep now, if nothing speaks against it.
    Sleep { reply: oneshot::Sender<Result<(), StaysAwake>> },
    /// Another takes its place: end as soon as nothing is in flight.
    Retire,
}

/// Everything that can wake the actor.
enum Happening {
    Command(Command),
    Attempted(Result<Box<Connected>, AttemptError>),
    Died,
    Idled,
    RetryDue,
    LoggedIn,
    Expired,
    ListsChanged(Kinds),
    Refreshed(Result<Box<Lists>, AttemptError>),
    Stopped,
}

type Work<T> = Pin<Box<dyn Future<Output = Result<Box<T>, AttemptError>> + Send>>;

/// A server that changes its lists whenever they are read must not keep us reading them.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);
pub(super) struct Actor {
    shared: Arc<Shared>,
    surroundings: Surroundings,
    inbox: mpsc::UnboundedReceiver<Command>,
    stop: CancellationToken,
    /// `None` only inside `play`.
    state: Option<State<Link>>,
    waiting: Vec<(Era, oneshot::Sender<Result<Lease, LoadError>>)>,
    attempt: Option<Work<Connected>>,
    /// The end of the previous process; a new one waits for it, since they may share a lock or a port.
    ending: Option<AbortOnDropHandle<()>>,
    refresh: Option<Work<Lists>>,
    refresh_not_before: Instant,
    /// The era in which the last attempt was begun.
    attempted_for: Era,
    /// How often the server had said that its lists had changed when the last reading of them began.
    reading: u64,
    /// The era of the host that last needed the server.
    host: Era,
    /// `None` before anybody has looked at what other runs have seen.
    spoken: Option<ProtocolSupport>,
    freshness: Freshness,
    is_first_attempt_over: bool,
    is_retiring: bool,
    /// The cause that was logged when the server could not be reached, while it has not been since.
    logged: Option<String>,
}

impl Actor {
    pub(super) fn new(
        shared: Arc<Shared>,
        surroundings: Surroundings,
        inbox: mpsc::UnboundedReceiver<Command>,
        stop: CancellationToken,
    ) -> Self {
        let now = Instant::now();
        let is_hybrid = surroundings.config.startup == Startup::Hybrid;
        let freshness = Freshness::new(is_hybrid, surroundings.context.catalog_ttl);
        Self {
            state: Some(Self::first_state(&shared)),
            shared,
            surroundings,
            inbox,
            stop,
            waiting: Vec::new(),
            attempt: None,
            ending: None,
            refresh: None,
            refresh_not_before: now,
            attempted_for: Era::Legacy,
            reading: 0,
            host: Era::Legacy,
            spoken: None,
            freshness,
            is_first_attempt_over: false,
            is_retiring: false,
            logged: None,
        }
    }

    fn first_state(shared: &Shared) -> State<Link> {
        let state = State::initial(shared.config.enabled, shared.is_known());
        shared.status.lock().follow(&state);
        state
    }

    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Happening::Stopped => return self.stop().await,
                Happening::Command(command) => self.obey(command),
                Happening::Attempted(outcome) => self.attempted(outcome),
                Happening::Died => self.died(),
                Happening::Idled if self.is_retiring => {
                    if self.is_closed_for_use() {
                        return self.stop().await;
                    }
                }
                Happening::Idled => self.idled(),
                Happening::RetryDue => self.play(Event::RetryDue),
                Happening::LoggedIn => self.play(Event::LoggedIn),
                Happening::Expired => {
                    self.freshness.end();
                    if matches!(self.state, Some(State::Awake { .. })) {
                        self.surroundings.stale.mark(Kinds::ALL);
                    } else {
                        self.play(Event::Studied);
                    }
                }
                Happening::ListsChanged(kinds) => self.begin_refresh(kinds),
                Happening::Refreshed(outcome) => self.refreshed(outcome),
            }
            if self.is_retiring && !matches!(self.state, Some(State::Awake { .. })) {
                return self.stop().await;
            }
        }
    }

    async fn next(&mut self) -> Happening {
        let (link, retry_at) = match &self.state {
            Some(State::Awake { connection: link, .. }) => (Some(link.connection.clone()), None),
            Some(State::BackingOff { until, .. }) => (None, Some(Instant::from_std(*until))),
            _ => (None, None),
        };
        let awaited = match &self.state {
            Some(State::AwaitingLogin { .. }) => self.surroundings.credentials.clone(),
            _ => None,
        };
        let may_idle = self.shared.subscriptions.uris().is_empty();
        let idle_timeout = if self.is_retiring {
            Some(Duration::ZERO)
        } else {
            self.surroundings.config.idle_timeout.filter(|_| may_idle)
        };
        let may_sleep = self.is_retiring || self.surroundings.config.startup != Startup::Eager;
        let is_asleep = matches!(self.state, Some(State::Asleep { .. }));
        let is_awake = link.is_some() && self.refresh.is_none();
        let expires_at = self.freshness.ends(is_awake).filter(|_| is_awake || is_asleep);
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Happening::Stopped,
            command = self.inbox.recv() => command.map_or(Happening::Stopped, Happening::Command),
            outcome = work(&mut self.attempt) => {
                self.attempt = None;
                Happening::Attempted(outcome)
            }
            () = until(link.as_ref(), |link| async move { link.peer.closed().await }) => Happening::Died,
            outcome = work(&mut self.refresh) => {
                self.refresh = None;
                Happening::Refreshed(outcome)
            }
            kinds = self.surroundings.stale.take(), if link.is_some() && self.refresh.is_none() => {
                Happening::ListsChanged(kinds)
            }
            () = until(retry_at, tokio::time::sleep_until) => Happening::RetryDue,
            () = until(awaited, |credentials| async move { credentials.changed().await }) => {
                Happening::LoggedIn
            }
            () = until(expires_at, tokio::time::sleep_until) => Happening::Expired,
            () = until(link.as_ref().zip(idle_timeout), |(link, timeout)| async move {
                link.activity.idle_for(timeout).await;
            }), if may_sleep => Happening::Idled,
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Want { host, reply } => {
                if self.has_ended() {
                    // Noticed here before the event of it came up.
                    self.died();
                }
                if self.should_connect_again(host) {
                    self.host = host;
                    self.give_refresh_up();
                    self.play(Event::Unsuitable);
                }
                if let Some(State::Awake { connection: link, .. }) = &self.state
                    && let Some(lease) = Lease::on(&link.connection)
                {
                    // Whoever asked may have gone away.
                    let _ = reply.send(Ok(lease.for_a_host()));
                    return;
                }
                self.host = host;
                self.waiting.push((host, reply));
                self.play(Event::Wanted);
            }
            Command::Begin { host } => {
                self.host = host;
                self.play(Event::Wanted);
            }
            Command::Learn => self.learn(),
            Command::Restore => {
                self.take_recalled(Origin::HostsRequest);
            }
            Command::LookAgain => {}
            Command::Sleep { reply } => {
                // Whoever asked may have gone away.
                let _ = reply.send(self.sleep());
            }
            Command::Retire => self.is_retiring = true,
        }
    }

    fn sleep(&mut self) -> Result<(), StaysAwake> {
        match &self.state {
            _ if self.surroundings.config.startup == Startup::Eager => Err(StaysAwake::Eager),
            Some(State::Loading(_)) => Err(StaysAwake::Loading),
            Some(State::Awake { .. }) if !self.shared.subscriptions.uris().is_empty() => {
                Err(StaysAwake::Subscribed)
            }
            Some(State::Awake { .. }) => {
                self.idled();
                let is_awake = matches!(self.state, Some(State::Awake { .. }));
                if is_awake { Err(StaysAwake::InUse) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// A hybrid server's catalog is on disk, or it is connected for it.
    fn learn(&mut self) {
        if self.take_recalled(Origin::OwnAccord) {
            self.first_attempt_over();
        } else {
            self.play(Event::Studied);
        }
    }

    /// Takes over what the server had in another run, if that is known and it has not been loaded in this one.
    fn take_recalled(&mut self, origin: Origin) -> bool {
        if !matches!(self.state, Some(State::Unloaded { .. })) {
            return false;
        }
        let Some(recalled) = self.shared.observer.recall() else { return false };
        self.freshness.take_over(&recalled);
        self.play(Event::Recalled);
        self.shared.publish_recalled(recalled.catalog, origin);
        true
    }

    /// Whether the connection was made for no host in particular, and its first host would do better with another: one
    /// in its own era, where the server speaks that, or one for which all is declared that the host declares.
    fn should_connect_again(&self, host: Era) -> bool {
        let Some(State::Awake { connection: link, .. }) = &self.state else { return false };
        let connection = &link.connection;
        !connection.is_used()
            && (self.is_of_another_era(connection, host) || self.declares_too_little(connection))
            // A request of dormouse itself may be in flight; then it stays as it is.
            && connection.activity.try_close()
    }

    /// Whether the server could speak this era, and the connection is in the other.
    fn is_of_another_era(&self, connection: &Connection, host: Era) -> bool {
        let connected = connection.greeting.era;
        let protocol = self.surroundings.config.protocol;
        let spoken = self.spoken.unwrap_or_default();
        host != connected && Approach::choose(protocol, host, spoken) != Approach::Only(connected)
    }

    fn declares_too_little(&self, connection: &Connection) -> bool {
        let observer = &self.shared.observer;
        observer.declares_more(&connection.terms.declared, connection.greeting.era)
    }

    /// Returns the era of the first waiting host if the connection suits none of those that wait. An attempt that was
    /// begun in that era is not made again: the server speaks no other.
    fn better_for(&self, link: &Link) -> Option<Era> {
        let (first, _) = self.waiting.first()?;
        let connection = &link.connection;
        if self.declares_too_little(connection) {
            return Some(*first);
        }
        let is_mismatch = |(era, _): &(Era, _)| self.is_of_another_era(connection, *era);
        let is_other = *first != self.attempted_for && self.waiting.iter().all(is_mismatch);
        is_other.then_some(*first)
    }

    fn has_ended(&self) -> bool {
        matches!(&self.state, Some(State::Awake { connection: link, .. }) if link.connection.peer.is_closed())
    }

    fn attempted(&mut self, outcome: Result<Box<Connected>, AttemptError>) {
        match outcome {
            Ok(connected) => {
                let Connected { link, timing } = *connected;
                self.spoken = Some(link.connection.terms.spoken);
                if let Some(host) = self.better_for(&link) {
                    self.host = host;
                    return self.play(Event::Mismatched(link));
                }
                let mut status = self.shared.status.lock();
                status.last_wake = Some((SystemTime::now(), timing));
                status.last_error = None;
                drop(status);
                self.play(Event::Connected(link));
            }
            Err(error) => {
                // It may be another server by now, one that speaks another era.
                self.spoken = Some(ProtocolSupport::default());
                self.shared.status.lock().last_error = Some(error.to_string());
                self.play(Event::Failed(Arc::new(error)));
                self.look_later();
            }
        }
    }

    /// If it was time to look at what is known, that has come to nothing.
    fn look_later(&mut self) {
        if let Some(known) = self.shared.catalog.load_full() {
            self.freshness.postpone(&known);
        }
    }

    fn give_refresh_up(&mut self) {
        self.surroundings.stale.note_read(self.surroundings.stale.told());
        self.refresh = None;
        self.look_later();
    }

    fn died(&mut self) {
        self.give_refresh_up();
        self.play(Event::Died);
    }

    fn idled(&mut self) {
        if self.is_closed_for_use() {
            tracing::info!(server = self.name(), "asleep");
            self.give_refresh_up();
            self.play(Event::Idled);
        }
    }

    /// Closes the connection for further use, unless a use has begun since the clock ran out.
    fn is_closed_for_use(&self) -> bool {
        match &self.state {
            Some(State::Awake { connection: link, .. }) => link.connection.activity.try_close(),
            _ => false,
        }
    }

    fn play(&mut self, event: Event<Link>) {
        let Some(state) = self.state.take() else { return };
        let startup = self.surroundings.config.startup;
        let now = Instant::now().into_std();
        let (state, effects) = state.step(event, startup, now, fastrand::f64());
        self.shared.status.lock().follow(&state);
        self.state = Some(state);
        for effect in effects {
            self.perform(effect);
        }
        self.shared.observer.moved();
    }

    fn begin_refresh(&mut self, kinds: Kinds) {
        if !self.surroundings.context.reads_lists {
            return self.surroundings.stale.note_read(self.surroundings.stale.told());
        }
        let Some(State::Awake { connection: link, .. }) = &self.state else { return };
        let (connection, not_before) = (link.connection.clone(), self.refresh_not_before);
        let config = self.surroundings.config.clone();
        // What the server says from here on may be missing in what is read.
        self.reading = self.surroundings.stale.told();
        self.refresh = Some(Box::pin(async move {
            tokio::time::sleep_until(not_before).await;
            let silence = config.timeouts.request;
            let Connection { peer, greeting, terms, .. } = connection.as_ref();
            fetch::fetch(&config, peer, (greeting, terms), kinds, silence).await.map(Box::new)
        }));
    }

    fn refreshed(&mut self, outcome: Result<Box<Lists>, AttemptError>) {
        self.refresh_not_before = Instant::now() + REFRESH_PAUSE;
        match outcome {
            Ok(lists) => {
                // Whether the server has said so, or is read for another reason.
                let is_told = self.reading > self.surroundings.stale.last_read();
                let audience = if is_told { Audience::Unaware } else { Audience::All };
                self.shared.merge(*lists, audience);
                if let Some(known) = self.shared.catalog.load_full() {
                    self.freshness.renew(&known);
                }
            }
            Err(error) => {
                tracing::warn!(server = self.name(), %error, "cannot list anew; keeping what is known");
                self.look_later();
            }
        }
        self.surroundings.stale.note_read(self.reading);
    }

    fn first_attempt_over(&mut self) {
        if !std::mem::replace(&mut self.is_first_attempt_over, true) {
            self.shared.observer.first_attempt_over();
        }
    }

    async fn stop(mut self) {
        self.first_attempt_over();
        if self.is_retiring {
            // The handle may be kept long after.
            self.shared.catalog.store(None);
        }
        if !self.waiting.is_empty() {
            self.refuse(&Refusal::Unreachable { cause: Arc::new(AttemptError::ShuttingDown) });
        }
        // An attempt that is dropped kills what it started.
        self.attempt = None;
        if let Some(State::Awake { connection: link, .. }) = self.state.take() {
            link.end(Grace::QUICK).await;
        }
        effects::hurry(self.ending.take()).await;
    }

    fn name(&self) -> &str {
        &self.surroundings.config.name
    }
}

/// The work's outcome; for ever pending where there is none.
async fn work<T>(work: &mut Option<Work<T>>) -> Result<Box<T>, AttemptError> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// The future made of `subject`; for ever pending where there is none.
async fn until<S, F: Future<Output = ()>>(subject: Option<S>, make: impl FnOnce(S) -> F) {
    match subject {
        Some(subject) => make(subject).await,
        None => std::future::pending().await,
    }
}
