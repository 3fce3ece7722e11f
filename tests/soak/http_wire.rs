//! A host's connection over streamable HTTP, or over HTTP+SSE. The client is independent of
//! dormouse's own code.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::StreamExt;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Streamable,
    Sse,
}

pub struct HttpWire {
    client: Client,
    url: String,
    framing: Framing,
    session: Arc<Mutex<Option<String>>>,
    received: mpsc::UnboundedSender<Value>,
    /// The exchanges that run, by the ids of their requests.
    exchanges: Mutex<HashMap<u64, AbortOnDropHandle<()>>>,
    /// The posts of messages that are no requests.
    posts: TaskTracker,
    /// The streams for messages that belong to no request.
    streams: Mutex<Vec<AbortOnDropHandle<()>>>,
}

impl HttpWire {
    /// Connects to an address. Messages go to `received`.
    pub async fn connect(
        url: &str,
        framing: Framing,
        received: mpsc::UnboundedSender<Value>,
    ) -> io::Result<Self> {
        let client = Client::builder().no_proxy().build().map_err(io::Error::other)?;
        let mut wire = Self {
            client,
            url: url.to_owned(),
            framing,
            session: Arc::default(),
            received,
            exchanges: Mutex::default(),
            posts: TaskTracker::new(),
            streams: Mutex::default(),
        };
        if framing == Framing::Sse {
            wire.open_sse().await?;
        }
        Ok(wire)
    }

    /// Opens the stream of HTTP+SSE, which names the address for messages.
    async fn open_sse(&mut self) -> io::Result<()> {
        let stream = self.client.get(&self.url).header("accept", "text/event-stream").send().await;
        let (sender, mut endpoints) = mpsc::unbounded_channel();
        let received = self.received.clone();
        let stream = stream.map_err(io::Error::other)?;
        self.keep(tokio::spawn(read_events(stream, received, Some(sender))));
        let endpoint = tokio::time::timeout(Duration::from_secs(20), endpoints.recv()).await;
        let path = endpoint.ok().flatten().ok_or(io::ErrorKind::TimedOut)?;
        let base = reqwest::Url::parse(&self.url).map_err(io::Error::other)?;
        self.url = base.join(&path).map_err(io::Error::other)?.into();
        Ok(())
    }

    fn keep(&self, task: tokio::task::JoinHandle<()>) {
        self.streams.lock().expect("no holder panics").push(AbortOnDropHandle::new(task));
    }

    /// Posts a message. The messages of the handshake are waited for, since the next ones depend on
    /// them.
    pub async fn send(&self, message: &Value) -> io::Result<()> {
        let method = message["method"].as_str().unwrap_or_default();
        let exchange = exchange(
            self.request(message),
            message["id"].clone(),
            (self.framing == Framing::Streamable).then(|| self.received.clone()),
            self.session.clone(),
        );
        match (method, message["id"].as_u64()) {
            ("initialize" | "notifications/initialized", _) => exchange.await,
            (_, Some(id)) if !method.is_empty() => {
                let task = AbortOnDropHandle::new(tokio::spawn(exchange));
                self.exchanges.lock().expect("no holder panics").insert(id, task);
            }
            _ => drop(self.posts.spawn(exchange)),
        }
        if method == "notifications/initialized" && self.framing == Framing::Streamable {
            self.listen().await?;
        }
        Ok(())
    }

    /// Opens the stream for messages that belong to no request.
    async fn listen(&self) -> io::Result<()> {
        let request = self.client.get(&self.url).header("accept", "text/event-stream");
        let stream = self.with_session(request).send().await.map_err(io::Error::other)?;
        self.keep(tokio::spawn(read_events(stream, self.received.clone(), None)));
        Ok(())
    }

    /// Forgets an exchange that has ended, or closes the connection of one that runs.
    pub fn end_exchange(&self, id: u64) {
        self.exchanges.lock().expect("no holder panics").remove(&id);
    }

    /// Closes all connections.
    pub fn hang_up(&self) {
        self.streams.lock().expect("no holder panics").clear();
        self.exchanges.lock().expect("no holder panics").clear();
    }

    /// Ends the session, if it has one.
    pub async fn end_session(&self) {
        let has_session = self.session.lock().expect("no holder panics").is_some();
        if has_session {
            // A message after the end of its session is refused.
            self.posts.close();
            let _ = tokio::time::timeout(Duration::from_secs(5), self.posts.wait()).await;
            // Without an answer the session ends by its timeout.
            let _ = self.with_session(self.client.delete(&self.url)).send().await;
        }
    }

    fn with_session(&self, request: RequestBuilder) -> RequestBuilder {
        match &*self.session.lock().expect("no holder panics") {
            Some(id) => {
                request.header("mcp-session-id", id).header("mcp-protocol-version", "2025-11-25")
            }
            None => request,
        }
    }

    /// Returns a POST with the headers that belong to a message.
    fn request(&self, message: &Value) -> RequestBuilder {
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let mut request = self.with_session(request).body(message.to_string());
        let params = &message["params"];
        let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if let Some(version) = version.as_str() {
            let method = message["method"].as_str().unwrap_or_default();
            request = request.header("mcp-protocol-version", version).header("mcp-method", method);
            let subject = match method {
                "tools/call" | "prompts/get" => params["name"].as_str(),
                "resources/read" => params["uri"].as_str(),
                _ => None,
            };
            if let Some(subject) = subject {
                request = request.header("mcp-name", subject);
            }
        }
        request
    }
}

/// Sends a request and reads its response. Without `received`, messages come on another stream.
async fn exchange(
    request: RequestBuilder,
    id: Value,
    received: Option<mpsc::UnboundedSender<Value>>,
    session: Arc<Mutex<Option<String>>>,
) {
    let fail = |why: String| {
        let error = json!({"code": 0, "message": why});
        if let Some(received) = &received {
            // The host may have left.
            let _ = received.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return fail(format!("HTTP: {error}")),
    };
    if let Some(id) = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()) {
        *session.lock().expect("no holder panics") = Some(id.to_owned());
    }
    let status = response.status();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    match (kind, received.clone()) {
        (Some("text/event-stream"), Some(received)) => read_events(response, received, None).await,
        (Some("application/json"), Some(received)) => match response.json::<Value>().await {
            Ok(message) => drop(received.send(message)),
            Err(error) => fail(format!("HTTP: {error}")),
        },
        _ if !status.is_success() => fail(format!("HTTP: {status}")),
        _ => {}
    }
}

/// Gives the messages of a stream to the host, and the path of an `endpoint` event to `endpoints`.
async fn read_events(
    response: Response,
    received: mpsc::UnboundedSender<Value>,
    endpoints: Option<mpsc::UnboundedSender<String>>,
) {
    let mut body = response.bytes_stream();
    let mut text = Vec::new();
    let mut searched = 0;
    while let Some(Ok(chunk)) = body.next().await {
        text.extend_from_slice(&chunk);
        while let Some(end) = text[searched..].windows(2).position(|pair| pair == b"\n\n") {
            let rest = text.split_off(searched + end + 2);
            let event = String::from_utf8_lossy(&text).into_owned();
            text = rest;
            searched = 0;
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            match (field("event: "), field("data: "), &endpoints) {
                (Some("endpoint"), Some(path), Some(endpoints)) => {
                    let _ = endpoints.send(path.to_owned());
                }
                (_, Some(data), _) if !data.is_empty() => {
                    let message = serde_json::from_str(data);
                    let _ = received.send(message.unwrap_or_else(|_| json!(data)));
                }
                _ => {}
            }
        }
        searched = text.len().saturating_sub(1);
    }
}
