//! The connection to a Redis or Valkey server, and the thread that drives it.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Arc, mpsc::sync_channel},
    thread,
    time::{Duration, Instant},
};

use redis::{
    Client, ConnectionAddr, ErrorKind, RedisError, RedisResult, ServerErrorKind, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    StoreAddress,
    change_channel::{self, Listener, MAX_WAITING},
    store_health::StoreHealth,
};
use crate::base::Lock;

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for the answer to one command.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(700);
/// Maximum time for an operation, which may have to connect first.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of the checks whether the store can be used.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time to complete what has been started, when the last user of the connection is gone.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// A connection that is made when it is needed, and again when it has broken.
///
/// Callers block. The connection is driven by a thread of its own, so that it works whatever
/// runtime the callers have. While the store cannot be used, operations fail at once, and the
/// thread checks whether it can be used again.
pub(super) struct RedisLink {
    connection: Arc<Lock<ConnectionManager>>,
    runtime: Handle,
    tasks: TaskTracker,
    end: CancellationToken,
    thread: Option<thread::JoinHandle<()>>,
    client: Client,
    /// The server and database, without user and password.
    place: String,
    health: Arc<StoreHealth>,
}

impl RedisLink {
    /// Starts the thread. The connection is made by the first operation.
    ///
    /// # Errors
    /// If the URL or the certificates are invalid, or the thread cannot be started.
    pub(super) fn open(address: &StoreAddress) -> io::Result<Arc<Self>> {
        let client = client(address).map_err(|error| invalid(&error))?;
        let place = place_of(&client);
        let (end, tasks, health) = <(CancellationToken, TaskTracker, Arc<StoreHealth>)>::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let connection = {
            let _entered = runtime.enter();
            connect(&client).map_err(|error| invalid(&error))?
        };
        let connection = Arc::new(Lock::new(connection));
        let name = format!("{{{}:probe}}", address.prefix);
        let probe = Probe {
            client: client.clone(),
            connection: connection.clone(),
            name,
            health: health.clone(),
        };
        let (ended, probing, driving) = (end.clone(), probe.run(), tasks.clone());
        let run = move || {
            runtime.block_on(async move {
                ended.run_until_cancelled(probing).await;
                driving.close();
                let _ = tokio::time::timeout(END_TIMEOUT, driving.wait()).await;
            });
        };
        let thread = Some(thread::Builder::new().name("store".to_owned()).spawn(run)?);
        let runtime = handle;
        Ok(Arc::new(Self { connection, runtime, tasks, end, thread, client, place, health }))
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn health(&self) -> &Arc<StoreHealth> {
        &self.health
    }

    /// Performs an operation, and waits for its outcome.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] while the store cannot be used, and other errors for what it
    /// refuses.
    pub(super) fn run<T, Work>(&self, work: impl FnOnce(ConnectionManager) -> Work) -> io::Result<T>
    where
        T: Send + 'static,
        Work: Future<Output = RedisResult<T>> + Send + 'static,
    {
        if let Some(why) = self.health.outage() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, why));
        }
        let (outcome, receiver) = sync_channel(1);
        let (work, health) = (work(self.connection()), self.health.clone());
        self.start(async move {
            // The caller cannot be gone.
            let _ = outcome.send(perform(work, &health).await);
        });
        // Without an outcome, the thread has panicked.
        receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Starts work for which nothing waits.
    pub(super) fn start(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        self.tasks.spawn_on(work, &self.runtime)
    }

    /// Starts to listen to a channel, on a connection of its own.
    pub(super) fn listen(&self, channel: String) -> mpsc::Receiver<String> {
        let (heard, receiver) = mpsc::channel(MAX_WAITING);
        let (client, health) = (self.client.clone(), self.health.clone());
        let (listener, end) = (Listener { client, channel, health, heard }, self.end.clone());
        self.start(async move {
            end.run_until_cancelled(listener.run()).await;
        });
        receiver
    }

    /// Checks that a channel can be listened to.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(super) fn check_listening(&self, channel: String) -> io::Result<()> {
        let client = self.client.clone();
        self.run(|_| change_channel::check(client, channel))
    }

    pub(super) fn connection(&self) -> ConnectionManager {
        self.connection.lock().clone()
    }
}

impl Drop for RedisLink {
    fn drop(&mut self) {
        self.end.cancel();
        // The last user may be a task of the thread itself.
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|it| it.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for RedisLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisLink").field(&self.place).finish()
    }
}

fn client(address: &StoreAddress) -> RedisResult<Client> {
    let Some(certificates) = &address.certificates else {
        return Client::open(address.url.as_str());
    };
    let root_cert = Some(certificates.clone());
    Client::build_with_tls(address.url.as_str(), TlsCertificates { client_tls: None, root_cert })
}

/// Returns a connection that is made when it is needed.
fn connect(client: &Client) -> RedisResult<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT))
        // The probes are the other attempts.
        .set_number_of_retries(0);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

fn place_of(client: &Client) -> String {
    let info = client.get_connection_info();
    let scheme = match info.addr() {
        ConnectionAddr::TcpTls { .. } => "rediss://",
        ConnectionAddr::Tcp(..) => "redis://",
        _ => "redis+unix://",
    };
    format!("{scheme}{}/{}", info.addr(), info.redis_settings().db())
}

/// Finds out at intervals whether the store can be used.
struct Probe {
    client: Client,
    connection: Arc<Lock<ConnectionManager>>,
    /// The name of a value that is written.
    name: String,
    health: Arc<StoreHealth>,
}

impl Probe {
    /// Writes a value at intervals, without an end. After a failure the connection is made again,
    /// because something else may have answered on it.
    async fn run(self) {
        loop {
            let mut connection = self.connection.lock().clone();
            let mut write = redis::cmd("SET");
            write.arg(&self.name).arg(1).arg("PX").arg(60_000);
            let write = async move { write.query_async::<String>(&mut connection).await };
            let usable = match perform(write, &self.health).await {
                Ok(said) if said == "OK" => Ok(()),
                Ok(_) => Err("the server is not Redis".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            match usable {
                Ok(()) => self.health.note_recovery(),
                Err(why) => {
                    self.health.note_outage(&why);
                    if let Ok(connection) = connect(&self.client) {
                        *self.connection.lock() = connection;
                    }
                }
            }
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    }
}

/// Performs an operation, and notes what it tells of the store.
pub(super) async fn perform<T>(
    work: impl Future<Output = RedisResult<T>>,
    health: &StoreHealth,
) -> io::Result<T> {
    let began = Instant::now();
    let outcome = match tokio::time::timeout(OPERATION_TIMEOUT, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let kind =
                if is_outage(&error) { io::ErrorKind::NotConnected } else { io::ErrorKind::Other };
            Err(io::Error::new(kind, error.to_string()))
        }
        Err(_) => {
            let message = format!("no answer within {OPERATION_TIMEOUT:?}");
            Err(io::Error::new(io::ErrorKind::NotConnected, message))
        }
    };
    let outage = outcome.as_ref().err().filter(|it| it.kind() == io::ErrorKind::NotConnected);
    health.report(began.elapsed(), outage.is_none());
    if let Some(error) = outage {
        health.note_outage(error);
    }
    outcome
}

/// Returns whether an error means that no operation can succeed now.
fn is_outage(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly};
    error.is_io_error()
        || error.is_timeout()
        || matches!(
            error.kind(),
            ErrorKind::AuthenticationFailed
                | ErrorKind::ClusterConnectionNotFound
                | ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly)
        )
        // A server that demands a password refuses each command.
        || error.code() == Some("NOAUTH")
}

fn invalid(error: &RedisError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}
