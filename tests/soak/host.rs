//! One connected host: it sends requests, answers questions, and checks that everything that it
//! gets belongs to it.

use std::{
    collections::{HashMap, HashSet},
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    http_wire::{Framing, HttpWire},
    ledger::{Fault, Ledger},
    pipes::Pipes,
    world::{Service, World},
};

/// Maximum time for an answer. All deadlines of dormouse are shorter.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum number of times that a call asks something.
const MAX_QUESTIONS: usize = 3;

/// A way to connect, and the era that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    Stdio,
    StdioModern,
    Daemon,
    DaemonModern,
    Http,
    HttpModern,
    Sse,
}

impl Connection {
    pub const ALL: [Self; 7] = [
        Self::Stdio,
        Self::StdioModern,
        Self::Daemon,
        Self::DaemonModern,
        Self::Http,
        Self::HttpModern,
        Self::Sse,
    ];

    pub fn is_modern(self) -> bool {
        matches!(self, Self::StdioModern | Self::DaemonModern | Self::HttpModern)
    }

    fn is_by_daemon(self) -> bool {
        matches!(self, Self::Daemon | Self::DaemonModern)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StdioModern => "stdio-modern",
            Self::Daemon => "daemon",
            Self::DaemonModern => "daemon-modern",
            Self::Http => "http",
            Self::HttpModern => "http-modern",
            Self::Sse => "sse",
        }
    }
}

enum Wire {
    Pipes(Pipes),
    Http(HttpWire),
}

/// The reason that a request has no result.
#[derive(Clone, Debug)]
pub enum Failure {
    /// An error of dormouse or of the server.
    Refused(String),
    /// No answer came in time, or the connection ended.
    Unanswered(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "refused: {error}"),
            Self::Unanswered(why) => f.write_str(why),
        }
    }
}

struct Pending {
    answer: oneshot::Sender<Value>,
    /// The payload of the call, which is also its progress token.
    payload: String,
    /// The last value of progress.
    progress: u64,
}

pub struct Host {
    pub name: String,
    pub connection: Connection,
    wire: Wire,
    world: Arc<World>,
    ledger: Arc<Ledger>,
    last_id: AtomicU64,
    pending: Mutex<HashMap<u64, Pending>>,
    /// Requests whose answers may still come, because they were cancelled.
    abandoned: Mutex<HashSet<u64>>,
    /// Payloads of calls that may be asked something, also between two rounds.
    open_calls: Mutex<HashSet<String>>,
    /// True once the stream of notifications of a modern host is acknowledged.
    is_listening: watch::Sender<bool>,
    /// The numbers of `tools/list_changed` and of updates of the host's own resource.
    pub tool_lists: watch::Sender<u64>,
    pub updates: watch::Sender<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder panics")
}

impl Host {
    /// Connects a host and subscribes it to its resource.
    pub async fn connect(
        world: &Arc<World>,
        service: &Service,
        connection: Connection,
        number: u64,
        ledger: Arc<Ledger>,
    ) -> Result<Arc<Self>, String> {
        let (sender, received) = mpsc::unbounded_channel();
        let wire = open(world, service, connection, sender).await.map_err(|e| e.to_string())?;
        let host = Arc::new(Self {
            name: format!("{}-{number}", connection.name()),
            connection,
            wire,
            world: world.clone(),
            ledger,
            last_id: AtomicU64::new(0),
            pending: Mutex::default(),
            abandoned: Mutex::default(),
            open_calls: Mutex::default(),
            is_listening: watch::Sender::new(false),
            tool_lists: watch::Sender::new(0),
            updates: watch::Sender::new(0),
        });
        tokio::spawn(read(Arc::downgrade(&host), received));
        if let Some(process) = host.process() {
            world.note_started(process);
        }
        host.introduce().await?;
        Ok(host)
    }

    /// Returns the process of the host's own dormouse.
    pub fn process(&self) -> Option<u32> {
        match &self.wire {
            Wire::Pipes(pipes) => Some(pipes.process),
            Wire::Http(_) => None,
        }
    }

    /// Returns the number of changes of the host's daemon so far, or `None` during a change.
    pub fn daemon_changes(&self) -> Option<u64> {
        if self.connection.is_by_daemon() { self.world.daemon_changes.count() } else { Some(0) }
    }

    /// Returns whether a request has failed because the driver has killed its daemon.
    pub fn has_lost_daemon(&self, failure: &Failure) -> bool {
        /// The texts that dormouse gives as the reason. The second one is for a call that waited
        /// for the answer to a question in the daemon before.
        const REASONS: [&str; 2] =
            ["the dormouse daemon ended before it answered", "belongs to another request"];
        let is_reason = |why: &String| REASONS.iter().any(|reason| why.contains(reason));
        let has_reason = matches!(failure, Failure::Refused(why) if is_reason(why));
        has_reason && self.connection.is_by_daemon() && self.world.daemon_changes.may_have_lost()
    }

    /// Returns the address of the resource to which the host is subscribed.
    pub fn resource(&self) -> String {
        format!("soak-steady://{}", self.name)
    }

    async fn introduce(&self) -> Result<(), String> {
        let failed = |failure: Failure| format!("{}: handshake: {failure}", self.name);
        if self.connection.is_modern() {
            self.request("server/discover", json!({}), "").await.map_err(failed)?;
            // The list waits for the servers that are connected from the start.
            self.request("tools/list", json!({}), "").await.map_err(failed)?;
            return self.listen().await.map_err(failed);
        }
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": self.name, "version": "1"},
        });
        self.request("initialize", params, "").await.map_err(failed)?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(&initialized).await.map_err(|error| error.to_string())?;
        self.request("tools/list", json!({}), "").await.map_err(failed)?;
        let uri = json!({"uri": self.resource()});
        self.request("resources/subscribe", uri, "").await.map_err(failed)?;
        Ok(())
    }

    /// Opens the stream of notifications of a modern host, and waits until it is acknowledged. A
    /// change before that need not be told.
    async fn listen(&self) -> Result<(), Failure> {
        let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [self.resource()]});
        // The answer comes when the stream ends.
        let id = self.next_id();
        self.abandon(id);
        let params = json!({"notifications": wanted});
        self.send_request(id, "subscriptions/listen", params).await?;
        let mut is_listening = self.is_listening.subscribe();
        let acknowledged = is_listening.wait_for(|is_listening| *is_listening);
        match tokio::time::timeout(ANSWER_TIMEOUT, acknowledged).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Failure::Unanswered("the stream was not acknowledged in time")),
        }
    }

    async fn send(&self, message: &Value) -> io::Result<()> {
        match &self.wire {
            Wire::Pipes(pipes) => pipes.send(message),
            Wire::Http(wire) => wire.send(message).await,
        }
    }

    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn abandon(&self, id: u64) {
        lock(&self.abandoned).insert(id);
    }

    /// Sends a request in the form of the host's era.
    async fn send_request(&self, id: u64, method: &str, params: Value) -> Result<(), Failure> {
        let params = if self.connection.is_modern() { self.with_meta(params) } else { params };
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await.map_err(|_| Failure::Unanswered("the connection has ended"))
    }

    fn with_meta(&self, mut params: Value) -> Value {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        params
    }

    /// Sends a request, answers the questions in its results, and returns its result.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        payload: &str,
    ) -> Result<Value, Failure> {
        lock(&self.open_calls).insert(payload.to_owned());
        let result = self.request_in_rounds(method, params, payload).await;
        lock(&self.open_calls).remove(payload);
        result
    }

    async fn request_in_rounds(
        &self,
        method: &str,
        params: Value,
        payload: &str,
    ) -> Result<Value, Failure> {
        let mut retried = params.clone();
        for _ in 0..=MAX_QUESTIONS {
            let result = self.request_once(self.next_id(), method, retried, payload).await?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            retried = params.clone();
            let mut responses = serde_json::Map::new();
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                responses.insert(key.clone(), self.answer_to(&question["params"]));
            }
            retried["inputResponses"] = Value::Object(responses);
            if let Some(state) = result.get("requestState") {
                retried["requestState"] = state.clone();
            }
        }
        Err(Failure::Refused("the call asks without end".to_owned()))
    }

    /// Sends a request under this id, and returns its result.
    pub async fn request_once(
        &self,
        id: u64,
        method: &str,
        params: Value,
        payload: &str,
    ) -> Result<Value, Failure> {
        let (sender, answer) = oneshot::channel();
        let entry = Pending { answer: sender, payload: payload.to_owned(), progress: 0 };
        lock(&self.pending).insert(id, entry);
        let answered = async {
            self.send_request(id, method, params).await?;
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
            answer
                .map_err(|_| Failure::Unanswered("no answer came in time"))?
                .map_err(|_| Failure::Unanswered("the connection has ended"))
        };
        let answered = answered.await;
        lock(&self.pending).remove(&id);
        if let Wire::Http(wire) = &self.wire {
            wire.end_exchange(id);
        }
        let answer = answered?;
        match answer.get("error") {
            Some(error) => Err(Failure::Refused(error["message"].to_string())),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Gives up a request. The answer may come all the same.
    pub async fn cancel(&self, id: u64) {
        self.abandon(id);
        match &self.wire {
            Wire::Http(wire) if self.connection.is_modern() => wire.end_exchange(id),
            _ => {
                let params = json!({"requestId": id});
                let method = "notifications/cancelled";
                // A connection that has ended cancels too.
                let _ =
                    self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
            }
        }
    }

    async fn take(&self, message: Value) {
        let method = message["method"].as_str();
        match (method, message["id"].as_u64(), message.get("id").is_some()) {
            (None, Some(id), _) => self.take_answer(id, message),
            (None, ..) => {
                self.ledger
                    .find(Fault::Crossed, format!("{}: not a message: {message}", self.name));
            }
            (Some("elicitation/create"), _, true) => {
                let answer = self.answer_to(&message["params"]);
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
                // A connection that has ended is noticed by its requests.
                let _ = self.send(&reply).await;
            }
            (Some(_), _, true) => {
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
                let _ = self.send(&reply).await;
            }
            (Some(method), ..) => self.take_notification(method, &message["params"]),
        }
    }

    fn take_answer(&self, id: u64, message: Value) {
        match lock(&self.pending).remove(&id) {
            // The request may have been given up at this moment.
            Some(pending) => drop(pending.answer.send(message)),
            None if lock(&self.abandoned).remove(&id) => {}
            None => {
                let what = format!("{}: a second or unknown answer to {id}", self.name);
                self.ledger.find(Fault::Doubled, what);
            }
        }
    }

    fn take_notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/subscriptions/acknowledged" => {
                let accepted = &params["notifications"]["resourceSubscriptions"];
                if *accepted == json!([self.resource()]) {
                    self.is_listening.send_replace(true);
                }
            }
            "notifications/tools/list_changed" => self.tool_lists.send_modify(|count| *count += 1),
            "notifications/resources/updated" if params["uri"] == json!(self.resource()) => {
                self.updates.send_modify(|count| *count += 1);
            }
            "notifications/resources/updated" => {
                let what = format!("{} got the update of {}", self.name, params["uri"]);
                self.ledger.find(Fault::Crossed, what);
            }
            "notifications/progress" => self.take_progress(params),
            _ => {}
        }
    }

    /// Checks that progress belongs to a call of this host, and comes in order.
    fn take_progress(&self, params: &Value) {
        let (Some(token), Some(progress)) =
            (params["progressToken"].as_str(), params["progress"].as_u64())
        else {
            return;
        };
        let mut pending = lock(&self.pending);
        let Some(call) = pending.values_mut().find(|call| call.payload == token) else {
            drop(pending);
            if !token.starts_with(&format!("{}.", self.name)) {
                let what = format!("{} got the progress of {token}", self.name);
                self.ledger.find(Fault::Crossed, what);
            }
            return;
        };
        if progress != call.progress + 1 || params["message"] != json!(token) {
            let last = call.progress;
            let what = format!("{token}: progress {progress} came after {last}: {params}");
            self.ledger.find(Fault::Lost, what);
        }
        call.progress = progress;
    }

    /// Returns how much progress the call with this payload has reported.
    pub fn progress_of(&self, payload: &str) -> u64 {
        let pending = lock(&self.pending);
        let call = pending.values().find(|call| call.payload == payload);
        call.map(|call| call.progress).unwrap_or_default()
    }

    /// Answers a question. It has to belong to a call of this host. A server on stdio does not say
    /// to which, so that it may come with another call of the same host.
    fn answer_to(&self, question: &Value) -> Value {
        self.ledger.questions.fetch_add(1, Ordering::Relaxed);
        let asked = question["message"].as_str().unwrap_or_default();
        if !lock(&self.open_calls).contains(asked) {
            let what = format!("{} was asked the question of {asked}", self.name);
            self.ledger.find(Fault::Crossed, what);
        }
        json!({"action": "accept", "content": {"answer": format!("answer-to-{asked}")}})
    }

    /// Disconnects. Without `in_order`, a host over HTTP leaves its session behind.
    pub async fn close(&self, in_order: bool) {
        match &self.wire {
            Wire::Pipes(pipes) => {
                if !pipes.close().await {
                    let what = format!("the dormouse of {} has not ended in order", self.name);
                    self.ledger.find(Fault::Leaked, what);
                }
                self.world.note_ended(pipes.process);
            }
            Wire::Http(wire) => {
                if in_order {
                    wire.end_session().await;
                }
                wire.hang_up();
            }
        }
    }
}

async fn open(
    world: &World,
    service: &Service,
    connection: Connection,
    sender: mpsc::UnboundedSender<Value>,
) -> io::Result<Wire> {
    let at = |path: &str| format!("{}{path}", service.origin);
    Ok(match connection {
        Connection::Stdio | Connection::StdioModern => {
            Wire::Pipes(Pipes::start(world.host_command()?, sender)?)
        }
        Connection::Daemon | Connection::DaemonModern => {
            Wire::Pipes(Pipes::start(world.daemon_command(&[])?, sender)?)
        }
        Connection::Http | Connection::HttpModern => {
            Wire::Http(HttpWire::connect(&at("/mcp"), Framing::Streamable, sender).await?)
        }
        Connection::Sse => Wire::Http(HttpWire::connect(&at("/sse"), Framing::Sse, sender).await?),
    })
}

async fn read(host: Weak<Host>, mut received: mpsc::UnboundedReceiver<Value>) {
    while let Some(message) = received.recv().await {
        let Some(host) = host.upgrade() else { return };
        host.take(message).await;
    }
    // Nothing more comes, so that all requests are unanswered.
    if let Some(host) = host.upgrade() {
        lock(&host.pending).clear();
    }
}
