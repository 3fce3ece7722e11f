//! The sessions of legacy hosts, by an id that cannot be guessed. They expire when their hosts are
//! gone.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    stream::{MAX_WAITING_BYTES, MessageStream},
    token_hash::TokenHash,
};
use crate::{
    base::Lock,
    downstream::Session,
    proxy::{Endpoint, HostName},
    wire::Outbox,
};

/// Maximum number of sessions; beyond it, the session that was unused for the longest time ends.
const MAX_SESSIONS: usize = 10_000;
/// Limits for one session of streams that have ended, were not read completely and can still be
/// resumed: their number, and their bytes together.
const MAX_STREAMS: usize = 16;
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;

/// The number of streams of one session at one replica. The numbers of the replica that opened it
/// begin at 0, and those of a replica that opens it again at another multiple, so that a host that
/// resumes a stream gets none of another replica.
const STREAMS_OF_REPLICA: u64 = 1 << 32;

pub(super) struct Sessions {
    by_id: Lock<HashMap<String, Arc<HttpSession>>>,
    /// The sessions that go on at other replicas and have requests in flight here.
    leaving: Lock<Vec<Weak<HttpSession>>>,
    /// The ids of the last sessions that have ended, oldest first.
    ended: Lock<VecDeque<[u8; 32]>>,
    timeout: Duration,
}

/// A session, with its stream for general messages and those of its requests.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    pub(super) id: String,
    /// Only requests with this token may use the session.
    pub(super) token_hash: TokenHash,
    pub(super) endpoint: Endpoint,
    /// True if the host can read an event that carries only an id.
    is_primed: bool,
    state: Lock<HttpSessionState>,
    /// Notified when the last request or open stream ends.
    unused: Notify,
    /// Ends the streams of requests. The general stream may end before them.
    stop: CancellationToken,
    stop_general_stream: CancellationToken,
}

struct HttpSessionState {
    streams: Vec<(u64, Arc<MessageStream>)>,
    last_stream: u64,
    uses: SessionUse,
}

/// The id of a session, and the number of its stream for messages that belong to no request.
pub(super) struct SessionNumbers {
    pub(super) id: String,
    pub(super) general_stream: u64,
}

impl SessionNumbers {
    /// Returns the numbers of a new session.
    pub(super) fn of_new(id: String) -> Self {
        Self { id, general_stream: 0 }
    }

    /// Returns the numbers of a session that another replica has opened.
    pub(super) fn of_reopened(id: String) -> Self {
        let replica = u64::from(fastrand::u16(1..));
        Self { id, general_stream: replica * STREAMS_OF_REPLICA }
    }
}

impl HttpSessionState {
    /// Removes old abandoned streams; the newest stay for a host that resumes them.
    fn forget_old_streams(&mut self) {
        let (mut streams, mut bytes) = (0, 0);
        let mut kept: Vec<bool> = Vec::with_capacity(self.streams.len());
        for (number, stream) in self.streams.iter().rev() {
            let is_abandoned = !is_general(*number) && stream.is_abandoned();
            if is_abandoned {
                streams += 1;
                bytes += stream.outbox().waiting();
            }
            kept.push(!is_abandoned || streams <= MAX_STREAMS && bytes <= MAX_STREAM_BYTES);
        }
        let mut kept = kept.into_iter().rev();
        self.streams.retain(|_| kept.next().unwrap_or(true));
    }
}

/// The requests and open streams that use a session.
enum SessionUse {
    Open(usize),
    None { since: Instant },
}

/// A request or an open stream. The session is in use as long as this lives.
pub(super) struct SessionUseGuard(Arc<HttpSession>);

impl Drop for SessionUseGuard {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.uses = match state.uses {
            SessionUse::Open(1) | SessionUse::None { .. } => {
                self.0.unused.notify_waiters();
                SessionUse::None { since: Instant::now() }
            }
            SessionUse::Open(uses) => SessionUse::Open(uses - 1),
        };
    }
}

impl HttpSession {
    /// Creates a session for a host that has sent its handshake. `stop_general_stream` ends the
    /// general stream; `attach` gets that stream's outbox.
    pub(super) fn new(
        numbers: SessionNumbers,
        token_hash: TokenHash,
        endpoint: Endpoint,
        is_primed: bool,
        stop_general_stream: CancellationToken,
        attach: impl FnOnce(Outbox) -> Arc<Session>,
    ) -> Arc<Self> {
        let SessionNumbers { id, general_stream: general_stream_number } = numbers;
        let stop = CancellationToken::new();
        let general_stream =
            MessageStream::resumable(stop_general_stream.clone(), general_stream_number, is_primed);
        let session = attach(general_stream.outbox().clone());
        let uses = SessionUse::None { since: Instant::now() };
        let state = HttpSessionState {
            streams: vec![(general_stream_number, general_stream)],
            last_stream: general_stream_number,
            uses,
        };
        let state = Lock::new(state);
        Arc::new(Self {
            session,
            id,
            token_hash,
            endpoint,
            is_primed,
            state,
            unused: Notify::new(),
            stop,
            stop_general_stream,
        })
    }

    pub(super) fn begin_use(self: &Arc<Self>) -> SessionUseGuard {
        let mut state = self.state.lock();
        state.uses = match state.uses {
            SessionUse::Open(uses) => SessionUse::Open(uses + 1),
            SessionUse::None { .. } => SessionUse::Open(1),
        };
        drop(state);
        SessionUseGuard(self.clone())
    }

    /// Creates a stream for the answer to a POST.
    pub(super) fn new_stream(&self) -> Arc<MessageStream> {
        let mut state = self.state.lock();
        state.forget_old_streams();
        state.last_stream += 1;
        let number = state.last_stream;
        let stream = MessageStream::resumable(self.stop.clone(), number, self.is_primed);
        state.streams.push((number, stream.clone()));
        stream
    }

    pub(super) fn general_stream(&self) -> Arc<MessageStream> {
        // The general stream is the first one, and is never removed.
        self.state.lock().streams[0].1.clone()
    }

    /// Returns whether another replica has opened the session.
    pub(super) fn is_reopened(&self) -> bool {
        // The general stream is the first one, and is never removed.
        self.state.lock().streams[0].0 != 0
    }

    /// Returns the name by which all replicas know the host.
    pub(super) fn host_name(&self) -> HostName {
        HostName::of(Sha256::digest(&self.id).into())
    }

    /// Returns whether a stream is the one for general messages of another replica that has had
    /// this session.
    pub(super) fn is_general_elsewhere(&self, number: u64) -> bool {
        is_general(number) && self.stream(number).is_none()
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<MessageStream>> {
        let state = self.state.lock();
        state.streams.iter().find(|(of, _)| *of == number).map(|(_, stream)| stream.clone())
    }

    /// Returns whether so many bytes wait for the host that it must read before it sends more
    /// requests.
    pub(super) fn is_behind(&self) -> bool {
        let state = self.state.lock();
        let read = state.streams.iter().filter(|(_, stream)| stream.is_read());
        let waiting: usize = read.map(|(_, stream)| stream.outbox().waiting()).sum();
        waiting > 16 * MAX_WAITING_BYTES
    }

    /// Ends the session when its requests in flight are answered, or their connections are closed.
    /// It must not be found any more.
    pub(super) async fn complete(&self) {
        self.stop_general_stream.cancel();
        loop {
            let unused = self.unused.notified();
            if self.unused_since().is_some() {
                break;
            }
            unused.await;
        }
        self.end().await;
    }

    /// Ends the session and its streams.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.stop_general_stream.cancel();
        self.session.detach().await;
    }

    fn unused_since(&self) -> Option<Instant> {
        match self.state.lock().uses {
            SessionUse::Open(_) => None,
            SessionUse::None { since } => Some(since),
        }
    }
}

/// Removes the session that was unused for the longest time if there is no room for another one.
fn take_surplus(by_id: &mut HashMap<String, Arc<HttpSession>>) -> Option<Arc<HttpSession>> {
    if by_id.len() < MAX_SESSIONS {
        return None;
    }
    let unused = by_id.values().filter_map(|other| Some((other.unused_since()?, other)));
    let oldest = unused.min_by_key(|(since, _)| *since).map(|(_, other)| other.id.clone());
    by_id.remove(&oldest?)
}

fn is_general(number: u64) -> bool {
    number.is_multiple_of(STREAMS_OF_REPLICA)
}

impl Sessions {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { by_id: Lock::default(), leaving: Lock::default(), ended: Lock::default(), timeout }
    }

    /// Adds a session. Returns the one that it has displaced, if any.
    pub(super) fn add(&self, session: Arc<HttpSession>) -> Option<Arc<HttpSession>> {
        let mut by_id = self.by_id.lock();
        let gone = take_surplus(&mut by_id);
        by_id.insert(session.id.clone(), session);
        gone
    }

    /// Adds a session unless there is one with its id. Returns the one that there is then, and the
    /// one that it has displaced, if any.
    pub(super) fn keep_first(
        &self,
        session: Arc<HttpSession>,
    ) -> (Arc<HttpSession>, Option<Arc<HttpSession>>) {
        let mut by_id = self.by_id.lock();
        if let Some(first) = by_id.get(&session.id) {
            return (first.clone(), None);
        }
        let gone = take_surplus(&mut by_id);
        by_id.insert(session.id.clone(), session.clone());
        (session, gone)
    }

    /// Returns whether a session of this id has ended here lately.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(id).into();
        self.ended.lock().contains(&digest)
    }

    /// Remembers that a host has ended a session, or has left it.
    pub(super) fn note_ended(&self, session: &HttpSession) {
        if !session.is_reopened() {
            return;
        }
        let mut ended = self.ended.lock();
        if ended.len() >= MAX_SESSIONS {
            ended.pop_front();
        }
        ended.push_back(Sha256::digest(&session.id).into());
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.by_id.lock().get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.by_id.lock().remove(id)
    }

    /// Removes a session that goes on at another replica. It is still ended with all others.
    pub(super) fn hand_over(&self, id: &str) -> Option<Arc<HttpSession>> {
        // Under the lock, so that the session is always found.
        let mut leaving = self.leaving.lock();
        let session = self.remove(id)?;
        leaving.retain(|left| left.strong_count() > 0);
        leaving.push(Arc::downgrade(&session));
        Some(session)
    }

    /// Returns the session of an id, and those of this id that go on at another replica and have
    /// requests in flight here.
    pub(super) fn copies(&self, id: &str) -> Vec<Arc<HttpSession>> {
        let current = self.find(id);
        let leaving: Vec<_> = self.leaving.lock().iter().filter_map(Weak::upgrade).collect();
        let leaving = leaving.into_iter().filter(|session| session.id == id);
        current.into_iter().chain(leaving).collect()
    }

    /// Returns the time after which an unused session expires; zero for never.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Removes and returns the sessions that were unused for longer than the timeout.
    pub(super) fn take_expired(&self) -> Vec<Arc<HttpSession>> {
        let mut by_id = self.by_id.lock();
        let is_expired = |session: &HttpSession| {
            session.unused_since().is_some_and(|since| since.elapsed() >= self.timeout)
        };
        let ids: Vec<String> = by_id
            .values()
            .filter(|session| is_expired(session))
            .map(|session| session.id.clone())
            .collect();
        ids.iter().filter_map(|id| by_id.remove(id)).collect()
    }

    pub(super) async fn end_all(&self) {
        let mut all: Vec<Arc<HttpSession>> =
            self.by_id.lock().drain().map(|(_, session)| session).collect();
        all.extend(self.leaving.lock().drain(..).filter_map(|left| left.upgrade()));
        futures_util::future::join_all(all.iter().map(|session| session.end())).await;
    }
}
