//! A server behind HTTP whose tokens expire every two seconds, with its authorization server.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::server::{Journal, open_journal, text};

/// The time for which a token is good. The server tells clients nothing else.
const TOKEN_LIFETIME: Duration = Duration::from_secs(2);

pub struct Guarded {
    origin: String,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

struct Shared {
    origin: String,
    journal: Journal,
    tokens: Mutex<HashMap<String, Instant>>,
    given: AtomicU64,
}

impl Guarded {
    pub async fn start(journals: &Path) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            origin: origin.clone(),
            journal: open_journal(journals, "guarded"),
            tokens: Mutex::default(),
            given: AtomicU64::new(0),
        });
        let router = Router::new()
            .route("/mcp", post(answer).get(|| async { StatusCode::METHOD_NOT_ALLOWED }))
            .route("/token", post(give_token))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_metadata))
            .route("/.well-known/oauth-authorization-server", get(server_metadata))
            .with_state(shared.clone());
        let serving = tokio::spawn(async move {
            // Serving ends with the soak.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { origin, shared, _serving: AbortOnDropHandle::new(serving) })
    }

    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub fn tokens_given(&self) -> u64 {
        self.shared.given.load(Ordering::Relaxed)
    }
}

async fn resource_metadata(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let origin = &shared.origin;
    Json(json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}))
}

async fn server_metadata(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let origin = &shared.origin;
    Json(json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    }))
}

async fn give_token(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let number = shared.given.fetch_add(1, Ordering::Relaxed);
    let token = format!("token-{number}");
    let mut tokens = shared.tokens.lock().expect("no holder panics");
    let now = Instant::now();
    tokens.retain(|_, until| *until > now);
    tokens.insert(token.clone(), now + TOKEN_LIFETIME);
    // The lifetime is told wrongly, so that the server is the one to say that a token has expired.
    Json(json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = shown.and_then(|shown| shown.strip_prefix("Bearer ")).unwrap_or_default();
    let until = shared.tokens.lock().expect("no holder panics").get(token).copied();
    if until.is_none_or(|until| until <= Instant::now()) {
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", shared.origin);
        let challenge = format!("Bearer resource_metadata=\"{place}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let (params, id) = (&message["params"], &message["id"]);
    let result = match message["method"].as_str() {
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }),
        Some("tools/list") => {
            let tools = ["echo", "big"]
                .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({"tools": tools})
        }
        Some("tools/call") => {
            let arguments = &params["arguments"];
            let payload = arguments["payload"].as_str().unwrap_or_default();
            shared.journal.note(payload);
            let filling = arguments["size"].as_u64().and_then(|size| usize::try_from(size).ok());
            let name = params["name"].as_str().unwrap_or_default();
            match filling {
                Some(size) => text(&format!("{name} {payload} {}", "x".repeat(size))),
                None => text(&format!("{name} {payload}")),
            }
        }
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}
