//! One attempt to connect: a fresh process, a handshake in the right era, and the catalog.
//!
//! An attempt that fails leaves nothing behind: not a process, not a reader, not a registration.

use std::{sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use super::{
    AttemptError, Kinds, Observer, Watchdog,
    activity::Activity,
    connection::{Connection, Link},
    fetch::{self, Stale},
    greet::{Approach, DISCOVER, Meeting, Spoken},
    inbound::Inbound,
    process::{Grace, Pipes, ServerProcess},
};
use crate::{
    catalog::ServerCatalog,
    config::ServerConfig,
    peer::{CallError, Peer, read_messages},
    protocol::{Era, Greeting},
    wire::{LineReader, Outbox, write_messages},
};

/// How long a process that has exited is still read from.
const LAST_WORDS: Duration = Duration::from_millis(500);

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
    let connecting = Connecting { surroundings, deadline, host };
    match connecting.run(approach, spoken, with_catalog).await {
        // Some legacy servers exit at a probe. Starting them anew is part of the same attempt.
        Err(AttemptError::Exited { phase: DISCOVER, .. })
            if approach == Approach::First(Era::Modern) =>
        {
            let spoken = Spoken { modern: Some(false), ..spoken };
            connecting.run(Approach::Only(Era::Legacy), spoken, with_catalog).await
        }
        outcome => outcome,
    }
}

struct Connecting {
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

impl Connecting {
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
                let link = Link { connection, process, brought: catalog };
                return Ok(Connected { link, spoken });
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
        let meeting = Meeting { peer, observer: &self.surroundings.observer, host: self.host };
        let greeting = self.within("the handshake", meeting.greet(approach, &mut spoken)).await?;
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
