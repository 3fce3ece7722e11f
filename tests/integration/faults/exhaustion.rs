//! No descriptors, no processes, little memory.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    Cases, Host, Program, Proxy, Server, eventually,
    faults::{ControlGroup, DescriptorShortage},
    fixture, not_tested, peak_memory, redacted,
    remote::{RecordedRequest, Remote, events, reply},
    text_of,
};

/// Loads `b` more often than strikes are allowed, and returns the different errors.
async fn failed_loads(host: &mut Host) -> String {
    let mut errors = Vec::new();
    for _ in 0..4 {
        let result = host.load("b").await;
        assert_eq!(result["isError"], true, "{result}");
        errors.push(redacted(text_of(&result)));
        assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null(), "a is not affected");
        // An attempt within 2 s of a failed one is not made.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    errors.dedup();
    errors.join("\n")
}

async fn loads(host: &mut Host) {
    let result = host.load("b").await;
    assert!(result["isError"].is_null(), "{result}");
    assert!(host.use_tool("b/echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn server_that_gets_no_descriptors_loads_when_there_are_some() {
    let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    let shortage = match DescriptorShortage::of(host.serving_id()) {
        Ok(shortage) => shortage,
        Err(why) => return not_tested(why),
    };
    insta::assert_snapshot!(failed_loads(&mut host).await);
    drop(shortage);
    loads(&mut host).await;
}

#[tokio::test]
async fn remote_server_that_gets_no_descriptors_loads_when_there_are_some() {
    let remote = Remote::start(|_| async { None }).await;
    let b = Server::lazy("b").set("url", remote.url.clone());
    let mut host = Proxy::with([Server::lazy("a"), b]).serve().await;
    host.load("a").await;
    let shortage = match DescriptorShortage::of(host.serving_id()) {
        Ok(shortage) => shortage,
        Err(why) => return not_tested(why),
    };
    insta::assert_snapshot!(failed_loads(&mut host).await);
    drop(shortage);
    assert!(host.load("b").await["isError"].is_null());
    assert_eq!(text_of(&host.use_tool("b/t", json!({})).await), "ordinary");
}

#[tokio::test]
async fn host_that_gets_no_descriptor_is_served_when_there_is_one() {
    let program = Proxy::with([Server::lazy("a")]).start_http();
    let mut known = program.host("/mcp").await;
    known.initialize(json!({})).await;
    known.load("a").await;
    let shortage = match DescriptorShortage::of(program.serving_id()) {
        Ok(shortage) => shortage,
        Err(why) => return not_tested(why),
    };
    let mut other = program.host("/mcp").await;
    let (_, ()) = tokio::join!(other.initialize(json!({})), async {
        insta::assert_snapshot!(program.logged_at("WARN", "cannot accept").await);
        for _ in 0..20 {
            assert!(known.use_tool("a/echo", json!({})).await["isError"].is_null());
        }
        drop(shortage);
    });
    assert!(other.use_tool("a/echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn remote_server_whose_name_no_thread_can_resolve_loads_when_there_is_one() {
    let group = match ControlGroup::with("pids") {
        Ok(group) => group,
        Err(why) => return not_tested(why),
    };
    let remote = Remote::start(|_| async { None }).await;
    let url = remote.url.replace("127.0.0.1", "localhost");
    let servers = [Server::lazy("a"), Server::lazy("b").set("url", url)];
    let mut host = Proxy::with(servers).serve().await;
    host.load("a").await;
    // A thread that is idle could do the work. It ends after 10 s.
    let comms = || fs::read_dir(format!("/proc/{}/task", host.serving_id())).unwrap();
    let is_idle = |name: &str| name.starts_with("tokio-rt-worker");
    let has_idle = || {
        let paths = comms().map(|entry| entry.unwrap().path().join("comm"));
        paths.filter_map(|path| fs::read_to_string(path).ok()).any(|name| is_idle(&name))
    };
    eventually("idle threads have ended", || !has_idle()).await;
    group.add(host.serving_id());
    group.limit_processes(Some(1));
    insta::assert_snapshot!(failed_loads(&mut host).await);
    group.limit_processes(None);
    assert!(host.load("b").await["isError"].is_null());
}

#[tokio::test]
async fn config_that_could_not_be_watched_is_followed_when_it_can_be() {
    let group = match ControlGroup::with("pids") {
        Ok(group) => group,
        Err(why) => return not_tested(why),
    };
    let home = tempfile::tempdir().unwrap();
    let proxy = |servers: Vec<Server>| Proxy::with(servers).at_home(home.path());
    let mut host = proxy(vec![Server::lazy("a")]).serve().await;
    group.add(host.serving_id());
    group.limit_processes(Some(1));
    insta::assert_snapshot!(host.logged_at("WARN", "cannot watch").await);
    assert!(host.load("a").await["isError"] == true, "it runs");
    group.limit_processes(None);
    let both = json!({"mcpServers": {
        "a": {"command": fixture(), "args": ["{}"], "description": "A."},
        "b": {"command": fixture(), "args": ["{}"], "description": "B."},
    }});
    std::fs::write(home.path().join("dormouse.json"), both.to_string()).unwrap();
    eventually("the config is read again", || !host.reloads().is_empty()).await;
    assert!(host.load("b").await["isError"].is_null());
}

#[tokio::test]
async fn server_that_gets_no_process_loads_when_there_is_one() {
    let group = match ControlGroup::with("pids") {
        Ok(group) => group,
        Err(why) => return not_tested(why),
    };
    let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    group.add(host.serving_id());
    group.limit_processes(Some(1));
    insta::assert_snapshot!(failed_loads(&mut host).await);
    group.limit_processes(None);
    loads(&mut host).await;
}

/// The memory of dormouse, and of nothing else, below a limit.
struct Memory {
    limited: ControlGroup,
    /// The group of servers.
    free: ControlGroup,
}

impl Memory {
    fn of(bytes: u64) -> Result<Self, String> {
        let (limited, free) = (ControlGroup::with("memory")?, ControlGroup::with("memory")?);
        limited.limit_memory(bytes);
        Ok(Self { limited, free })
    }

    fn proxy(&self, servers: impl IntoIterator<Item = Server>) -> Proxy {
        Proxy::with(servers).after(&self.limited.joining())
    }

    /// Returns a server whose memory does not count.
    fn server(&self, name: &str, command: &str) -> Server {
        let script = format!("{}; {command}", self.free.joining());
        Server::lazy(name).set("command", "sh").set("args", json!(["-c", script]))
    }

    fn fixture(&self, name: &str) -> Server {
        self.server(name, &format!("exec {} '{{}}'", fixture().display()))
    }
}

const MIB: u64 = 1024 * 1024;

fn report_peak(program: &Program, what: &str) {
    eprintln!("{what}: at most {} kB of memory", peak_memory(program.serving_id()));
}

#[tokio::test]
async fn endless_message_of_a_server_stays_within_its_limit() {
    let memory = match Memory::of(96 * MIB) {
        Ok(memory) => memory,
        Err(why) => return not_tested(why),
    };
    // 300 MB without the end of a line, in place of the answer to a call.
    let script = r#"while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); case "$line" in
        *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}";;
        *tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
        *tools/call*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\""; head -c 300000000 /dev/zero | tr '\0' x; echo;;
        esac; done"#;
    let script = script.replace("\\\"text\\\":\\\"\";", "\\\"text\\\":\\\"\" | tr -d '\\n';");
    let servers = [memory.server("bad", &script), memory.fixture("good")];
    let mut host = memory.proxy(servers).set("maxMessageBytes", 8 * MIB).serve().await;
    host.load("good").await;
    let result = host.use_tool("bad/t", json!({})).await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(text_of(&result));
    assert!(host.use_tool("good/echo", json!({})).await["isError"].is_null());
    report_peak(&host, "300 MB in one line, maxMessageBytes 8 MiB");
}

/// Chunks of an endless answer: 256 MB.
const CHUNKS: usize = 4096;

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a server, and what happens with each of its answers")]
async fn endless_answer_of_a_remote_server_stays_within_its_limit() {
    let memory = match Memory::of(96 * MIB) {
        Ok(memory) => memory,
        Err(why) => return not_tested(why),
    };
    let remote = Remote::start(|asked: RecordedRequest| async move {
        let name = asked.message["params"]["name"].as_str().unwrap_or_default().to_owned();
        let begin = match name.as_str() {
            "json" => format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":""#, asked.message["id"]),
            "event" => "data: ".to_owned(),
            "events" => String::new(),
            _ => {
                return (asked.method_name() == "tools/list").then(|| {
                    let tool =
                        |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                    let tools: Vec<Value> = ["json", "event", "events"].map(tool).into();
                    crate::support::remote::json_text(&reply(
                        &asked,
                        &json!({"tools": tools}).to_string(),
                    ))
                });
            }
        };
        let line = if name == "events" {
            let stray =
                json!({"jsonrpc": "2.0", "id": 999_999, "result": {"x": "x".repeat(60_000)}});
            format!("data: {stray}\n\n")
        } else {
            "x".repeat(65_536)
        };
        let chunks = (0..CHUNKS).map(move |_| line.clone());
        let chunks = std::iter::once(begin).chain(chunks).map(Ok::<_, std::io::Error>);
        let body = axum::body::Body::from_stream(futures_util::stream::iter(chunks));
        Some(if name == "json" {
            axum::response::IntoResponse::into_response((
                [("content-type", "application/json")],
                body,
            ))
        } else {
            events(body)
        })
    })
    .await;
    let servers = [Server::lazy("bad").set("url", remote.url.clone()), memory.fixture("good")];
    let mut host = memory.proxy(servers).set("maxMessageBytes", 8 * MIB).serve().await;
    host.load("good").await;
    let mut cases = Cases::default();
    for tool in ["json", "event", "events"] {
        let result = host.use_tool(&format!("bad/{tool}"), json!({})).await;
        assert_eq!(result["isError"], true);
        // The size at which it is given up depends on the pieces in which it arrives.
        let text = text_of(&result);
        let text = match text.split_once("message of ") {
            Some((before, rest)) => {
                format!(
                    "{before}message of <size>{}",
                    rest.trim_start_matches(|c: char| c.is_ascii_digit())
                )
            }
            None => text.to_owned(),
        };
        cases.add(tool, &text);
        assert!(host.use_tool("good/echo", json!({})).await["isError"].is_null());
    }
    insta::assert_snapshot!(cases);
    report_peak(&host, "256 MB in one answer, maxMessageBytes 8 MiB");
}

#[tokio::test]
async fn hundred_results_of_31_megabytes_are_kept_in_bounded_memory() {
    let memory = match Memory::of(320 * MIB) {
        Ok(memory) => memory,
        Err(why) => return not_tested(why),
    };
    let mut host = memory.proxy([memory.fixture("a")]).serve().await;
    host.load("a").await;
    let lengths: Vec<u64> = (31_000_000..31_000_100).collect();
    let mut last = String::new();
    for lengths in lengths.chunks(4) {
        let mut asked = Vec::new();
        for bytes in lengths {
            let input = json!({"tool_name": "a/huge", "tool_input": {"bytes": bytes}});
            let call = json!({"name": "use_tool", "arguments": input});
            asked.push((host.send("tools/call", call).await, bytes + 23));
        }
        for (id, size) in asked {
            last = host.answer(id).await.to_string();
            assert!(last.contains(&format!("{size} bytes")) && last.len() < 4100, "{last}");
        }
    }
    let (_, uri) = last.split_once("dormouse://results/").unwrap();
    let id = uri.split_whitespace().next().unwrap();
    let part = json!({"id": id, "page": 5167});
    let page = host.use_tool("dormouse/read_result", part).await;
    assert!(text_of(&page).starts_with("xxxx"), "{page}");
    report_peak(&host, "a hundred results of 31 MB, 4 at a time");
}

#[tokio::test]
async fn many_large_results_at_once_need_little_memory() {
    const CALLS: usize = 64;
    let memory = match Memory::of(128 * MIB) {
        Ok(memory) => memory,
        Err(why) => return not_tested(why),
    };
    let proxy = memory.proxy([memory.fixture("a")]).set("maxResultBytes", 0);
    let mut host = proxy.serve().await;
    host.load("a").await;
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "a/huge", "tool_input": {"bytes": MIB}}});
    let before = host.received_count();
    let mut ids = Vec::new();
    for _ in 0..CALLS {
        ids.push(host.send("tools/call", call.clone()).await);
    }
    eventually("all are answered", || host.received_count() >= before + CALLS).await;
    let lines = host.received();
    let answers = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut answered: Vec<u64> = answers
        .filter(|answer| answer["id"].as_u64().is_some_and(|id| ids.contains(&id)))
        .inspect(|answer| assert_eq!(text_of(&answer["result"]).len() as u64, MIB))
        .filter_map(|answer| answer["id"].as_u64())
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    report_peak(&host, "64 results of 1 MiB at once");
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
}
