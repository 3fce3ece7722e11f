//! The HTTP client of a host, independent of dormouse's own code.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futures_util::StreamExt;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::lines::Lines;

pub struct HttpWire {
    client: Client,
    url: String,
    headers: Vec<(String, String)>,
    lines: Arc<Lines>,
    session: Arc<Mutex<Option<String>>>,
    framing: Framing,
    tasks: Vec<AbortOnDropHandle<()>>,
    /// The running exchanges, by the ids of their requests.
    requests: HashMap<u64, AbortOnDropHandle<()>>,
    /// The status of each POST, in the order of the answers.
    statuses: Arc<Mutex<Vec<u16>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Streamable,
    Sse,
}

pub fn client() -> Client {
    client_builder().build().expect("a client")
}

pub fn client_builder() -> ClientBuilder {
    // Another test in this process may have installed the provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy()
}

impl HttpWire {
    pub(super) fn streamable(url: &str, headers: &[(&str, &str)], lines: Arc<Lines>) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (session, tasks, requests, statuses) = Default::default();
        let framing = Framing::Streamable;
        let (url, headers) = (url.to_owned(), headers.collect());
        Self { client: client(), url, headers, lines, session, framing, tasks, requests, statuses }
    }

    /// Opens the stream, and posts to the address that it names.
    pub(super) async fn sse(url: &str, lines: Arc<Lines>) -> Self {
        let mut wire = Self::streamable(url, &[], lines.clone());
        let response = wire.client.get(url).header("accept", "text/event-stream").send().await;
        let reading = read_events(response.expect("a stream"), lines.clone());
        wire.tasks.push(AbortOnDropHandle::new(tokio::spawn(reading)));
        let named = |line: &str| line.strip_prefix("endpoint ").map(str::to_owned);
        let path = lines.find("the endpoint", named).await;
        let base = reqwest::Url::parse(url).expect("a URL");
        wire.url = base.join(&path).expect("an address").to_string();
        wire.framing = Framing::Sse;
        wire
    }

    /// Sends further requests to another address, with the same session.
    pub fn move_to(&mut self, url: &str) {
        url.clone_into(&mut self.url);
    }

    pub fn session(&self) -> Option<String> {
        self.session.lock().unwrap().clone()
    }

    pub fn statuses(&self) -> Vec<u16> {
        self.statuses.lock().unwrap().clone()
    }

    /// Posts a message; messages in the response are added to the lines. For the messages of the
    /// handshake, returns only after the response has begun, because the next message depends on
    /// it.
    pub(super) async fn post(&mut self, line: Vec<u8>) {
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let request = self.request(&message).body(line);
        let (lines, session, statuses) =
            (self.lines.clone(), self.session.clone(), self.statuses.clone());
        let framing = self.framing;
        let exchange = async move {
            let response = request.send().await.expect("dormouse answers");
            statuses.lock().unwrap().push(response.status().as_u16());
            if let Some(id) = response.headers().get("mcp-session-id") {
                *session.lock().unwrap() = Some(id.to_str().expect("text").to_owned());
            }
            if framing == Framing::Streamable {
                read(response, lines).await;
            }
        };
        if matches!(method.as_str(), "initialize" | "notifications/initialized") {
            exchange.await;
        } else if let Some(id) = message["id"].as_u64().filter(|_| !method.is_empty()) {
            self.requests.insert(id, AbortOnDropHandle::new(tokio::spawn(exchange)));
        } else {
            self.tasks.push(AbortOnDropHandle::new(tokio::spawn(exchange)));
        }
        if method == "notifications/initialized" && framing == Framing::Streamable {
            self.listen(None);
        }
    }

    /// Opens the event stream, or resumes one.
    pub fn listen(&mut self, last_event_id: Option<&str>) {
        let mut request = self.client.get(&self.url).header("accept", "text/event-stream");
        request = self.with_own(request);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let lines = self.lines.clone();
        self.tasks.push(AbortOnDropHandle::new(tokio::spawn(async move {
            read(request.send().await.expect("a stream"), lines).await;
        })));
    }

    /// Closes every open connection without ending the session.
    pub fn hang_up(&mut self) {
        self.tasks.clear();
        self.requests.clear();
    }

    /// Closes the connection of one request.
    pub fn close(&mut self, id: u64) {
        self.requests.remove(&id);
    }

    pub async fn delete(&self) -> u16 {
        let request = self.with_own(self.client.delete(&self.url));
        request.send().await.expect("an answer").status().as_u16()
    }

    fn with_own(&self, mut request: RequestBuilder) -> RequestBuilder {
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match self.session() {
            Some(id) => {
                request.header("mcp-session-id", id).header("mcp-protocol-version", "2025-11-25")
            }
            None => request,
        }
    }

    /// Returns a POST with the headers that belong to a message.
    fn request(&self, message: &Value) -> RequestBuilder {
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let mut request =
            self.with_own(request.header("accept", "application/json, text/event-stream"));
        let meta = &message["params"]["_meta"];
        if let Some(version) = meta["io.modelcontextprotocol/protocolVersion"].as_str() {
            let method = message["method"].as_str().unwrap_or_default();
            request = request.header("mcp-protocol-version", version).header("mcp-method", method);
            let subject = match method {
                "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
                "resources/read" => message["params"]["uri"].as_str(),
                _ => None,
            };
            if let Some(subject) = subject {
                request = request.header("mcp-name", subject);
            }
        }
        request
    }
}

async fn read(response: Response, lines: Arc<Lines>) {
    let content_type = response.headers().get("content-type").cloned();
    let content_type = content_type.as_ref().and_then(|value| value.to_str().ok());
    match content_type {
        Some("text/event-stream") => read_events(response, lines).await,
        Some("application/json") => {
            lines.push(response.text().await.expect("a whole answer"));
        }
        _ => {}
    }
}

/// Adds the data of each event to the lines, preceded by the type of the event, if any.
async fn read_events(response: Response, lines: Arc<Lines>) {
    let mut body = response.bytes_stream();
    let mut text = Vec::new();
    while let Some(Ok(chunk)) = body.next().await {
        text.extend_from_slice(&chunk);
        while let Some(end) = text.windows(2).position(|pair| pair == b"\n\n") {
            let event = String::from_utf8(text.drain(..end + 2).collect()).expect("UTF-8");
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            match (field("event: "), field("data: ")) {
                (Some(kind), Some(data)) => lines.push(format!("{kind} {data}")),
                (None, Some(data)) if !data.is_empty() => lines.push(data.to_owned()),
                _ => {}
            }
            if let Some(id) = field("id: ") {
                lines.push(format!("id {id}"));
            }
        }
    }
}
