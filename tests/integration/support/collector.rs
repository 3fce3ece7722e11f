//! A collector of telemetry: OTLP over HTTP, in JSON.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, extract::State, http::Uri};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::eventually;

/// The requests so far, each with its path.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

pub struct Collector {
    address: SocketAddr,
    requests: Requests,
    _serving: AbortOnDropHandle<()>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Requests::default();
        let router = Router::new().fallback(receive).with_state(requests.clone());
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the listener works");
        });
        Self { address, requests, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Returns the value of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all that was received, as text.
    pub fn text(&self) -> String {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(_, body)| body.to_string()).collect()
    }

    /// Waits until so many spans were received, and returns them.
    pub async fn spans(&self, count: usize) -> Vec<Value> {
        eventually(&format!("{count} spans are exported"), || self.received().len() >= count).await;
        self.received()
    }

    /// Waits for a metric, and returns it as it was received last.
    pub async fn metric(&self, name: &str) -> Value {
        eventually(&format!("{name} is exported"), || self.last_metric(name).is_some()).await;
        self.last_metric(name).expect("it was there")
    }

    fn received(&self) -> Vec<Value> {
        self.parts("/v1/traces", "/resourceSpans/0/scopeSpans/0/spans")
    }

    fn last_metric(&self, name: &str) -> Option<Value> {
        let metrics = self.parts("/v1/metrics", "/resourceMetrics/0/scopeMetrics/0/metrics");
        metrics.into_iter().rfind(|metric| metric["name"] == name)
    }

    fn parts(&self, path: &str, pointer: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let of_path = requests.iter().filter(|(known, _)| known == path);
        let parts = of_path.filter_map(|(_, body)| body.pointer(pointer)?.as_array().cloned());
        parts.flatten().collect()
    }
}

async fn receive(
    State(requests): State<Requests>,
    uri: Uri,
    Json(body): Json<Value>,
) -> &'static str {
    requests.lock().unwrap().push((uri.path().to_owned(), body));
    "{}"
}

/// Returns an attribute of a span or of a point of a metric.
pub fn attribute<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    let attributes = of["attributes"].as_array()?;
    let found = attributes.iter().find(|attribute| attribute["key"] == name)?;
    found["value"]["stringValue"].as_str()
}
