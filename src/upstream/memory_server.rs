//! Servers in memory, for tests in virtual time: each connection follows a plan of delays and
//! failures, and everything that is opened and ended is recorded.

mod memory_connection;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    AttemptError, Opener,
    carrier::{Carrier, CarrierFuture, ShutdownPolicy},
    opener::{OpenConnection, Opening, OpeningFuture},
};
use crate::{
    base::Lock,
    peer::{MessageHandler as _, Peer},
    protocol::{Era, method},
    wire::{Notification, Raw},
};
use memory_connection::MemoryConnection;

/// One phase of a connection.
pub(crate) enum Step {
    Takes(Duration),
    /// Opening fails with this error; the handshake is answered with nothing useful; while its
    /// lists are read, the server exits.
    Fails(Duration, Option<AttemptError>),
    Hangs,
}

/// The phases of one connection.
pub(crate) struct ConnectionPlan {
    pub(crate) opening: Step,
    /// The delay of the answer to `initialize` and to `server/discover`.
    pub(crate) handshake: Step,
    /// The delay of each page of a list.
    pub(crate) lists: Step,
    /// The time that the end takes once it has been requested.
    pub(crate) ending: Duration,
}

impl ConnectionPlan {
    /// Returns the plan of a connection on which everything succeeds at once.
    pub(crate) fn prompt() -> Self {
        let step = || Step::Takes(Duration::ZERO);
        Self { opening: step(), handshake: step(), lists: step(), ending: Duration::ZERO }
    }
}

/// A server with tools and resources.
pub(crate) struct MemoryServer {
    name: String,
    /// The newest era that it speaks; all servers speak the legacy one.
    newest: Era,
    /// Makes the plan of the connection of this number.
    plan: Box<dyn Fn(usize) -> ConnectionPlan + Send + Sync>,
    state: Lock<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    tools: Vec<String>,
    resources: Vec<String>,
    openings: usize,
    /// The connections that have not ended, with their numbers.
    connections: Vec<(usize, Arc<MemoryConnection>)>,
    log: Vec<(Instant, ServerRecord)>,
}

/// An event at a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServerRecord {
    /// The connection of this number is being opened.
    Opening(usize),
    /// The connection of this number and everything behind it has ended.
    Ended(usize),
}

impl Opener {
    pub(crate) fn in_memory(servers: impl IntoIterator<Item = Arc<MemoryServer>>) -> Self {
        let by_name = servers.into_iter().map(|server| (server.name.clone(), server));
        Self::of(MemoryServers(by_name.collect()))
    }
}

struct MemoryServers(BTreeMap<String, Arc<MemoryServer>>);

impl OpenConnection for MemoryServers {
    fn open<'a>(&'a self, opening: Opening<'a>) -> OpeningFuture<'a> {
        Box::pin(self.0[&opening.config.name].clone().open(opening))
    }
}

impl MemoryServer {
    pub(crate) fn new(
        name: &str,
        newest: Era,
        plan: impl Fn(usize) -> ConnectionPlan + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (name, plan, state) = (name.to_owned(), Box::new(plan), Lock::default());
        Arc::new(Self { name, newest, plan, state })
    }

    /// Creates a server of the legacy era on whose connections everything succeeds at once.
    pub(crate) fn prompt(name: &str) -> Arc<Self> {
        Self::new(name, Era::Legacy, |_| ConnectionPlan::prompt())
    }

    /// Changes the listed tools and resources, and announces that to the open connections.
    pub(crate) fn list(&self, tools: &[&str], resources: &[&str]) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut state = self.state.lock();
        let (tools, resources): (Vec<String>, Vec<String>) = (owned(tools), owned(resources));
        let has_new_tools = state.tools != tools;
        let has_new_resources = state.resources != resources;
        (state.tools, state.resources) = (tools, resources);
        drop(state);
        for (is_new, method) in [
            (has_new_tools, method::TOOLS_LIST_CHANGED),
            (has_new_resources, method::RESOURCES_LIST_CHANGED),
        ] {
            if is_new {
                self.notify(method, None);
            }
        }
    }

    /// Sends a notification on each open connection.
    pub(crate) fn notify(&self, method: &str, params: Option<&Raw>) {
        for connection in self.open_connections() {
            let method = method.to_owned();
            connection.inbound.notification(Notification { method, params: params.cloned() });
        }
    }

    /// Ends the open connections from the server's side.
    pub(crate) fn die(&self) {
        for connection in self.open_connections() {
            connection.peer().close();
        }
    }

    pub(crate) fn is_awake(&self) -> bool {
        !self.open_connections().is_empty()
    }

    /// Returns the resources that are subscribed to on the open connections.
    pub(crate) fn subscribed(&self) -> BTreeSet<String> {
        let connections = self.open_connections();
        connections.iter().flat_map(|connection| connection.subscribed.lock().clone()).collect()
    }

    /// Returns and forgets the records.
    pub(crate) fn take_log(&self) -> Vec<(Instant, ServerRecord)> {
        std::mem::take(&mut self.state.lock().log)
    }

    fn tools(&self) -> Vec<String> {
        self.state.lock().tools.clone()
    }

    fn resources(&self) -> Vec<String> {
        self.state.lock().resources.clone()
    }

    fn open_connections(&self) -> Vec<Arc<MemoryConnection>> {
        let connections = self.state.lock().connections.clone().into_iter();
        let open = connections.filter(|(_, connection)| !connection.peer().is_closed());
        open.map(|(_, connection)| connection).collect()
    }

    async fn open(self: Arc<Self>, opening: Opening<'_>) -> Result<Box<dyn Carrier>, AttemptError> {
        let Opening { inbound, outbox, tasks, .. } = opening;
        let number = self.begin_opening();
        let ConnectionPlan { opening, handshake, lists, ending } = (self.plan)(number);
        match opening {
            Step::Takes(delay) => wait(delay).await,
            Step::Fails(delay, error) => {
                wait(delay).await;
                return Err(error.unwrap_or(AttemptError::ShuttingDown));
            }
            Step::Hangs => std::future::pending().await,
        }
        let (tasks, subscribed) = (tasks.clone(), Lock::default());
        let server = self.clone();
        let connection =
            Arc::new(MemoryConnection { server, handshake, lists, inbound, tasks, subscribed });
        let peer = connection.peer().clone();
        self.state.lock().connections.push((number, connection.clone()));
        connection.tasks.spawn(connection.clone().serve(outbox));
        Ok(Box::new(MemoryCarrier { server: self, number, ending, peer }))
    }

    fn begin_opening(&self) -> usize {
        let mut state = self.state.lock();
        state.openings += 1;
        let number = state.openings;
        state.log.push((Instant::now(), ServerRecord::Opening(number)));
        number
    }
}

/// The end of a connection, at once if this is dropped.
struct MemoryCarrier {
    server: Arc<MemoryServer>,
    number: usize,
    ending: Duration,
    peer: Peer,
}

impl Carrier for MemoryCarrier {
    fn end(self: Box<Self>, peer: Peer, _: ShutdownPolicy) -> CarrierFuture<'static, ()> {
        Box::pin(async move {
            peer.close();
            wait(self.ending).await;
        })
    }

    fn must_end_before_next(&self) -> bool {
        true
    }
}

impl Drop for MemoryCarrier {
    fn drop(&mut self) {
        self.peer.close();
        let mut state = self.server.state.lock();
        state.connections.retain(|(number, _)| *number != self.number);
        state.log.push((Instant::now(), ServerRecord::Ended(self.number)));
    }
}

async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
