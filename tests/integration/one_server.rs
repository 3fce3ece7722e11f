//! A host and one server, connected as if dormouse were not between them.

use serde_json::{Value, json};

use crate::support::{Host, ModernHost, Proxy, Server, eventually, text_of};

/// A fixture server that dormouse wraps for one host on stdio, and the server's log.
struct Wrapped {
    host: Host,
    place: tempfile::TempDir,
}

impl Wrapped {
    fn start(mut script: Value) -> Self {
        let place = tempfile::tempdir().unwrap();
        script["log"] = json!(place.path().join("server.log"));
        let proxy = Proxy::wrapping(&script).argument("--surface").argument("direct");
        Self { host: proxy.start(), place }
    }

    fn server_log(&self) -> String {
        std::fs::read_to_string(self.place.path().join("server.log")).unwrap_or_default()
    }

    /// Waits until the server has noted a line that begins with `start`, and returns the line.
    async fn noted(&self, start: &str) -> String {
        let find = || {
            let log = self.server_log();
            log.lines().find(|line| line.starts_with(start)).map(str::to_owned)
        };
        eventually(start, || find().is_some()).await;
        find().unwrap()
    }

    /// Waits until the server has received a message of this method, and returns the message.
    async fn received(&self, method: &str) -> Value {
        self.noted(&format!("{method} ")).await;
        let log = self.server_log();
        let mut messages = log.lines().filter_map(|line| line.strip_prefix("line "));
        let message = messages.find(|message| message.contains(&format!(r#""{method}""#)));
        serde_json::from_str(message.unwrap()).unwrap()
    }
}

const DECLARED: &str = concat!(
    r#"{"roots":{"listChanged":true},"tasks":{"list":{}},"#,
    r#""experimental":{"x":{"n":1e2}},"extensions":{"a/b":{}}}"#
);

async fn initialize(host: &mut Host) -> Value {
    let params = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{DECLARED},"clientInfo":{{"name":"t","version":"1"}}}}"#
    );
    host.write(format!(
        r#"{{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{params}}}"#
    ))
    .await;
    let answer = serde_json::from_str(&host.answer_line(&json!("hello")).await).unwrap();
    host.notify("notifications/initialized", json!({})).await;
    answer
}

#[tokio::test]
async fn wrapped_server_keeps_its_pages_and_sees_its_host() {
    let mut wrapped = Wrapped::start(json!({"page": 5}));
    let host = &mut wrapped.host;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "my-host", "version": "7", "icons": []},
    });
    let said = host.request("initialize", hello).await;
    assert_eq!(said["serverInfo"], json!({"name": "fixture", "version": "1"}), "{said}");
    host.notify("notifications/initialized", json!({})).await;
    let first = host.request("tools/list", json!({})).await;
    assert_eq!(first["tools"].as_array().unwrap().len(), 5);
    assert_eq!(first["nextCursor"], "5");
    let second = host.request("tools/list", json!({"cursor": "5"})).await;
    assert_eq!(second["nextCursor"], "10");
    assert_ne!(second["tools"], first["tools"]);
    let greeted = wrapped.noted("initialize ").await;
    assert!(
        greeted.contains(r#""clientInfo":{"icons":[],"name":"my-host","version":"7"}"#)
            || greeted.contains(r#""clientInfo":{"name":"my-host","version":"7","icons":[]}"#),
        "{greeted}"
    );
}

#[tokio::test]
async fn capabilities_of_a_host_reach_its_server() {
    let startups = ["lazy", "eager", "hybrid"];
    for (startup, path) in
        startups.map(|startup| (startup, "/servers/a/mcp")).into_iter().chain([("lazy", "/mcp")])
    {
        let program = Proxy::with([Server::lazy("a").set("startup", startup)]).start_http();
        if startup == "eager" {
            program.server_noted("a", "tools/list").await;
        }
        let mut host = program.host(path).await;
        initialize(&mut host).await;
        if path == "/mcp" {
            host.load("a").await;
        } else {
            host.call("echo", json!({})).await;
        }
        let log = program.server_log("a");
        let is_greeting =
            |line: &&String| line.starts_with("line ") && line.contains(r#""initialize""#);
        let greeting = log.iter().rev().find(is_greeting).unwrap();
        for member in [
            r#""roots":{"listChanged":true}"#,
            r#""tasks":{"list":{}}"#,
            r#""experimental":{"x":{"n":1e2}}"#,
            r#""extensions":{"a/b":{}}"#,
        ] {
            assert!(greeting.contains(member), "{startup} {path}: {member}: {log:#?}");
        }
    }
}

#[tokio::test]
async fn server_in_use_is_not_reconnected_for_new_capabilities() {
    let program = Proxy::with([Server::eager("a")]).start_http();
    let mut first = program.host("/servers/a/mcp").await;
    first.initialize(json!({})).await;
    first.call("echo", json!({})).await;
    let mut second = program.host("/servers/a/mcp").await;
    initialize(&mut second).await;
    second.call("echo", json!({})).await;
    assert_eq!(program.started("a").len(), 1);
}

#[tokio::test]
async fn capabilities_of_a_server_reach_hosts_of_its_endpoint() {
    let capabilities = json!({
        "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
        "experimental": {"x": {}},
        "extensions": {"a/b": {"n": 1}},
    });
    let server = Server::lazy("a").script("capabilities", capabilities.clone());
    let program = Proxy::with([server]).start_http();
    for time in ["before", "after"] {
        let mut host = program.host("/servers/a/mcp").await;
        let answer = initialize(&mut host).await;
        let told = &answer["result"]["capabilities"];
        for (name, value) in capabilities.as_object().unwrap() {
            assert_eq!(&told[name], value, "{time}: {answer}");
        }
    }
}

#[tokio::test]
async fn handshake_error_reaches_the_host() {
    let mut wrapped = Wrapped::start(json!({"refuse_with": "no licence"}));
    let answer = initialize(&mut wrapped.host).await;
    assert_eq!(answer["error"]["message"], "no licence", "{answer}");
}

#[tokio::test]
async fn wrapped_server_receives_only_requests_of_its_host() {
    let mut wrapped = Wrapped::start(json!({}));
    initialize(&mut wrapped.host).await;
    wrapped.host.call("echo", json!({})).await;
    let log = wrapped.server_log();
    let methods: Vec<&str> = log
        .lines()
        .filter(|line| !line.starts_with("line ") && !line.starts_with("start "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call"]);
}

#[tokio::test]
async fn wrapped_server_announces_unchanged_lists() {
    let mut wrapped = Wrapped::start(json!({}));
    initialize(&mut wrapped.host).await;
    for kind in ["tools", "resources", "prompts"] {
        let method = format!("notifications/{kind}/list_changed");
        wrapped.host.call("send", json!({"method": method, "params": {"n": kind}})).await;
        let announced = wrapped.host.notification(&method).await;
        assert_eq!(announced["params"], json!({"n": kind}));
    }
    let updated = json!({"uri": "x://y"});
    let method = "notifications/resources/updated";
    wrapped.host.call("send", json!({"method": method, "params": updated})).await;
    assert_eq!(wrapped.host.notification(method).await["params"], updated);
}

#[tokio::test]
async fn wrapped_modern_server_notifies_without_a_stream() {
    let mut wrapped = Wrapped::start(json!({"modern_only": true}));
    let method = "notifications/tools/list_changed";
    let said = json!({"method": method, "params": {"n": 1}});
    let send = ModernHost::meta(json!({"name": "send", "arguments": said}));
    wrapped.host.request("tools/call", send).await;
    assert_eq!(wrapped.host.notification(method).await["params"], json!({"n": 1}));
}

#[tokio::test]
async fn malformed_requests_reach_the_server() {
    let mut wrapped = Wrapped::start(json!({}));
    initialize(&mut wrapped.host).await;
    for method in ["tools/call", "prompts/get", "resources/read", "completion/complete"] {
        wrapped.host.ask(method, json!({"odd": 1})).await;
        wrapped.noted(&format!("{method} {}", json!({"odd": 1}))).await;
    }
}

#[tokio::test]
async fn undeclared_questions_reach_the_host() {
    let mut wrapped = Wrapped::start(json!({}));
    initialize(&mut wrapped.host).await;
    let ask = json!({"method": "sampling/createMessage", "params": {"messages": []}});
    let id = wrapped.host.send("tools/call", json!({"name": "ask", "arguments": ask})).await;
    let question = wrapped.host.message("sampling/createMessage", |_| true).await;
    let refusal =
        json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -7, "message": "mine"}});
    wrapped.host.write(refusal.to_string()).await;
    let answer = wrapped.host.answer(id).await;
    assert!(text_of(&answer["result"]).contains(r#""code":-7"#), "{answer}");
}

#[tokio::test]
async fn notifications_of_the_host_reach_the_server() {
    let mut wrapped = Wrapped::start(json!({}));
    initialize(&mut wrapped.host).await;
    for (method, params) in [
        ("notifications/roots/list_changed", json!({})),
        ("notifications/progress", json!({"progressToken": "mine", "progress": 1})),
        ("notifications/odd", json!({"n": 1})),
    ] {
        wrapped.host.notify(method, params.clone()).await;
        wrapped.noted(&format!("{method} {params}")).await;
    }
}

#[tokio::test]
async fn log_level_is_accepted_by_the_server() {
    let mut wrapped = Wrapped::start(json!({"refuse": "logging/setLevel"}));
    initialize(&mut wrapped.host).await;
    let answer = wrapped.host.ask("logging/setLevel", json!({"level": "debug"})).await;
    assert_eq!(answer["error"]["message"], "told to refuse logging/setLevel", "{answer}");

    let mut wrapped = Wrapped::start(json!({}));
    initialize(&mut wrapped.host).await;
    for level in ["odd", "debug"] {
        let answer = wrapped.host.ask("logging/setLevel", json!({"level": level})).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    wrapped.host.call("echo", json!({})).await;
    assert_eq!(wrapped.server_log().matches("\nlogging/setLevel ").count(), 2);
}

#[tokio::test]
async fn wrapped_modern_server_owns_its_stream() {
    let script = json!({"modern_only": true, "ignore": "subscriptions/listen"});
    let mut wrapped = Wrapped::start(script);
    let wanted = json!({"toolsListChanged": true, "odd": 1});
    let params = ModernHost::meta(json!({"notifications": wanted}));
    let stream = wrapped.host.send("subscriptions/listen", params).await;
    let listen = wrapped.received("subscriptions/listen").await;
    assert_eq!(listen["params"]["notifications"], wanted);

    let meta = |id: &Value| json!({"io.modelcontextprotocol/subscriptionId": id});
    for method in ["notifications/subscriptions/acknowledged", "notifications/odd"] {
        let said = json!({"method": method, "params": {"n": 1, "_meta": meta(&listen["id"])}});
        let send = ModernHost::meta(json!({"name": "send", "arguments": said}));
        wrapped.host.request("tools/call", send).await;
        let told = wrapped.host.notification(method).await;
        assert_eq!(told["params"], json!({"n": 1, "_meta": meta(&json!(stream))}));
    }
    let listens = wrapped.server_log().matches("\nsubscriptions/listen ").count();
    assert_eq!(listens, 1, "dormouse opens no stream of its own");
}
