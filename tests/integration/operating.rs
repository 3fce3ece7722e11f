//! The API of a running dormouse, over HTTP and over its socket.

use std::{path::Path, time::Duration};

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Cases, Host, Program, Proxy, Server, dormouse, eventually, http_client};

const OPERATOR: &str = "token-of-the-operator";
const TOKEN: &str = "token-of-hosts";

/// An HTTP service and a client of its API.
struct Operator {
    program: Program,
    home: tempfile::TempDir,
}

impl Operator {
    fn of(servers: impl IntoIterator<Item = Server>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let proxy = Proxy::with(servers).at_home(home.path()).set("authTokens", json!([TOKEN]));
        Self {
            program: proxy
                .set("surface", "direct")
                .set("apiTokens", json!([OPERATOR]))
                .start_http(),
            home,
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let url = self.program.url(&format!("/api/v1{path}")).await;
        let mut request = http_client().request(method, url).bearer_auth(OPERATOR);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}")))
    }

    #[track_caller]
    fn get(&self, path: &str) -> impl Future<Output = Value> {
        let sending = self.send(Method::GET, path, None);
        async move {
            let (status, body) = sending.await;
            assert_eq!(status, StatusCode::OK, "{body}");
            body
        }
    }

    async fn host(&self) -> Host {
        let mut host = self.unintroduced_host().await;
        host.initialize(json!({})).await;
        host
    }

    async fn unintroduced_host(&self) -> Host {
        let bearer = format!("Bearer {TOKEN}");
        Host::over_http(&self.program.url("/mcp").await, &[("authorization", &bearer)])
    }

    fn config(&self) -> Value {
        let text = std::fs::read(self.home.path().join("dormouse.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

#[tokio::test]
async fn api_loads_sleeps_and_resets_servers() {
    let operator = Operator::of([
        Server::lazy("a"),
        Server::eager("eager"),
        Server::lazy("broken").set("command", "/no/such/program"),
    ]);
    let post = |path: &'static str| operator.send(Method::POST, path, None);
    assert_eq!(operator.get("/servers/a").await["state"], "unloaded");
    let (status, server) = post("/servers/a/load").await;
    assert_eq!((status, &server["state"]), (StatusCode::OK, &json!("awake")), "{server}");
    let mut host = operator.host().await;
    assert!(host.tool_names().await.contains(&"a__echo".to_owned()));
    let (status, server) = post("/servers/a/sleep").await;
    assert_eq!((status, &server["state"]), (StatusCode::OK, &json!("asleep")), "{server}");
    let (status, refused) = post("/servers/eager/sleep").await;
    assert_eq!(status, StatusCode::CONFLICT);
    insta::assert_snapshot!(refused["error"].as_str().unwrap());
    for _ in 0..3 {
        let (status, refused) = post("/servers/broken/load").await;
        assert_eq!(status, StatusCode::BAD_GATEWAY, "{refused}");
    }
    assert_eq!(operator.get("/servers/broken").await["state"], "evicted");
    let (status, server) = post("/servers/broken/reset").await;
    assert_eq!((status, &server["state"]), (StatusCode::OK, &json!("unloaded")), "{server}");
    assert_eq!(server["strikes"], 0);
    for path in ["/servers/unknown/load", "/servers/unknown/sleep", "/servers/unknown/reset"] {
        assert_eq!(post(path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn server_in_use_is_not_put_to_sleep() {
    let operator = Operator::of([Server::lazy("a")]);
    let mut host = operator.host().await;
    assert!(host.call("a__echo", json!({})).await["isError"].is_null());
    let hanging = host.send("tools/call", json!({"name": "a__hang", "arguments": {}})).await;
    operator.program.server_noted("a", "tools/call {\"name\":\"hang\"").await;
    let (status, refused) = operator.send(Method::POST, "/servers/a/sleep", None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    insta::assert_snapshot!(refused["error"].as_str().unwrap());
    host.cancel(hanging, false).await;
}

#[tokio::test]
async fn api_edits_apply_at_once() {
    let operator = Operator::of([Server::lazy("a")]);
    let mut host = operator.host().await;
    host.load("a").await;
    let entry = operator.config()["mcpServers"]["a"].clone();
    let new = json!({"name": "b/ü", "entry": entry});
    let (status, changed) = operator.send(Method::POST, "/servers", Some(new.clone())).await;
    assert_eq!((status, &changed["added"]), (StatusCode::CREATED, &json!(["b/ü"])), "{changed}");
    assert_eq!(operator.send(Method::POST, "/servers", Some(new)).await.0, StatusCode::CONFLICT);
    assert_eq!(operator.get("/servers/b%2F%C3%BC").await["state"], "unloaded");

    let off = Some(json!({"enabled": false}));
    let (status, changed) = operator.send(Method::PUT, "/servers/a/tools/raw", off.clone()).await;
    assert_eq!(
        (status, &changed["shownDifferently"]),
        (StatusCode::OK, &json!(["a"])),
        "{changed}"
    );
    assert_eq!(operator.config()["mcpServers"]["a"]["tools"], json!({"raw": false}));
    assert!(!host.tool_names().await.contains(&"a__raw".to_owned()));
    let tools = operator.get("/servers/a/tools").await;
    let raw = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "raw").unwrap();
    assert_eq!((&raw["server"], &raw["state"]), (&json!("a"), &json!("hidden")));
    assert!(
        operator.get("/tools").await.as_array().unwrap().len() >= tools.as_array().unwrap().len()
    );

    let (status, changed) = operator.send(Method::PATCH, "/servers/b%2F%C3%BC", off).await;
    assert_eq!((status, &changed["restarted"]), (StatusCode::OK, &json!(["b/ü"])), "{changed}");
    let (status, changed) = operator.send(Method::DELETE, "/servers/a", None).await;
    assert_eq!((status, &changed["removed"]), (StatusCode::OK, &json!(["a"])), "{changed}");
    assert!(operator.config()["mcpServers"].get("a").is_none());
    assert_eq!(operator.send(Method::DELETE, "/servers/a", None).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn invalid_api_requests_change_nothing() {
    let operator = Operator::of([Server::lazy("a")]);
    let before = operator.config();
    let mut cases = Cases::default();
    for (method, path, body, expected) in [
        (
            Method::POST,
            "/servers",
            json!({"name": "x", "entry": {}}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (Method::POST, "/servers", json!({"name": "x"}), StatusCode::UNPROCESSABLE_ENTITY),
        (
            Method::POST,
            "/servers",
            json!({"name": "x", "entry": {"comand": "x"}}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            Method::PUT,
            "/servers/a/tools/*",
            json!({"enabled": false}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (Method::PUT, "/servers/b/tools/x", json!({"enabled": false}), StatusCode::NOT_FOUND),
        (Method::PATCH, "/servers/a", json!({"enable": false}), StatusCode::UNPROCESSABLE_ENTITY),
        (Method::GET, "/nowhere", Value::Null, StatusCode::NOT_FOUND),
    ] {
        let case = format!("{method} {path} {body}");
        let (status, refused) = operator.send(method, path, Some(body)).await;
        assert_eq!(status, expected, "{path}: {refused}");
        cases.add(case, refused["error"].as_str().unwrap());
        assert_eq!(operator.config(), before, "{path}");
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn openapi_document_names_only_known_paths() {
    let operator = Operator::of([Server::lazy("a")]);
    let document = operator.get("/openapi.json").await;
    let (_, unknown_path) = operator.send(Method::GET, "/nowhere", None).await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap();
        if path == "/events" {
            continue;
        }
        for method in methods.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let asked = path.replace("{name}", "unknown").replace("{tool}", "t");
            let (status, answer) = operator.send(method.clone(), &asked, Some(json!({}))).await;
            assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_ne!(answer["error"], unknown_path["error"], "{method} {path}");
        }
    }
}

/// An open event stream of the API.
struct EventStream {
    bytes: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
}

impl EventStream {
    async fn of(operator: &Operator) -> Self {
        let url = operator.program.url("/api/v1/events").await;
        let stream = http_client().get(url).bearer_auth(OPERATOR).send().await.unwrap();
        let mut events = Self { bytes: stream.bytes_stream().boxed(), text: String::new() };
        events.until("event: status\ndata: {\"pid\":").await;
        events
    }

    /// Waits for an event that contains the text. Returns what has come since the last one.
    async fn until(&mut self, expected: &str) -> String {
        while !(self.text.contains(expected) && self.text.ends_with("\n\n")) {
            let next = tokio::time::timeout(Duration::from_secs(30), self.bytes.next());
            let next = next.await.unwrap_or_else(|_| panic!("{expected}: {}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&next.unwrap().unwrap()));
        }
        std::mem::take(&mut self.text)
    }

    /// Waits for the report of an ended call.
    async fn next_call(&mut self) -> Value {
        let seen = self.until("event: call\n").await;
        let (_, call) = seen.split_once("event: call\ndata: ").expect("a call");
        serde_json::from_str(call.lines().next().unwrap()).unwrap()
    }
}

#[tokio::test]
async fn event_stream_reports_server_states() {
    let operator = Operator::of([Server::lazy("a")]);
    let mut events = EventStream::of(&operator).await;
    operator.send(Method::POST, "/servers/a/load", None).await;
    events.until("\"state\":\"awake\"").await;
    operator.send(Method::DELETE, "/servers/a", None).await;
    events.until("event: removed\ndata: {\"name\":\"a\"}").await;
}

#[tokio::test]
async fn event_stream_reports_ended_calls() {
    let operator = Operator::of([Server::eager("a")]);
    let mut host = operator.host().await;
    let mut events = EventStream::of(&operator).await;
    let failed = json!({"result": r#"{"content":[],"isError":true}"#});
    for (tool, arguments, outcome) in [("echo", json!({}), "succeeded"), ("raw", failed, "failed")]
    {
        host.call(&format!("a__{tool}"), arguments).await;
        let call = events.next_call().await;
        assert!(call["tookMs"].is_f64() && call["host"].is_u64(), "{call}");
        assert_eq!(
            (&call["server"], &call["method"], &call["name"]),
            (&json!("a"), &json!("tools/call"), &json!(tool)),
        );
        assert_eq!(call["outcome"], outcome, "{call}");
    }
}

#[tokio::test]
async fn parked_call_is_reported_once_with_its_end() {
    let operator = Operator::of([Server::eager("a")]);
    let mut host = operator.host().await;
    let mut modern = operator.unintroduced_host().await.into_modern();
    host.call("a__echo", json!({})).await;
    let mut events = EventStream::of(&operator).await;
    let question = json!({"method": "elicitation/create", "params": {"message": "who?"}});
    let capabilities = json!({"elicitation": {}});
    let mut call = json!({"name": "a__ask", "arguments": question});
    let asked = modern.request_as("tools/call", call.clone(), &capabilities).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    // The parked call has not ended, so that the next call is the first to be reported.
    host.call("a__echo", json!({})).await;
    assert_eq!(events.next_call().await["name"], "echo");
    call["requestState"] = asked["requestState"].clone();
    call["inputResponses"] = json!({"q1": {"action": "accept", "content": {}}});
    modern.request_as("tools/call", call, &capabilities).await;
    let ended = events.next_call().await;
    assert_eq!((&ended["name"], &ended["outcome"]), (&json!("ask"), &json!("succeeded")));
    host.call("a__echo", json!({})).await;
    assert_eq!(events.next_call().await["name"], "echo");
}

#[tokio::test]
async fn cancelled_call_is_reported_as_unanswered() {
    let operator = Operator::of([Server::eager("a")]);
    let mut host = operator.host().await;
    host.call("a__echo", json!({})).await;
    let mut events = EventStream::of(&operator).await;
    let id = host.send("tools/call", json!({"name": "a__hang", "arguments": {}})).await;
    operator.program.server_noted("a", r#"tools/call {"name":"hang""#).await;
    host.cancel(id, false).await;
    let ended = events.next_call().await;
    assert_eq!((&ended["name"], &ended["outcome"]), (&json!("hang"), &json!("unanswered")));
}

#[tokio::test]
async fn api_needs_the_operator_token() {
    let closed = Operator::of([Server::lazy("a").set("authTokens", json!(["token-of-a"]))]);
    let open = Proxy::with([Server::lazy("a")]).start_http();
    let closed_url = closed.program.url("/api/v1/status").await;
    for (url, token, origin, expected) in [
        (open.url("/api/v1/status").await, None, None, StatusCode::FORBIDDEN),
        (closed_url.clone(), None, None, StatusCode::UNAUTHORIZED),
        (closed_url.clone(), Some("token-of-a"), None, StatusCode::UNAUTHORIZED),
        (closed_url.clone(), Some(TOKEN), None, StatusCode::UNAUTHORIZED),
        (closed_url.clone(), Some(OPERATOR), Some("https://evil.example"), StatusCode::FORBIDDEN),
        (closed_url, Some(OPERATOR), None, StatusCode::OK),
    ] {
        let mut request = http_client().get(&url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        assert_eq!(request.send().await.unwrap().status(), expected, "{url} {token:?} {origin:?}");
    }
}

/// Runs a command while an instance with the same config runs.
async fn command_in(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = dormouse();
    command.arg("--config").arg(home.join("dormouse.json")).args(arguments);
    for (variable, directory) in
        [("XDG_RUNTIME_DIR", ""), ("XDG_CACHE_HOME", "cache"), ("XDG_DATA_HOME", "data")]
    {
        command.env(variable, home.join(directory));
    }
    let output = command.output().await.expect("dormouse runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[tokio::test]
async fn command_loads_a_toolset_for_all_hosts() {
    let home = tempfile::tempdir().unwrap();
    let toolsets = json!({"few": {"tools": ["echo"]}, "others": {"tools": ["s*"]}});
    let server = Server::lazy("a").set("toolsets", toolsets);
    let mut host = Proxy::with([server]).at_home(home.path()).serve().await;
    let sockets = home.path().join("dormouse/run");
    eventually("the socket is there", || {
        sockets.read_dir().is_ok_and(|mut all| all.next().is_some())
    })
    .await;
    let (code, said) = command_in(home.path(), &["load", "a/few"]).await;
    assert!(code == Some(0) && said.contains("a/few: awake"), "{said}");
    let description = host.description().await;
    assert!(description.contains("- echo") && !description.contains("- shout"), "{description}");
    let (code, said) = command_in(home.path(), &["sleep", "a/few"]).await;
    assert!(code != Some(0) && said.contains("unknown server"), "{said}");
}

#[tokio::test]
async fn commands_reach_the_running_dormouse() {
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([Server::lazy("a"), Server::lazy("b")]).at_home(home.path());
    let mut host = proxy.serve().await;
    let run = |arguments: &'static [&'static str]| command_in(home.path(), arguments);
    let sockets = home.path().join("dormouse/run");
    eventually("the socket is there", || {
        sockets.read_dir().is_ok_and(|mut all| all.next().is_some())
    })
    .await;
    let mut cases = Cases::default();
    let (code, said) = run(&["load", "a"]).await;
    assert_eq!(code, Some(0), "{said}");
    cases.add("load a", &said);
    assert!(host.description().await.contains("echo"));
    for (command, server) in [("sleep", "a"), ("reset", "a"), ("remove", "b")] {
        let (code, said) = command_in(home.path(), &[command, server]).await;
        assert_eq!(code, Some(0), "{said}");
        cases.add(format!("{command} {server}"), &said);
    }
    assert!(!host.description().await.contains("- b:"));
    let (code, said) = run(&["load", "b"]).await;
    assert_eq!(code, Some(2), "{said}");
    cases.add("load b", &said);
    host.end().await;
    let (code, said) = run(&["load", "a"]).await;
    assert_eq!(code, Some(1), "{said}");
    cases.add("load a, without an instance", &said);
    insta::assert_snapshot!(cases);
}
