//! A server behind a URL that answers each request as the test says.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: String,
    pub message: Value,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// Returns the JSON-RPC method, or the HTTP method if there is none.
    pub fn method_name(&self) -> &str {
        self.message["method"].as_str().unwrap_or(self.method.as_str())
    }
}

pub struct Remote {
    pub url: String,
    asked: Arc<Mutex<Vec<RecordedRequest>>>,
    _serving: AbortOnDropHandle<()>,
}

type Answer = Pin<Box<dyn Future<Output = Option<Response>> + Send>>;

impl Remote {
    /// Starts a server. Requests for which `answer` returns `None` get the answer of a legacy
    /// server with one tool.
    pub async fn start<F, A>(answer: F) -> Self
    where
        F: Fn(RecordedRequest) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Option<Response>> + Send + 'static,
    {
        let asked: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let kept = asked.clone();
        let answer = move |asked: RecordedRequest| -> Answer { Box::pin(answer(asked)) };
        let router = Router::new().fallback(move |request: Request| {
            let (kept, answer) = (kept.clone(), answer.clone());
            async move {
                let asked = read(request).await;
                kept.lock().unwrap().push(asked.clone());
                answer(asked.clone()).await.unwrap_or_else(|| default_answer(&asked))
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("it listens"));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { url, asked, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Returns every request so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns how many requests had this method.
    pub fn count(&self, what: &str) -> usize {
        self.requests().iter().filter(|asked| asked.method_name() == what).count()
    }
}

async fn read(request: Request<Body>) -> RecordedRequest {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a whole body");
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    RecordedRequest { method: parts.method, path, query, headers: parts.headers, body, message }
}

/// Returns the answer of a legacy server with one tool.
pub fn default_answer(asked: &RecordedRequest) -> Response {
    if asked.method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let result = match asked.method_name() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "remote", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "ordinary"}]}),
        "POST" | "notifications/initialized" | "notifications/cancelled" => {
            return StatusCode::ACCEPTED.into_response();
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            let reply = json!({"jsonrpc": "2.0", "id": asked.message["id"], "error": error});
            return json_text(&reply.to_string());
        }
    };
    json_text(&reply(asked, &result.to_string()))
}

/// Returns a reply with this text as its result.
pub fn reply(asked: &RecordedRequest, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, asked.message["id"])
}

pub fn json_text(text: &str) -> Response {
    ([("content-type", "application/json")], text.to_owned()).into_response()
}

pub fn events(text: impl Into<Body>) -> Response {
    ([("content-type", "text/event-stream")], text.into()).into_response()
}
