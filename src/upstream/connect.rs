//! One attempt to connect: a fresh process, a handshake in the right era, and the catalog.
//!
//! An attempt that fails leaves nothing behind: not a process, not a reader, not a registration.

use std::{sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use super::{
    AttemptError, Kinds, Observer, Watchdog,
    activity::Activity,
    fetch::{self, Stale},
    inbound::Inbound,
    process::{Grace, Pipes, ServerProcess},
};
use crate::{
    catalog::ServerCatalog,
    config::{Protocol, ServerConfig},
    peer::{CallError, CallOptions, Peer, read_messages},
    protocol::{
        DiscoverAnswer, Era, Greeting, discover_params, error, initialize_params, read_discover,
        read_initialize,
    },
    wire::{LineReader, Outbox, Outcome, Raw, write_messages},
};

/// How long a probe may stay unanswered before `initialize` follows it (DESIGN.md section 5).
const PROBE_SILENCE: Duration = Duration::from_secs(3);

/// How long a process that has exited is still read from.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a server has been seen to speak in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spoken {
    legacy: Option<bool>,
    modern: Option<bool>,
}

/// Which handshakes to try, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approach {
    Only(Era),
    First(Era),
}

impl Approach {
    /// The era of the host that needs the server, where the server can speak it.
    fn choose(protocol: Protocol, host: Era, spoken: Spoken) -> Self {
        match protocol {
            Protocol::Legacy => Self::Only(Era::Legacy),
            Protocol::Modern => Self::Only(Era::Modern),
            Protocol::Auto => match (host, spoken.legacy, spoken.modern) {
                (Era::Modern, _, Some(true)) | (Era::Legacy, Some(false), _) => {
                    Self::Only(Era::Modern)
                }
                (Era::Legacy, Some(true), _) | (Era::Modern, _, Some(false)) => {
                    Self::Only(Era::Legacy)
                }
                (host, _, _) => Self::First(host),
            },
        }
    }
}

/// A live connection to a server. Shared by all that use it.
pub(super) struct Connection {
    pub(super) peer: Peer,
    pub(super) greeting: Greeting,
    pub(super) activity: Arc<Activity>,
}

/// A connection with the process behind it, which only the actor holds.
pub(super) struct Link {
    pub(super) connection: Arc<Connection>,
    process: ServerProcess,
}

impl Link {
    /// Closes the connection, which fails what is in flight, and ends the process.
    pub(super) async fn end(self, grace: Grace) {
        self.connection.activity.close();
        self.connection.peer.close();
        self.process.end(grace).await;
    }

    /// How it ended and what it said last; for a process that is about to be gone.
    pub(super) async fn epitaph(&self) -> String {
        format!("{}{}", self.process.describe_exit().await, self.process.last_words())
    }
}

/// What an attempt needs to know beside the server's config.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) server: usize,
    pub(super) config: Arc<ServerConfig>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) stale: Arc<Stale>,
    pub(super) watchdog: Watchdog,
    pub(super) tasks: TaskTracker,
    pub(super) max_message_bytes: usize,
}

/// What an attempt brought.
pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) spoken: Spoken,
    /// `None` when the attempt was a wake, which does not wait for the lists.
    pub(super) catalog: Option<ServerCatalog>,
}

/// Connects, and reads the catalog if that is asked for. `host` is the era of whoever needs it.
pub(super) async fn connect(
    surroundings: Surroundings,
    host: Era,
    spoken: Spoken,
    with_catalog: bool,
) -> Result<Connected, AttemptError> {
    let approach = Approach::choose(surroundings.config.protocol, host, spoken);
    let limit = surroundings.config.timeouts.load;
    let deadline = (!limit.is_zero()).then(|| tokio::time::Instant::now() + limit);
    let attempt = Attempt { surroundings, deadline, host };
    match attempt.run(approach, spoken, with_catalog).await {
        // Some legacy servers exit at a probe. Starting them anew is part of the same attempt.
        Err(AttemptError::Exited { phase: DISCOVER, .. })
            if approach == Approach::First(Era::Modern) =>
        {
            let spoken = Spoken { modern: Some(false), ..spoken };
            attempt.run(Approach::Only(Era::Legacy), spoken, with_catalog).await
        }
        outcome => outcome,
    }
}

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

struct Attempt {
    surroundings: Surroundings,
    /// `None` for never.
    deadline: Option<tokio::time::Instant>,
    host: Era,
}

/// A process that has been started and has not greeted yet.
struct Opening {
    peer: Peer,
    process: ServerProcess,
    activity: Arc<Activity>,
}

impl Attempt {
    async fn run(
        &self,
        approach: Approach,
        spoken: Spoken,
        with_catalog: bool,
    ) -> Result<Connected, AttemptError> {
        let opening = self.open()?;
        let failure = match self.meet(&opening.peer, approach, spoken, with_catalog).await {
            Ok((greeting, spoken, catalog)) => {
                let Opening { peer, process, activity } = opening;
                let connection = Arc::new(Connection { peer, greeting, activity });
                return Ok(Connected { link: Link { connection, process }, spoken, catalog });
            }
            Err(AttemptError::Call { phase, cause: CallError::Closed | CallError::NotSent }) => {
                let status = opening.process.describe_exit().await;
                AttemptError::Exited { phase, status, stderr: opening.process.last_words() }
            }
            Err(AttemptError::TimedOut { phase, limit, .. }) => {
                AttemptError::TimedOut { phase, limit, stderr: opening.process.last_words() }
            }
            Err(failure) => failure,
        };
        opening.peer.close();
        opening.process.end(Grace::QUICK).await;
        Err(failure)
    }

    fn open(&self) -> Result<Opening, AttemptError> {
        let Surroundings { server, config, observer, stale, watchdog, tasks, max_message_bytes } =
            &self.surroundings;
        let launch = config.launch.as_ref().map_err(Clone::clone)?;
        let (process, Pipes { stdin, stdout }) =
            ServerProcess::spawn(&config.name, launch, watchdog, tasks)?;
        let outbox = Outbox::default();
        let peer = Peer::new(outbox.clone());
        let activity = Activity::new();
        let inbound = Inbound::new(
            *server,
            config.name.clone(),
            observer.clone(),
            stale.clone(),
            activity.clone(),
        );
        inbound.attach(peer.clone());
        let lines = LineReader::new(stdout, *max_message_bytes);
        // Both end with the pipes: the writer when the outbox closes, the reader when the process is gone.
        let reading = read_messages(lines, *max_message_bytes, peer.clone(), Arc::new(inbound));
        let reader = peer.clone();
        tasks.spawn(async move {
            tokio::select! {
                // A grandchild may hold the pipe open after the connection was given up.
                () = reader.closed() => {}
                // The end of the stream, or an error in reading it, is the end of the connection.
                _ = reading => reader.close(),
            }
        });
        tasks.spawn(write_until_closed(outbox, stdin, peer.clone()));
        let (exited, gone) = (process.exited(), peer.clone());
        tasks.spawn(async move {
            exited.await;
            // What it said last is read first. The stream itself may never end, since what the process
            // started may hold it open.
            tokio::time::sleep(LAST_WORDS).await;
            gone.close();
        });
        Ok(Opening { peer, process, activity })
    }

    async fn meet(
        &self,
        peer: &Peer,
        approach: Approach,
        mut spoken: Spoken,
        with_catalog: bool,
    ) -> Result<(Greeting, Spoken, Option<ServerCatalog>), AttemptError> {
        let greeting =
            self.within("the handshake", self.greet(peer, approach, &mut spoken)).await?;
        if !with_catalog {
            return Ok((greeting, spoken, None));
        }
        let name = &self.surroundings.config.name;
        let fetching = fetch::fetch(name, peer, &greeting, Kinds::ALL, Duration::ZERO);
        let lists = self.within("reading its lists", fetching).await?;
        let catalog = lists.merged_into(ServerCatalog::empty(greeting.clone()));
        Ok((greeting, spoken, Some(catalog)))
    }

    /// Runs one phase of the attempt until the attempt's deadline.
    async fn within<T>(
        &self,
        phase: &'static str,
        work: impl Future<Output = Result<T, AttemptError>>,
    ) -> Result<T, AttemptError> {
        let limit = self.surroundings.config.timeouts.load;
        let late = AttemptError::TimedOut { phase, limit, stderr: String::new() };
        match self.deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, work).await.unwrap_or(Err(late)),
            None => work.await,
        }
    }

    async fn greet(
        &self,
        peer: &Peer,
        approach: Approach,
        spoken: &mut Spoken,
    ) -> Result<Greeting, AttemptError> {
        match approach {
            Approach::Only(Era::Legacy) => initialized(peer, self.initialize(peer).await?, spoken),
            Approach::Only(Era::Modern) => match read_discover(&self.discover(peer).await?) {
                DiscoverAnswer::Modern(greeting) => Ok(modern(greeting, spoken)),
                DiscoverAnswer::Legacy => {
                    let message = "it does not speak 2026-07-28".to_owned();
                    Err(AttemptError::Incompatible(message))
                }
                DiscoverAnswer::NoCommonVersion(message) => {
                    Err(AttemptError::Incompatible(message))
                }
            },
            Approach::First(Era::Legacy) => match self.initialize(peer).await? {
                Ok(result) => initialized(peer, Ok(result), spoken),
                Err(refusal) => {
                    let probe = tokio::time::timeout(PROBE_SILENCE, self.discover(peer)).await;
                    match probe.map(|answer| answer.map(|answer| read_discover(&answer))) {
                        Ok(Ok(DiscoverAnswer::Modern(greeting))) => {
                            spoken.legacy = Some(false);
                            Ok(modern(greeting, spoken))
                        }
                        // It is the refusal that says what is wrong.
                        _ => initialized(peer, Err(refusal), spoken),
                    }
                }
            },
            Approach::First(Era::Modern) => self.probe(peer, spoken).await,
        }
    }

    /// `server/discover` first; after a silence `initialize` too, and the first answer decides.
    async fn probe(&self, peer: &Peer, spoken: &mut Spoken) -> Result<Greeting, AttemptError> {
        let mut discover = std::pin::pin!(self.discover(peer));
        let answer = if let Ok(answer) = tokio::time::timeout(PROBE_SILENCE, &mut discover).await {
            answer?
        } else {
            let mut initialize = std::pin::pin!(self.initialize(peer));
            tokio::select! {
                answer = &mut discover => match read_discover(&answer?) {
                    DiscoverAnswer::Modern(greeting) => return Ok(modern(greeting, spoken)),
                    _ => return initialized(peer, initialize.await?, spoken),
                },
                answer = &mut initialize => return initialized(peer, answer?, spoken),
            }
        };
        match read_discover(&answer) {
            DiscoverAnswer::Modern(greeting) => Ok(modern(greeting, spoken)),
            DiscoverAnswer::Legacy => {
                spoken.modern = Some(false);
                initialized(peer, self.initialize(peer).await?, spoken)
            }
            DiscoverAnswer::NoCommonVersion(message) => Err(AttemptError::Incompatible(message)),
        }
    }

    async fn discover(&self, peer: &Peer) -> Result<Outcome, AttemptError> {
        let params = discover_params(&self.capabilities(Era::Modern));
        call(peer, DISCOVER, params).await
    }

    async fn initialize(&self, peer: &Peer) -> Result<Outcome, AttemptError> {
        let params = initialize_params(&self.capabilities(Era::Legacy));
        call(peer, INITIALIZE, params).await
    }

    /// What the hosts can do, where a question could be carried to them: in their own era.
    fn capabilities(&self, era: Era) -> Raw {
        if era == self.host {
            self.surroundings.observer.capabilities(era)
        } else {
            Raw::empty_object()
        }
    }
}

/// The deadline is the attempt's.
async fn call(peer: &Peer, phase: &'static str, params: Raw) -> Result<Outcome, AttemptError> {
    peer.request(phase, Some(params), CallOptions::silent_for(Duration::ZERO))
        .await
        .map_err(|cause| AttemptError::Call { phase, cause })
}

fn modern(greeting: Greeting, spoken: &mut Spoken) -> Greeting {
    spoken.modern = Some(true);
    greeting
}

fn initialized(
    peer: &Peer,
    answer: Outcome,
    spoken: &mut Spoken,
) -> Result<Greeting, AttemptError> {
    let result = answer.map_err(|refusal| AttemptError::Refused {
        phase: INITIALIZE,
        message: error::message(&refusal),
    })?;
    let greeting = read_initialize(&result).map_err(AttemptError::Incompatible)?;
    peer.notify("notifications/initialized", None);
    spoken.legacy = Some(true);
    Ok(greeting)
}

async fn write_until_closed(outbox: Outbox, stdin: tokio::process::ChildStdin, peer: Peer) {
    tokio::select! {
        written = write_messages(outbox.clone(), stdin) => {
            if written.is_err() {
                peer.close();
            }
        }
        // What is queued at the end is given a moment; a server that does not read is not waited for.
        () = async {
            peer.closed().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approach_follows_the_host_as_far_as_the_server_can() {
        use Era::{Legacy, Modern};
        let unknown = Spoken::default();
        let legacy_only = Spoken { legacy: Some(true), modern: Some(false) };
        let modern_only = Spoken { legacy: Some(false), modern: Some(true) };
        let legacy_seen = Spoken { legacy: Some(true), modern: None };
        for (protocol, host, spoken, expected) in [
            (Protocol::Auto, Legacy, unknown, Approach::First(Legacy)),
            (Protocol::Auto, Modern, unknown, Approach::First(Modern)),
            (Protocol::Auto, Modern, legacy_only, Approach::Only(Legacy)),
            (Protocol::Auto, Legacy, modern_only, Approach::Only(Modern)),
            (Protocol::Auto, Modern, legacy_seen, Approach::First(Modern)),
            (Protocol::Auto, Legacy, legacy_seen, Approach::Only(Legacy)),
            (Protocol::Legacy, Modern, modern_only, Approach::Only(Legacy)),
            (Protocol::Modern, Legacy, legacy_only, Approach::Only(Modern)),
        ] {
            assert_eq!(Approach::choose(protocol, host, spoken), expected);
        }
    }
}
