//! One attempt to connect: a new process, HTTP exchanges or a stream to a shared server, a
//! handshake in a suitable era, and the catalog.
//!
//! A failed attempt leaves nothing behind: no process, no reader, no registration.

use std::{sync::Arc, time::Duration};

use super::{
    AttemptError, Context, ListKinds,
    activity::Activity,
    carrier::{Carrier, ShutdownPolicy},
    connect_timing::{ConnectTiming, PhaseClock},
    connection::{ConnectionTerms, OwnedConnection, ServerConnection},
    fetch,
    greet::{Handshake, HandshakePlan},
    inbound::ServerInbound,
    noise::Noise,
    opener::Opening,
    shared_server::SharedServer,
};
use crate::{
    catalog::{ProtocolSupport, ServerCatalog},
    config::{Framing, Mask, Protocol, Transport},
    peer::{CallError, Peer},
    protocol::{Era, Greeting, method},
    wire::{Outbox, Raw, credentials::Credentials, edit},
};

/// The context of an attempt.
#[derive(Clone)]
pub(super) struct ConnectSetup {
    pub(super) server: Arc<SharedServer>,
    /// The authorization, for servers that may demand a login.
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    pub(super) context: Context,
}

/// The outcome of a successful attempt.
pub(super) struct ConnectedServer {
    pub(super) owned: OwnedConnection,
    pub(super) timing: ConnectTiming,
}

/// Connects, and reads the catalog if requested. `host_era` is the era of the host that needs the
/// server.
pub(super) async fn connect(
    setup: ConnectSetup,
    host_era: Era,
    spoken: ProtocolSupport,
    with_catalog: bool,
) -> Result<ConnectedServer, AttemptError> {
    let protocol = setup.server.config.connecting.protocol;
    let plan = HandshakePlan::choose(protocol, host_era, spoken);
    let limit = setup.server.config.settings.timeouts.load;
    let deadline = (!limit.is_zero()).then(|| tokio::time::Instant::now() + limit);
    let attempt = ConnectAttempt { setup, deadline };
    let connected = match attempt.run(plan, spoken, with_catalog).await {
        // An older server may know only the older framing. Trying that is part of the same attempt.
        Err(refusal) if spoken.framing.is_none() && attempt.is_older_framing(&refusal) => {
            let spoken =
                ProtocolSupport { framing: Some(Framing::Sse), modern: Some(false), ..spoken };
            let older = attempt.run(HandshakePlan::Only(Era::Legacy), spoken, with_catalog).await;
            // If that fails as well, the first refusal is more helpful.
            older.map_err(|error| if error.is_refusal() { refusal } else { error })
        }
        // Some legacy servers exit when they are probed. Starting them again is part of the same
        // attempt.
        Err(AttemptError::Exited { phase: method::SERVER_DISCOVER, .. })
            if plan == HandshakePlan::First(Era::Modern) =>
        {
            let spoken = ProtocolSupport { modern: Some(false), ..spoken };
            attempt.run(HandshakePlan::Only(Era::Legacy), spoken, with_catalog).await
        }
        // The server may have been replaced since it was seen to speak one era only.
        Err(error) if error.is_of_other_era() && is_remembered(plan, protocol) => {
            let spoken = ProtocolSupport { legacy: None, modern: None, ..spoken };
            attempt.run(HandshakePlan::First(host_era), spoken, with_catalog).await
        }
        outcome => outcome,
    };
    let mask = Mask::of(&attempt.setup.server.config);
    connected.map_err(|failure| match failure.masked(&mask) {
        // The phase does not matter for a demanded login.
        AttemptError::Call { cause: CallError::Unauthorized(cause), .. } => cause.into(),
        failure => failure,
    })
}

/// Returns whether a plan leaves out an era because of what was seen of the server.
fn is_remembered(plan: HandshakePlan, protocol: Protocol) -> bool {
    protocol == Protocol::Auto && matches!(plan, HandshakePlan::Only(_))
}

/// Returns the names of declared capabilities, in alphabetical order.
pub(crate) fn declared_names(capabilities: &Raw) -> Vec<String> {
    let mut names: Vec<String> =
        edit::entries(capabilities).into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

struct ConnectAttempt {
    setup: ConnectSetup,
    /// `None` for no deadline.
    deadline: Option<tokio::time::Instant>,
}

/// An open connection, before the handshake.
struct OpenedConnection {
    peer: Peer,
    carrier: Box<dyn Carrier>,
    activity: Arc<Activity>,
    noise: Arc<Noise>,
}

impl OpenedConnection {
    /// Returns the lines that the server wrote and that were not messages, as the end of a
    /// sentence.
    fn describe_output(&self) -> String {
        let noise = self.noise.describe().map(|noise| format!("; {noise}"));
        self.carrier.stderr_quote() + &noise.unwrap_or_default()
    }
}

impl ConnectAttempt {
    async fn run(
        &self,
        plan: HandshakePlan,
        spoken: ProtocolSupport,
        with_catalog: bool,
    ) -> Result<ConnectedServer, AttemptError> {
        let mut clock = PhaseClock::start();
        let opened = self.within("connecting", self.open(spoken)).await?;
        clock.timing.opening = clock.lap();
        // The pool speaks every era, and would try again to connect a server that has failed.
        let plan = match plan {
            HandshakePlan::First(era) if opened.carrier.is_pooled() => HandshakePlan::Only(era),
            plan => plan,
        };
        let met = self.handshake(&opened, plan, spoken, with_catalog, &mut clock).await;
        let failure = match met {
            Ok((greeting, terms, catalog)) => {
                let OpenedConnection { peer, carrier, activity, noise } = opened;
                activity.note_connected();
                let connection =
                    Arc::new(ServerConnection::new(peer, greeting, terms, activity, noise));
                let owned = OwnedConnection { connection, carrier, fetched_catalog: catalog };
                return Ok(ConnectedServer { owned, timing: clock.timing });
            }
            Err(AttemptError::Call { phase, cause: CallError::Closed | CallError::NotSent }) => {
                let status = opened.carrier.describe_exit().await;
                AttemptError::Exited { phase, status, output: opened.describe_output() }
            }
            Err(AttemptError::TimedOut { phase, limit, .. }) => {
                AttemptError::TimedOut { phase, limit, output: opened.describe_output() }
            }
            Err(AttemptError::Refused { message, .. }) if opened.carrier.is_pooled() => {
                AttemptError::Incompatible(message)
            }
            Err(failure) => failure,
        };
        opened.peer.close();
        opened.carrier.end(opened.peer, ShutdownPolicy::QUICK).await;
        Err(failure)
    }

    /// Returns whether a server of the older framing may refuse in this way, and the config allows
    /// that framing.
    fn is_older_framing(&self, refusal: &AttemptError) -> bool {
        let may_try = matches!(&self.setup.server.config.transport,
            Ok(Transport::Http(remote)) if remote.framing == Framing::Either);
        let status = match refusal {
            AttemptError::Call { cause: CallError::Refused { status, .. }, .. } => *status,
            _ => return false,
        };
        may_try && matches!(status, 400 | 404 | 405)
    }

    async fn open(&self, spoken: ProtocolSupport) -> Result<OpenedConnection, AttemptError> {
        let ConnectSetup { server, credentials, context } = &self.setup;
        let SharedServer { config, observer, stale, catalog, stderr, .. } = server.as_ref();
        let outbox = Outbox::default();
        let peer = Peer::new(outbox.clone());
        let activity = Activity::new();
        let noise = Arc::new(Noise::new(Mask::of(config)));
        let inbound = ServerInbound::new(
            config.name.clone(),
            observer.clone(),
            stale.clone(),
            activity.clone(),
            peer.clone(),
            noise.clone(),
        );
        let opening = Opening {
            config,
            framing: spoken.framing,
            credentials: credentials.clone(),
            catalog: catalog.clone(),
            stderr: stderr.clone(),
            inbound,
            outbox,
            tasks: &context.tasks,
            shutdown: &context.stop,
        };
        let carrier = context.opener.open(opening).await?;
        Ok(OpenedConnection { peer, carrier, activity, noise })
    }

    async fn handshake(
        &self,
        opened: &OpenedConnection,
        plan: HandshakePlan,
        spoken: ProtocolSupport,
        with_catalog: bool,
        clock: &mut PhaseClock,
    ) -> Result<(Greeting, ConnectionTerms, Option<ServerCatalog>), AttemptError> {
        let OpenedConnection { peer, carrier, .. } = opened;
        let handshake = Handshake::new(peer, &self.setup.server.observer);
        let mut seen = spoken;
        let greeting = self.within("the handshake", handshake.greet(plan, &mut seen)).await?;
        // The eras of the pool are not those of the server behind it.
        let spoken = if carrier.is_pooled() { spoken } else { seen };
        clock.timing.handshake = clock.lap();
        let declared = declared_names(handshake.declared(greeting.era));
        let terms = ConnectionTerms { declared, spoken };
        if !with_catalog {
            return Ok((greeting, terms, None));
        }
        if !self.setup.context.reads_lists {
            return Ok((greeting.clone(), terms, Some(ServerCatalog::empty(greeting))));
        }
        let config = &self.setup.server.config;
        let fetching =
            fetch::fetch_lists(config, peer, (&greeting, &terms), ListKinds::ALL, Duration::ZERO);
        let lists = self.within("reading its lists", fetching).await?;
        clock.timing.lists = Some(clock.lap());
        let mut catalog = lists.merged_into(ServerCatalog::empty(greeting.clone()));
        catalog.discovery.took = clock.timing.total();
        Ok((greeting, terms, Some(catalog)))
    }

    /// Runs one phase of the attempt until the attempt's deadline.
    async fn within<T>(
        &self,
        phase: &'static str,
        work: impl Future<Output = Result<T, AttemptError>>,
    ) -> Result<T, AttemptError> {
        let limit = self.setup.server.config.settings.timeouts.load;
        let late = AttemptError::TimedOut { phase, limit, output: String::new() };
        match self.deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, work).await.unwrap_or(Err(late)),
            None => work.await,
        }
    }
}
