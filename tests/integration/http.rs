//! Hosts over HTTP: admission, sessions, streams, and shutdown.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    Host, ModernHost, Program, Proxy, Server, descendants, eventually, http_client, text_of,
};

const PATH: &str = "/mcp";

fn service() -> Proxy {
    // Some tests need results of any size.
    Proxy::with([Server::lazy("a"), Server::lazy("b")]).set("maxResultBytes", 0)
}

async fn initialized(program: &Program, path: &str) -> Host {
    let mut host = program.host(path).await;
    host.initialize(json!({})).await;
    host
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }})
}

/// Returns the status of an `initialize` with these headers.
async fn status(program: &Program, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = http_client()
        .post(program.url(path).await)
        .header("content-type", "application/json")
        .body(hello().to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn host_over_http_loads_calls_and_is_notified() {
    let program = service().start_http();
    let mut host = initialized(&program, PATH).await;
    assert_eq!(host.tool_names().await, ["discover_tool", "use_tool", "load_mcp"]);
    let report = host.load("a").await;
    assert_eq!(report["structuredContent"]["mcp_name"], "a");
    host.notification("notifications/tools/list_changed").await;
    let result = host.use_tool("a/echo", json!({"x": 1})).await;
    assert_eq!(text_of(&result), r#"{"name":"echo","arguments":{"x":1}}"#);
    assert_eq!(program.started("a").len(), 1);
}

#[tokio::test]
async fn foreign_requests_are_refused() {
    let program = service().start_http();
    for (name, value, expected) in [
        ("host", "evil.example.com", 403),
        ("origin", "http://evil.example.com", 403),
        ("origin", "http://localhost:1234", 200),
        ("accept", "text/html", 406),
    ] {
        assert_eq!(status(&program, PATH, &[(name, value)]).await, expected, "{name}: {value}");
    }
    assert_eq!(status(&program, "/servers/unknown/mcp", &[]).await, 404);
    assert_eq!(status(&program, "/mcp?surface=nonsense", &[]).await, 400);
    let text = http_client().post(program.url(PATH).await).body("x").send().await.unwrap();
    assert_eq!(text.status(), 415);
}

#[tokio::test]
async fn tokens_open_all_servers_or_one() {
    let own = Server::lazy("own").set("authTokens", json!(["for-own"]));
    let program =
        Proxy::with([own, Server::lazy("b")]).set("authTokens", json!(["for-all"])).start_http();
    let bearer = |token: &str| format!("Bearer {token}");
    for (path, token, expected) in [
        (PATH, "for-all", 200),
        (PATH, "for-own", 401),
        (PATH, "wrong", 401),
        ("/servers/own/mcp", "for-own", 200),
        ("/servers/own/mcp", "for-all", 200),
        ("/servers/b/mcp", "for-own", 401),
    ] {
        let token = bearer(token);
        assert_eq!(status(&program, path, &[("authorization", &token)]).await, expected, "{path}");
    }
    assert_eq!(status(&program, PATH, &[]).await, 401);
    for path in ["/healthz", "/readyz"] {
        let answer = http_client().get(program.url(path).await).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert!(!program.log().iter().any(|line| line.contains("for-all")));
}

#[tokio::test]
async fn public_address_gets_a_printed_token() {
    let program = service().argument("--http").argument("0.0.0.0:0").start_service();
    let url = program.url(PATH).await.replace("0.0.0.0", "127.0.0.1");
    let log = program.log();
    let tokens: Vec<&str> =
        log.iter().filter_map(|line| line.split_once("bearer token: ")).map(|(_, t)| t).collect();
    assert_eq!(tokens.len(), 1, "{log:#?}");
    let post = |token: Option<&str>| {
        let request = http_client()
            .post(&url)
            .header("content-type", "application/json")
            .body(hello().to_string());
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    };
    assert_eq!(post(None).send().await.unwrap().status(), 401);
    assert_eq!(post(Some(tokens[0])).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn session_belongs_to_its_token_and_can_be_deleted() {
    let program = service().set("authTokens", json!(["one", "two"])).start_http();
    let url = program.url(PATH).await;
    let mut host = Host::over_http(&url, &[("authorization", "Bearer one")]);
    host.initialize(json!({})).await;
    let id = host.http().session().unwrap();
    assert!(id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    let ask = |token: &str, session: Option<&str>| {
        let request = http_client()
            .post(&url)
            .bearer_auth(token)
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2025-03-26")
            .body(list.clone());
        match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    };
    assert_eq!(ask("one", Some(&id)).send().await.unwrap().status(), 200);
    assert_eq!(ask("two", Some(&id)).send().await.unwrap().status(), 404);
    assert_eq!(ask("one", None).send().await.unwrap().status(), 400);
    assert_eq!(ask("one", Some("invented")).send().await.unwrap().status(), 404);
    assert_eq!(host.http().delete().await, 204);
    assert_eq!(ask("one", Some(&id)).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn session_expires_without_an_open_stream() {
    let program = service().set("sessionTimeout", "300ms").start_http();
    let mut present = initialized(&program, PATH).await;
    let mut gone = initialized(&program, PATH).await;
    gone.http_mut().hang_up();
    insta::assert_snapshot!(program.logged_at("INFO", "session").await);
    // The host with an open event stream keeps its session.
    assert_eq!(present.tool_names().await.len(), 3);
    gone.send("tools/list", json!({})).await;
    eventually("the other is forgotten", || gone.http().statuses().last() == Some(&404)).await;
}

#[tokio::test]
async fn broken_stream_resumes_with_its_own_events() {
    let program = service().start_http();
    let mut host = initialized(&program, PATH).await;
    host.load("a").await;
    let call = |text: &str| {
        json!({"name": "use_tool", "arguments": {
        "tool_name": "a/slow", "tool_input": {"ms": 700, "say": text}}})
    };
    let first = host.send("tools/call", call("first")).await;
    let second = host.send("tools/call", call("second")).await;
    // Each stream begins with an event that carries only its id.
    let ids = |host: &Host| -> Vec<String> {
        let lines = host.received();
        lines.iter().filter_map(|line| Some(line.strip_prefix("id ")?.to_owned())).collect()
    };
    let primed =
        |host: &Host| ids(host).into_iter().filter(|id| id.ends_with("-0")).collect::<Vec<_>>();
    eventually("both streams have begun", || primed(&host).len() >= 3).await;
    let streams = primed(&host);
    host.http_mut().hang_up();
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(
        !host.received().iter().any(
            |line| line.contains("\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"slow")
        )
    );
    let before = host.received().len();
    let mut answered = Vec::new();
    for stream in &streams {
        host.http_mut().listen(Some(stream));
    }
    for id in [first, second] {
        answered.push(host.answer(id).await["id"].clone());
    }
    let resumed = host.received();
    let of = |id: u64| {
        let has_id = |line: &&String| line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#));
        resumed[before..].iter().filter(has_id).count()
    };
    assert_eq!((of(first), of(second)), (1, 1), "{resumed:#?}");
    let unknown = http_client()
        .get(program.url(PATH).await)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", host.http().session().unwrap())
        .header("last-event-id", "999-1")
        .send()
        .await
        .unwrap();
    assert_eq!(unknown.status(), 400);
}

#[tokio::test]
async fn endpoint_of_one_server_keeps_its_names() {
    let program = service().start_http();
    let mut alone = initialized(&program, "/servers/a/mcp").await;
    let names = alone.tool_names().await;
    assert!(names.contains(&"echo".to_owned()), "{names:?}");
    assert!(
        !names.iter().any(|name| name.contains("load_mcp") || name.contains("__")),
        "{names:?}"
    );
    let result = alone.call("echo", json!({"x": 1})).await;
    assert_eq!(text_of(&result), r#"{"name":"echo","arguments":{"x":1}}"#);
    assert!(program.started("b").is_empty());
    // The server refuses methods that it does not know.
    let answer = alone.ask("no/such", json!({})).await;
    assert_eq!(answer["error"]["message"], "no no/such");
    let mut other = initialized(&program, "/servers/b/mcp?surface=activate").await;
    assert_eq!(other.tool_names().await, ["activate_b"]);
    other.call("activate_b", json!({})).await;
    assert!(other.tool_names().await.contains(&"echo".to_owned()));
    let mut all = initialized(&program, "/mcp?surface=direct").await;
    assert!(all.tool_names().await.contains(&"a__echo".to_owned()));
}

#[tokio::test]
async fn endpoint_of_one_server_announces_no_other() {
    let program = service().start_http();
    let mut of_a = initialized(&program, "/servers/a/mcp").await;
    let mut of_all = initialized(&program, PATH).await;
    of_a.tool_names().await;
    of_all.load("b").await;
    of_all.notification("notifications/tools/list_changed").await;
    of_a.call("slow", json!({"ms": 300})).await;
    let told = of_a.notifications();
    // The host asked for the list that loaded its own server. It must hear of no other load.
    assert!(told.iter().filter(|method| method.ends_with("list_changed")).count() <= 1, "{told:?}");
}

#[tokio::test]
async fn batch_is_answered_as_one() {
    let program = service().start_http();
    let host = initialized(&program, PATH).await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/nothing"},
        {"jsonrpc": "2.0", "id": "b", "method": "no/such"},
    ]);
    let answer = http_client()
        .post(program.url(PATH).await)
        .header("content-type", "application/json")
        .header("mcp-session-id", host.http().session().unwrap())
        .body(batch.to_string())
        .send()
        .await
        .unwrap();
    let answers: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids.len(), 2, "{answers}");
    assert!(ids.contains(&&json!("a")) && ids.contains(&&json!("b")));
}

#[tokio::test]
async fn body_that_is_declared_too_large_is_refused_before_it_arrives() {
    let program = service().start_http();
    let url: reqwest::Url = program.url(PATH).await.parse().unwrap();
    let address = (url.host_str().unwrap(), url.port().unwrap());
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: 99999999999\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn oversized_and_malformed_bodies_are_refused() {
    let program = service().set("maxMessageBytes", 2000).start_http();
    let post = |body: String| async {
        let request = http_client()
            .post(program.url(PATH).await)
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(post(json!({"x": "x".repeat(3000)}).to_string()).await.0, 413);
    let (status, text) = post("{".to_owned()).await;
    assert!(status == 400 && text.contains("-32700"), "{text}");
    let (status, text) = post(r#"{"jsonrpc":"2.0","id":7,"method":3}"#.to_owned()).await;
    assert!(status == 400 && text.contains(r#""id":7"#), "{text}");
}

#[tokio::test]
async fn load_of_a_modern_host_waits_for_the_new_list() {
    let program = service().set("settle", "20s").start_http();
    let mut listening = program.modern(PATH).await;
    listening.listen(json!({"toolsListChanged": true})).await;
    let mut calling = program.modern(PATH).await;
    let began = std::time::Instant::now();
    let load = json!({"name": "load_mcp", "arguments": {"mcp_name": "a"}});
    let mut surface = program.modern("/mcp?surface=activate").await;
    let activate = json!({"name": "activate_a", "arguments": {}});
    let id = surface.send("tools/call", activate).await;
    listening.0.notification("notifications/tools/list_changed").await;
    surface.request("tools/list", json!({})).await;
    assert_eq!(surface.0.answer(id).await["result"]["isError"], Value::Null);
    calling.request("tools/call", load).await;
    assert!(began.elapsed() < Duration::from_secs(15), "no host waited for the whole pause");
}

#[tokio::test]
async fn shutdown_finishes_requests_in_flight() {
    let program = service().start_http();
    let mut host = initialized(&program, PATH).await;
    host.load("a").await;
    let mut modern = program.modern(PATH).await;
    let stream = modern.listen(json!({"toolsListChanged": true})).await;
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "a/slow", "tool_input": {"ms": 600}}});
    let id = host.send("tools/call", call).await;
    program.server_noted("a", "tools/call").await;
    let servers = descendants(program.serving_id());
    program.signal(Signal::SIGTERM);
    assert!(host.answer(id).await["result"]["content"].is_array());
    let ended = modern.0.answer(stream).await;
    assert_eq!(ended["result"]["resultType"], "complete");
    let mut program = program;
    assert_eq!(program.exit().await, Some(0));
    assert!(!servers.iter().any(|server| crate::support::is_alive(*server)));
}

#[tokio::test]
async fn stdio_and_http_share_servers() {
    let mut on_stdio =
        service().argument("--http").argument("127.0.0.1:0").argument("--stdio").start();
    on_stdio.initialize(json!({})).await;
    on_stdio.load("a").await;
    let over_http = on_stdio.url(PATH).await;
    let mut over_http = Host::over_http(&over_http, &[]);
    over_http.initialize(json!({})).await;
    let result = over_http.use_tool("a/echo", json!({})).await;
    assert!(result["isError"].is_null());
    assert_eq!(on_stdio.started("a").len(), 1);
    assert_eq!(on_stdio.end().await, Some(0));
}

#[tokio::test]
async fn host_that_does_not_read_slows_no_other() {
    let program = service().start_http();
    let mut host = initialized(&program, PATH).await;
    host.load("a").await;
    let lazy = initialized(&program, PATH).await;
    let session = lazy.http().session().unwrap();
    let address = program.url("").await.replace("http://", "");
    let mut connections = Vec::new();
    for id in 0..64 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "use_tool",
            "arguments": {"tool_name": "a/huge", "tool_input": {"bytes": 1_000_000}},
        }});
        let body = call.to_string();
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        connections.push(stream);
    }
    for _ in 0..50 {
        assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    }
    let peak = crate::support::peak_memory(program.serving_id());
    assert!(peak < 400_000, "{peak} kB");
}

#[tokio::test]
async fn sse_host_that_does_not_read_slows_no_other() {
    let program = service().start_http();
    let mut host = initialized(&program, PATH).await;
    host.load("a").await;
    let address = program.url("").await.replace("http://", "");
    // The test reads only the first event of the stream.
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!("GET /sse HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = String::new();
    while !start.contains("sessionId=") || !start.ends_with("\n\n\r\n") {
        let mut chunk = [0; 1];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut chunk).await.unwrap();
        start.push(char::from(chunk[0]));
    }
    let path = start.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let post = |message: Value| {
        let request = http_client()
            .post(format!("http://{address}/{path}"))
            .header("content-type", "application/json")
            .body(message.to_string());
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(post(hello()).await, 202);
    for id in 10..16 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "use_tool",
            "arguments": {"tool_name": "a/huge", "tool_input": {"bytes": 9_000_000}},
        }});
        // Calls beyond the capacity of the stream are refused.
        assert!(matches!(post(call).await, 202 | 503));
    }
    let others = async {
        for _ in 0..20 {
            assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
        }
    };
    // A pause for each message would add up to far more than this.
    tokio::time::timeout(Duration::from_mins(1), others).await.expect("no other host waits");
}

#[tokio::test]
async fn modern_header_rules_are_enforced() {
    let program = service().start_http();
    let url = program.url(PATH).await;
    let post = |method: &'static str, headers: Vec<(&'static str, &'static str)>| {
        let params = ModernHost::meta(json!({"name": "discover_tool", "arguments": {}}));
        let body = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params});
        let mut request = http_client()
            .post(&url)
            .header("content-type", "application/json")
            .body(body.to_string());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        async move {
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16();
            let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            (status, body["error"]["code"].as_i64().unwrap_or(0))
        }
    };
    let version = ("mcp-protocol-version", "2026-07-28");
    let call = ("mcp-method", "tools/call");
    let name = ("mcp-name", "discover_tool");
    assert_eq!(post("tools/call", vec![version, call, name]).await, (200, 0));
    assert_eq!(post("tools/call", vec![call, name]).await, (400, -32020));
    assert_eq!(post("tools/call", vec![version, name]).await, (400, -32020));
    assert_eq!(post("tools/call", vec![version, call]).await, (400, -32020));
    assert_eq!(post("tools/call", vec![version, call, ("mcp-name", "x")]).await, (400, -32020));
    let wrong = ("mcp-protocol-version", "2025-11-25");
    assert_eq!(post("tools/call", vec![wrong, call, name]).await, (400, -32020));
    assert_eq!(post("no/such", vec![version, ("mcp-method", "no/such")]).await, (404, -32601));
    assert_eq!(post("ping", vec![version, ("mcp-method", "ping")]).await, (404, -32601));
    let task = ("mcp-method", "tasks/get");
    assert_eq!(post("tasks/get", vec![version, task, name]).await, (400, -32020));
    let (_, code) = post("tasks/get", vec![version, task]).await;
    assert_ne!(code, -32020, "SDKs leave it out for tasks");
}

#[tokio::test]
async fn half_open_connections_block_no_host() {
    let program = service().descriptors(200).start_http();
    let url = program.url("").await;
    let address = url.trim_start_matches("http://").to_owned();
    let mut half_open = Vec::new();
    for number in 0..400 {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        // Half of the connections send nothing, the others a part of a request.
        if number % 2 == 0 {
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"GET /healthz HT").await.unwrap();
        }
        half_open.push(stream);
    }
    let health = http_client().get(format!("{url}/healthz")).send().await.unwrap();
    assert_eq!(health.status().as_u16(), 200);
    let mut host = initialized(&program, PATH).await;
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null(), "servers have room");
    drop(half_open);
}

#[tokio::test]
async fn incomplete_requests_block_no_host() {
    let program = service().descriptors(200).start_http();
    let url = program.url("").await;
    let address = url.trim_start_matches("http://").to_owned();
    let mut slow = Vec::new();
    for _ in 0..400 {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        );
        tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let health = http_client().get(format!("{url}/healthz")).send().await.unwrap();
    assert_eq!(health.status().as_u16(), 200);
    let mut host = initialized(&program, PATH).await;
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    drop(slow);
}

#[tokio::test]
async fn stdio_host_that_does_not_read_slows_no_other() {
    let mut program = service().argument("--stdio").start_http();
    let mut stdin = program.take_stdin();
    let mut send = async |message: Value| {
        let line = format!("{message}\n");
        tokio::io::AsyncWriteExt::write_all(&mut stdin, line.as_bytes()).await.unwrap();
    };
    send(hello()).await;
    let huge = json!({"tool_name": "a/huge", "tool_input": {"bytes": 5_000_000}});
    for id in 2..8 {
        let params = json!({"name": "use_tool", "arguments": huge});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }
    program.server_noted("a", "tools/call").await;
    let mut host = initialized(&program, PATH).await;
    let calls = async {
        for _ in 0..20 {
            assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
        }
    };
    // Waiting for the other host would cost seconds each time.
    tokio::time::timeout(crate::support::PATIENCE, calls).await.expect("no other host waits");
}

#[tokio::test]
async fn removed_token_opens_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.json");
    let write = |tokens: Value| {
        let text = json!({"authTokens": tokens, "mcpServers": {}}).to_string();
        std::fs::write(&path, text).unwrap();
    };
    write(json!(["old-token", "kept-token"]));
    let program = Proxy::with_config_at(&path).start_http();
    let with = |token: &str| format!("Bearer {token}");
    assert_eq!(status(&program, PATH, &[("authorization", &with("old-token"))]).await, 200);
    write(json!(["kept-token", "new-token"]));
    eventually("the config is read again", || !program.reloads().is_empty()).await;
    assert_eq!(status(&program, PATH, &[("authorization", &with("old-token"))]).await, 401);
    assert_eq!(status(&program, PATH, &[("authorization", &with("new-token"))]).await, 200);
    assert_eq!(status(&program, PATH, &[("authorization", &with("kept-token"))]).await, 200);
    insta::assert_snapshot!(program.logged_at("WARN", "token").await);
    assert!(!program.log().iter().any(|line| line.contains("old-token")));
}

#[tokio::test]
async fn address_for_messages_is_relative_to_that_of_the_stream() {
    let program = Proxy::with([Server::lazy("a")]).start_http();
    for path in ["/sse", "/servers/a/sse"] {
        let mut stream = http_client().get(program.url(path).await).send().await.unwrap();
        let first = stream.chunk().await.unwrap().expect("an event");
        let first = String::from_utf8(first.to_vec()).unwrap();
        assert!(first.contains("data: messages?sessionId="), "{first}");
    }
}
