//! Every host transport with every server transport, in both eras: each feature of MCP passes.

use std::{collections::HashMap, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::support::{Host, ModernHost, Program, Proxy, Server, eventually, fixture, text_of};

/// The transport and the era of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Stdio,
    StdioModern,
    Http,
    HttpModern,
    Sse,
}

const CONNECTIONS: [Connection; 5] = [
    Connection::Stdio,
    Connection::StdioModern,
    Connection::Http,
    Connection::HttpModern,
    Connection::Sse,
];

/// A server as an entry of a config, with the processes that it needs.
struct Upstream {
    server: Server,
    _process: Option<Child>,
    _bridge: Option<Program>,
}

const SCRIPT: &str = r#"{"conformance":true}"#;

fn on_stdio() -> Server {
    Server::lazy("u").set("command", json!(fixture())).set("args", json!([SCRIPT]))
}

/// Starts the fixture on a free port.
async fn on_http() -> (Child, String) {
    let mut command = Command::new(fixture());
    command.arg(r#"{"conformance":true,"http":0}"#).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the fixture starts");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut line).await.expect("it says where it listens");
    let url = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
    (child, url)
}

impl Upstream {
    async fn reached(way: Connection) -> Self {
        let alone = |server| Self { server, _process: None, _bridge: None };
        match way {
            Connection::Stdio => alone(on_stdio().set("protocol", "legacy")),
            Connection::StdioModern => alone(on_stdio().set("protocol", "modern")),
            Connection::Http | Connection::HttpModern => {
                let (process, url) = on_http().await;
                let protocol = if way == Connection::Http { "legacy" } else { "modern" };
                let server = Server::lazy("u").set("url", url).set("protocol", protocol);
                Self { server, _process: Some(process), _bridge: None }
            }
            Connection::Sse => {
                // Another dormouse speaks HTTP+SSE here. `real_servers.rs` does the same with
                // "everything".
                let bridge = Proxy::with([on_stdio()]).start_http();
                let url = bridge.url("/servers/u/sse").await;
                Self {
                    server: Server::lazy("u").set("url", url),
                    _process: None,
                    _bridge: Some(bridge),
                }
            }
        }
    }
}

/// A host of either era that answers questions.
struct AnsweringHost {
    host: Host,
    is_modern: bool,
    /// Methods of the questions so far, in order.
    asked: Vec<String>,
    _program: Option<Program>,
}

const CAPABILITIES: &str = r#"{"sampling":{},"elicitation":{"form":{}},"roots":{}}"#;

fn capabilities() -> Value {
    serde_json::from_str(CAPABILITIES).unwrap()
}

fn answer_to(method: &str, params: &Value) -> Value {
    match method {
        "sampling/createMessage" => json!({
            "role": "assistant", "content": {"type": "text", "text": "sampled"}, "model": "m",
            "stopReason": "endTurn",
        }),
        "elicitation/create" => {
            let fields = params["requestedSchema"]["properties"].as_object().unwrap();
            let content: HashMap<&String, Value> = fields
                .iter()
                .map(|(name, field)| match field["type"].as_str() {
                    Some("boolean") => (name, json!(true)),
                    _ => (name, json!("elicited")),
                })
                .collect();
            json!({"action": "accept", "content": content})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///matrix", "name": "matrix"}]}),
        other => panic!("asked for {other}"),
    }
}

impl AnsweringHost {
    async fn at(way: Connection, server: Server) -> Self {
        let proxy = Proxy::with([server]);
        let (mut host, program) = match way {
            Connection::Stdio | Connection::StdioModern => (proxy.start(), None),
            Connection::Http | Connection::HttpModern => {
                let program = proxy.start_http();
                (program.host("/mcp").await, Some(program))
            }
            Connection::Sse => {
                let program = proxy.start_http();
                (program.sse_host("/sse").await, Some(program))
            }
        };
        let is_modern = matches!(way, Connection::StdioModern | Connection::HttpModern);
        if !is_modern {
            host.initialize(capabilities()).await;
        }
        Self { host, is_modern, asked: Vec::new(), _program: program }
    }

    /// Waits until the server reports `expected` for its cancelled calls of `hang`.
    async fn counts(&mut self, expected: &str) {
        for attempt in 0.. {
            let counted = self.tool("cancellations", json!({})).await;
            if text_of(&counted) == expected {
                return;
            }
            assert!(attempt < 200, "the server does not say {expected}: {counted}");
        }
    }

    fn adapted(&self, params: Value) -> Value {
        if !self.is_modern {
            return params;
        }
        let mut params = ModernHost::meta(params);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities();
        params
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        let params = self.adapted(params);
        self.host.send(method, params).await
    }

    /// Sends a request, answers every question, and returns the result.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params.clone()).await;
        let result = self.answered(id).await;
        if result["resultType"] != "input_required" {
            return result;
        }
        let mut retry = params;
        let mut responses = serde_json::Map::new();
        for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
            let method = question["method"].as_str().unwrap();
            self.asked.push(method.to_owned());
            responses.insert(key.clone(), answer_to(method, &question["params"]));
        }
        retry["inputResponses"] = Value::Object(responses);
        if let Some(state) = result.get("requestState") {
            retry["requestState"] = state.clone();
        }
        Box::pin(self.request(method, retry)).await
    }

    /// Returns the result of a request after answering the questions that a legacy host receives
    /// first.
    async fn answered(&mut self, id: u64) -> Value {
        loop {
            let answered = self.asked.len();
            let message = self.host.answer_or_question(id, answered, self.is_modern).await;
            let Some(method) = message["method"].as_str() else {
                assert!(message.get("result").is_some(), "{message}");
                return message["result"].clone();
            };
            self.asked.push(method.to_owned());
            let result = answer_to(method, &message["params"]);
            self.host.reply(&message, result).await;
        }
    }

    async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let input = json!({"tool_name": format!("u/{name}"), "tool_input": arguments});
        self.request("tools/call", json!({"name": "use_tool", "arguments": input})).await
    }
}

async fn check_lists(speaker: &mut AnsweringHost) {
    let load = json!({"name": "load_mcp", "arguments": {"mcp_name": "u"}});
    let loaded = speaker.request("tools/call", load).await;
    assert!(loaded["structuredContent"]["tools"].as_array().unwrap().len() > 25, "{loaded}");
    let image = speaker.tool("test_image_content", json!({})).await;
    assert_eq!(image["content"][0]["type"], "image");
    let read = speaker.request("resources/read", json!({"uri": "test://static-text"})).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("static text"));
    let read = speaker.request("resources/read", json!({"uri": "test://template/7/data"})).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("ID: 7"));
    let listed = speaker.request("prompts/list", json!({})).await;
    assert!(listed["prompts"].as_array().unwrap().len() >= 5);
    let prompt = speaker.request("prompts/get", json!({"name": "test_simple_prompt"})).await;
    assert_eq!(prompt["messages"].as_array().unwrap().len(), 1);
    let modern = speaker.is_modern;
    assert_eq!(prompt["resultType"] == "complete", modern, "{prompt}");
    assert_eq!(read.get("ttlMs").is_some(), modern, "{read}");
    let completion = json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "v"}});
    let completed = speaker.request("completion/complete", completion).await;
    assert_eq!(completed["completion"]["values"][0], "v-one");
}

async fn check_questions(speaker: &mut AnsweringHost) {
    let sampled = speaker.tool("test_sampling", json!({"prompt": "p"})).await;
    assert!(text_of(&sampled).contains("sampled"), "{sampled}");
    let elicited = speaker.tool("test_elicitation", json!({"message": "m"})).await;
    assert!(text_of(&elicited).contains("elicited"), "{elicited}");
    let all = speaker.tool("test_input_required_result_multiple_inputs", json!({})).await;
    assert!(text_of(&all).contains("file:///matrix") || text_of(&all).contains("matrix"), "{all}");
    let rounds = speaker.tool("test_input_required_result_multi_round", json!({})).await;
    assert!(!rounds["isError"].as_bool().unwrap_or(false), "{rounds}");
    let mut kinds = speaker.asked.clone();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["elicitation/create", "roots/list", "sampling/createMessage"]);
    assert_eq!(speaker.asked.len(), 7);
}

async fn check_progress(speaker: &mut AnsweringHost) {
    let call = json!({
        "name": "use_tool", "arguments": {"tool_name": "u/test_tool_with_progress"},
        "_meta": {"progressToken": "p-1"},
    });
    let id = speaker.send("tools/call", call).await;
    speaker.answered(id).await;
    let lines = speaker.host.received();
    let is_progress = |line: &&String| line.contains(r#""progressToken":"p-1""#);
    assert_eq!(lines.iter().filter(is_progress).count(), 3, "{lines:#?}");
    let last = lines.iter().rposition(|line| is_progress(&line)).unwrap();
    let answer = lines.iter().position(|line| line.contains(&format!(r#""id":{id},"result""#)));
    assert!(last < answer.unwrap(), "progress comes before the result");
}

async fn check_cancellation(speaker: &mut AnsweringHost) {
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "u/hang"}});
    let id = speaker.send("tools/call", call).await;
    // Over HTTP, calls can arrive out of order, so the test waits for the call.
    speaker.counts("0 of 1").await;
    speaker.host.cancel(id, speaker.is_modern).await;
    speaker.counts("1 of 1").await;
}

async fn check_subscriptions(speaker: &mut AnsweringHost) {
    let uri = "test://watched-resource";
    if speaker.is_modern {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": [uri]});
        speaker.send("subscriptions/listen", json!({"notifications": filter})).await;
        speaker.host.notification("notifications/subscriptions/acknowledged").await;
    } else {
        speaker.request("resources/subscribe", json!({"uri": uri})).await;
    }
    // A modern server receives the subscription by a stream of its own, which takes a moment.
    for _ in 0..100 {
        speaker.tool("touch_resource", json!({})).await;
        if speaker.host.notifications().iter().any(|method| method.ends_with("resources/updated")) {
            break;
        }
    }
    let told = speaker.host.message("notifications/resources/updated", |_| true).await;
    assert_eq!(told["params"]["uri"], uri);
    let is_list = |method: &&String| method.ends_with("tools/list_changed");
    let before = speaker.host.notifications().iter().filter(is_list).count();
    speaker.tool("test_trigger_tool_change", json!({})).await;
    eventually("the host is notified of the new list", || {
        speaker.host.notifications().iter().filter(is_list).count() > before
    })
    .await;
}

async fn check_every_server(host: Connection) {
    for upstream in CONNECTIONS {
        let behind = Upstream::reached(upstream).await;
        let mut speaker = AnsweringHost::at(host, behind.server.clone()).await;
        println!("{host:?} host, {upstream:?} server");
        check_lists(&mut speaker).await;
        check_questions(&mut speaker).await;
        check_progress(&mut speaker).await;
        check_cancellation(&mut speaker).await;
        check_subscriptions(&mut speaker).await;
    }
}

#[tokio::test]
async fn legacy_stdio_host_reaches_every_server() {
    check_every_server(Connection::Stdio).await;
}

#[tokio::test]
async fn modern_stdio_host_reaches_every_server() {
    check_every_server(Connection::StdioModern).await;
}

#[tokio::test]
async fn legacy_http_host_reaches_every_server() {
    check_every_server(Connection::Http).await;
}

#[tokio::test]
async fn modern_http_host_reaches_every_server() {
    check_every_server(Connection::HttpModern).await;
}

#[tokio::test]
async fn sse_host_reaches_every_server() {
    check_every_server(Connection::Sse).await;
}
