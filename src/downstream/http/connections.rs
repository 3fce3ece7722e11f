//! Accepts connections, limited so that file descriptors remain for servers, and closes those that
//! send no request.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::StatusCode,
    response::IntoResponse as _,
};
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{either::Either, sync::CancellationToken, task::TaskTracker};
use tower_service::Service as _;

use super::{
    http_version::{ConnectionVersion, with_host_header},
    listening_socket::ListeningSocket,
    paths::is_health_check,
};
use crate::base::Lock;

/// Maximum time for the head of a request, and for a connection without a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of requests at once on one connection of HTTP/2.
const MAX_STREAMS: u32 = 200;
/// Time in which a connection that was just opened may send its first request when dormouse ends.
/// Another replica that forwards a request may be busy.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay after connections could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);
/// Limit of connections, however many file descriptors are available.
const MAX_CONNECTIONS: usize = 8192;
/// Assumed number of file descriptors if the system does not say.
const DEFAULT_MAX_DESCRIPTORS: usize = 1024;
/// Connections beyond the limit. They get only an error, or an answer to a health check.
const MAX_SURPLUS_CONNECTIONS: usize = 16;

/// Serves connections until `stop` is cancelled, then completes the requests in progress. `tls`:
/// the side of dormouse in TLS; `None` if hosts connect without it.
pub(crate) async fn serve(
    socket: ListeningSocket,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: CancellationToken,
) {
    let connections = Arc::new(Connections::new(max_connections()));
    let tasks = TaskTracker::new();
    let begin = |stream: TcpStream| {
        // Without Nagle's algorithm, small answers leave at once. On failure they are only slower.
        let _ = stream.set_nodelay(true);
        if let Some(admitted) = connections.clone().admit() {
            let served = Served { router: router.clone(), admitted, tasks: tasks.clone() };
            tasks.spawn(served.connect(stream, tls.clone(), stop.clone()));
        }
    };
    let mut is_failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok(stream) => {
                is_failing = false;
                begin(stream);
            }
            // The client has already closed the connection.
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                // One warning until a connection is accepted again.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "cannot accept connections; retrying");
                }
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    socket.close().await.into_iter().for_each(begin);
    tasks.close();
    tasks.wait().await;
}

fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// Returns half of the file descriptors that this process may have: the others are for servers,
/// files and the log.
fn max_connections() -> usize {
    #[cfg(unix)]
    let descriptors = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)
        .map_or(DEFAULT_MAX_DESCRIPTORS, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX));
    #[cfg(not(unix))]
    let descriptors = 2 * MAX_CONNECTIONS;
    (descriptors / 2).clamp(MAX_SURPLUS_CONNECTIONS, MAX_CONNECTIONS)
}

/// A connection that is served.
struct Served {
    router: Router,
    admitted: AdmittedConnection,
    tasks: TaskTracker,
}

impl Served {
    /// Serves a connection to its end.
    async fn connect(self, stream: TcpStream, tls: Option<TlsAcceptor>, stop: CancellationToken) {
        let unwanted = self.admitted.slot.unwanted.clone();
        let greeting = async {
            match tls {
                None => {
                    let version = ConnectionVersion::of_first_bytes(&stream).await?;
                    Ok((Either::Left(stream), version))
                }
                Some(tls) => {
                    let stream = tls.accept(stream).await?;
                    let version = ConnectionVersion::negotiated(stream.get_ref().1);
                    Ok((Either::Right(stream), version))
                }
            }
        };
        let greeted: Result<io::Result<_>, _> = tokio::select! {
            greeted = tokio::time::timeout(HEAD_TIMEOUT, greeting) => greeted,
            () = unwanted.cancelled() => return,
            () = async {
                stop.cancelled().await;
                tokio::time::sleep(FIRST_REQUEST_TIMEOUT).await;
            } => return,
        };
        // A connection that says nothing, or something else, is closed.
        if let Ok(Ok((stream, version))) = greeted {
            self.serve(stream, version, stop).await;
        }
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        version: ConnectionVersion,
        stop: CancellationToken,
    ) {
        let Self { router, admitted, tasks } = self;
        let slot = admitted.slot.clone();
        let respond = move |request| answer(router.clone(), slot.clone(), request);
        let mut builder = auto::Builder::new(TrackedTasks(tasks));
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .keep_alive(!admitted.slot.is_surplus);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(HEAD_TIMEOUT)
            .max_concurrent_streams(MAX_STREAMS);
        let builder = match version {
            ConnectionVersion::Http1 => builder.http1_only(),
            ConnectionVersion::Http2 => builder.http2_only(),
        };
        let connection = builder.serve_connection(TokioIo::new(stream), service_fn(respond));
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            biased;
            // The connection is over, however it ended.
            _ = connection.as_mut() => return,
            () = is_unused_for(HEAD_TIMEOUT, &admitted.slot.used) => return,
            () = admitted.slot.unwanted.cancelled() => {
                if admitted.slot.is_idle() {
                    return;
                }
                // A request has arrived in the meantime.
                connection.as_mut().graceful_shutdown();
            }
            () = async {
                stop.cancelled().await;
                // Its request may be on the way, and a balancer sends no request twice.
                let used = admitted.slot.used.cancelled();
                let _ = tokio::time::timeout(FIRST_REQUEST_TIMEOUT, used).await;
            } => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

/// Waits until a connection has had no request for a time; for ever if it has had one.
async fn is_unused_for(time: Duration, used: &CancellationToken) {
    if tokio::time::timeout(time, used.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

/// Answers one request of a connection.
async fn answer(
    mut router: Router,
    slot: Arc<ConnectionSlot>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<TrackedResponseBody>, Infallible> {
    slot.used.cancel();
    let is_surplus = slot.is_surplus;
    let busy = TrackedRequest::new(slot);
    let request = request.map(|body| Body::new(busy.count_when_complete(body)));
    let response = if is_surplus && !is_health_check(request.uri().path()) {
        let message = "too many connections are open; try again later\n";
        (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
    } else {
        let Ok(response) = router.call(with_host_header(request)).await;
        response
    };
    Ok(response.map(|body| TrackedResponseBody { body, _request: busy }))
}

/// Runs the requests of a connection of HTTP/2, each in a task.
#[derive(Clone)]
struct TrackedTasks(TaskTracker);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for TrackedTasks {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// The open connections and their limit.
struct Connections {
    max: usize,
    open: Lock<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    last: u64,
    /// Keyed by a number that increases with each connection.
    slots: BTreeMap<u64, Arc<ConnectionSlot>>,
}

/// The state of one connection.
#[derive(Default)]
struct ConnectionSlot {
    /// True if the connection is beyond the limit.
    is_surplus: bool,
    /// Number of requests that were received completely and whose answers are incomplete.
    requests: Lock<usize>,
    /// Cancelled when the connection has to make room.
    unwanted: CancellationToken,
    /// Cancelled at the first request.
    used: CancellationToken,
}

impl Connections {
    fn new(max: usize) -> Self {
        Self { max, open: Lock::default() }
    }

    /// Admits one more connection. At the limit, the oldest idle connection makes room for it;
    /// without one, the new connection becomes a surplus connection. `None` if all connections and
    /// all surplus ones are in use.
    fn admit(self: Arc<Self>) -> Option<AdmittedConnection> {
        let mut open = self.open.lock();
        let surplus = open.slots.values().filter(|slot| slot.is_surplus).count();
        let is_full = open.slots.len() - surplus >= self.max;
        let is_surplus = is_full && !open.end_idle(false);
        if is_surplus && surplus >= MAX_SURPLUS_CONNECTIONS && !open.end_idle(true) {
            return None;
        }
        open.last += 1;
        let (number, slot) =
            (open.last, Arc::new(ConnectionSlot { is_surplus, ..ConnectionSlot::default() }));
        open.slots.insert(number, slot.clone());
        drop(open);
        Some(AdmittedConnection { connections: self, number, slot })
    }
}

impl OpenConnections {
    /// Ends the oldest idle connection, within or beyond the limit. Returns whether there was one.
    fn end_idle(&mut self, is_surplus: bool) -> bool {
        let mut idle =
            self.slots.iter().filter(|(_, slot)| slot.is_surplus == is_surplus && slot.is_idle());
        let number = idle.next().map(|(number, _)| *number);
        let ended = number.and_then(|number| self.slots.remove(&number));
        ended.is_some_and(|slot| {
            slot.unwanted.cancel();
            true
        })
    }
}

impl ConnectionSlot {
    fn begin(self: &Arc<Self>) -> RequestInProgress {
        *self.requests.lock() += 1;
        RequestInProgress(self.clone())
    }

    fn is_idle(&self) -> bool {
        *self.requests.lock() == 0
    }
}

/// A connection's place in the limit, until it is dropped.
struct AdmittedConnection {
    connections: Arc<Connections>,
    number: u64,
    slot: Arc<ConnectionSlot>,
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        self.connections.open.lock().slots.remove(&self.number);
    }
}

/// Counts a request until its answer is complete.
struct RequestInProgress(Arc<ConnectionSlot>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        *self.0.requests.lock() -= 1;
    }
}

/// A request, which counts as in progress only when it was received completely: a client that sends
/// a part of it must not occupy a connection.
#[derive(Clone)]
struct TrackedRequest {
    slot: Arc<ConnectionSlot>,
    busy: Arc<Lock<Option<RequestInProgress>>>,
}

impl TrackedRequest {
    fn new(slot: Arc<ConnectionSlot>) -> Self {
        Self { slot, busy: Arc::default() }
    }

    fn count_when_complete(&self, body: Incoming) -> TrackedRequestBody {
        if http_body::Body::is_end_stream(&body) {
            self.begin();
        }
        TrackedRequestBody { body, tracked: self.clone() }
    }

    fn begin(&self) {
        let mut busy = self.busy.lock();
        busy.get_or_insert_with(|| self.slot.begin());
    }
}

/// The body of a request.
struct TrackedRequestBody {
    body: Incoming,
    tracked: TrackedRequest,
}

impl http_body::Body for TrackedRequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.tracked.begin();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response; its connection is in use until it is dropped.
struct TrackedResponseBody {
    body: Body,
    _request: TrackedRequest,
}

impl http_body::Body for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_idle_connection_makes_room() {
        let connections = Arc::new(Connections::new(2));
        let admit = || connections.clone().admit().unwrap();
        let (first, second) = (admit(), admit());
        let busy = first.slot.begin();
        let third = admit();
        assert!(!third.slot.is_surplus && second.slot.unwanted.is_cancelled());
        assert!(!first.slot.unwanted.is_cancelled());
        drop(busy);
        assert!(!admit().slot.is_surplus && first.slot.unwanted.is_cancelled());
    }

    #[test]
    fn surplus_is_limited_while_all_connections_are_in_use() {
        let connections = Arc::new(Connections::new(1));
        let first = connections.clone().admit().unwrap();
        let _request = first.slot.begin();
        let surplus: Vec<AdmittedConnection> = std::iter::from_fn(|| {
            let admitted = connections.clone().admit()?;
            std::mem::forget(admitted.slot.begin());
            Some(admitted)
        })
        .collect();
        assert!(
            surplus.len() == MAX_SURPLUS_CONNECTIONS
                && surplus.iter().all(|admitted| admitted.slot.is_surplus)
        );
        drop(surplus);
        assert!(connections.admit().unwrap().slot.is_surplus);
    }

    #[test]
    fn surplus_connection_replaces_only_a_surplus_connection() {
        let connections = Arc::new(Connections::new(1));
        let admit = || connections.clone().admit().unwrap();
        let first = admit();
        let _request = first.slot.begin();
        let surplus: Vec<AdmittedConnection> =
            (0..MAX_SURPLUS_CONNECTIONS).map(|_| admit()).collect();
        let more = admit();
        assert!(more.slot.is_surplus && surplus[0].slot.unwanted.is_cancelled());
        assert!(!first.slot.unwanted.is_cancelled());
    }
}
