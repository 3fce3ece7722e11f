//! Published servers from the npm registry. `scripts/check` installs them.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json, value::RawValue};
use tokio::process::{Child, Command};

use crate::support::{Host, ModernHost, Proxy, Server, descendants, eventually, text_of};

fn program(name: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/npm/node_modules/.bin").join(name);
    assert!(path.exists(), "{} is missing: run `npm ci --prefix tests/npm`", path.display());
    path
}

pub fn real(name: &str, command: &str, arguments: &Value) -> Server {
    Server::lazy(name).set("command", json!(program(command))).set("args", arguments.clone())
}

pub fn four_servers(place: &Path) -> [Server; 4] {
    [
        real("everything", "mcp-server-everything", &json!(["stdio"])),
        real("filesystem", "mcp-server-filesystem", &json!([place])),
        real("memory", "mcp-server-memory", &json!([]))
            .set("env", json!({"MEMORY_FILE_PATH": place.join("memory.json")})),
        real("thinking", "mcp-server-sequential-thinking", &json!([])),
    ]
}

#[tokio::test]
async fn four_real_servers_load_on_demand() {
    let place = tempfile::tempdir().unwrap();
    let mut host = Proxy::with(four_servers(place.path())).start();
    host.initialize(json!({})).await;
    assert_eq!(host.tool_names().await, ["discover_tool", "use_tool", "load_mcp"]);
    assert_eq!(descendants(host.serving_id()), [0_u32; 0]);
    for (server, tools) in [("everything", 12), ("filesystem", 14), ("memory", 9), ("thinking", 1)]
    {
        let told = host.notifications().len();
        let report = host.load(server).await["structuredContent"].clone();
        assert!(report["tools"].as_array().unwrap().len() >= tools, "{report}");
        assert!(host.notifications().len() > told);
    }
    // "everything" adds a tool after `notifications/initialized`, and announces it.
    eventually("the list has settled", || {
        host.log().iter().any(|line| line.contains("awake") && line.contains("thinking"))
    })
    .await;
    let resources = host.request("resources/list", json!({})).await;
    assert!(resources["resources"].as_array().unwrap().len() >= 7);
    let templates = host.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
    let prompts = host.request("prompts/list", json!({})).await;
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 4);
    let read =
        host.request("resources/read", json!({"uri": "demo://resource/dynamic/text/1"})).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("Resource 1"));
    let prompt = host.request("prompts/get", json!({"name": "simple-prompt"})).await;
    assert_eq!(prompt["messages"].as_array().unwrap().len(), 1);
    let thought =
        json!({"thought": "t", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    assert!(host.use_tool("thinking/sequentialthinking", thought).await["isError"].is_null());
    assert_eq!(host.end().await, Some(0));
}

/// Returns how many servers of the host have `command` in their command line.
fn running(host: &Host, command: &str) -> usize {
    let has = |process: &&u32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(command)
    };
    descendants(host.serving_id()).iter().filter(has).count()
}

#[tokio::test]
async fn four_real_hybrid_servers_run_once_and_then_for_calls() {
    let place = tempfile::tempdir().unwrap();
    let proxy = || {
        let servers = four_servers(place.path());
        let servers = servers.map(|server| server.set("startup", "hybrid"));
        let proxy = Proxy::with(servers.map(|server| server.set("idleTimeout", "1s")));
        proxy.at_home(place.path()).set("surface", "direct").set("startupWait", 0)
    };
    let mut host = proxy().start();
    host.initialize(json!({})).await;
    // `load_mcp` is listed as long as the tools of any server are unknown.
    let is_learning = |names: &[String]| names.iter().any(|name| name == "load_mcp");
    let early = host.tool_names().await;
    assert!(is_learning(&early), "it was served before all were learned: {early:?}");
    let mut first = early;
    while is_learning(&first) {
        first = host.tool_names().await;
    }
    assert_eq!(first.len(), 13 + 14 + 9 + 1, "{first:?}");
    let nobody = "no server runs";
    eventually(nobody, || running(&host, "mcp-server") == 0).await;
    host.end().await;

    let mut host = proxy().start();
    host.initialize(json!({})).await;
    assert_eq!(host.tool_names().await, first);
    // No process is started in the background either.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(running(&host, "mcp-server"), 0);
    let sum = host.call("everything__get-sum", json!({"a": 1, "b": 2})).await;
    assert!(sum.to_string().contains("is 3"), "{sum}");
    assert_eq!((running(&host, "mcp-server"), running(&host, "everything")), (1, 1));
    eventually(nobody, || running(&host, "mcp-server") == 0).await;
    assert_eq!(host.tool_names().await, first, "what sleeps is shown as if awake");
}

/// Calls of tools of "everything" whose answers do not vary.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"message": "héllo \u{1f42d}"})),
        ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ("get-env", json!({})),
        ("get-resource-links", json!({"count": 3})),
        ("get-resource-reference", json!({"resourceType": "Blob", "resourceId": 2})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-sum", json!({"a": 1.5, "b": 2})),
        ("get-tiny-image", json!({})),
        (
            "gzip-file-as-resource",
            json!({"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
        ),
        ("toggle-simulated-logging", json!({})),
        ("toggle-subscriber-updates", json!({})),
        ("trigger-long-running-operation", json!({"duration": 1, "steps": 2})),
        // The server refuses this call, because an argument is missing.
        ("echo", json!({})),
    ]
}

/// Returns the text of the `result`, or of the `error`, of an answer.
fn outcome(line: &str) -> String {
    let answer: std::collections::HashMap<&str, &RawValue> = serde_json::from_str(line).unwrap();
    answer.get("result").or_else(|| answer.get("error")).expect("an answer").to_string()
}

async fn answer_to(host: &mut Host, params: Value) -> String {
    let id = host.send("tools/call", params).await;
    outcome(&host.answer_line(&json!(id)).await)
}

#[tokio::test]
async fn results_of_everything_equal_a_direct_connection() {
    // One of the tools shows its environment, so both servers get the same one. `Proxy` removes
    // `CI`, because it decides whether a daemon is used.
    let kept = tempfile::tempdir().unwrap();
    let kept = kept.path().to_str().unwrap();
    let mut command = Command::new(program("mcp-server-everything"));
    command
        .arg("stdio")
        .env_remove("CI")
        .env("XDG_CACHE_HOME", kept)
        .env("XDG_DATA_HOME", kept)
        .env("XDG_RUNTIME_DIR", kept)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut direct = Host::direct(command.spawn().unwrap());
    direct.initialize(json!({})).await;
    let server =
        real("everything", "mcp-server-everything", &json!(["stdio"])).set("inheritEnv", true);
    let proxy = Proxy::with([server]).environment("XDG_CACHE_HOME", kept);
    let proxy = proxy.environment("XDG_DATA_HOME", kept).environment("XDG_RUNTIME_DIR", kept);
    let mut host = proxy.start();
    host.initialize(json!({})).await;
    host.load("everything").await;

    let listed = direct.request("tools/list", json!({})).await;
    for tool in listed["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        // This tool works for a minute, and needs the experimental tasks.
        let is_called =
            calls().iter().any(|(call, _)| *call == name) || name == "simulate-research-query";
        assert!(is_called, "{name} is not compared");
    }
    for (tool, arguments) in calls() {
        let bare = json!({"name": tool, "arguments": arguments});
        let call = json!({"tool_name": format!("everything/{tool}"), "tool_input": arguments});
        let call = json!({"name": "use_tool", "arguments": call});
        let (expected, found) = loop {
            let before = answer_to(&mut direct, bare.clone()).await;
            let found = answer_to(&mut host, call.clone()).await;
            if !names_the_second(tool) || answer_to(&mut direct, bare.clone()).await == before {
                break (before, found);
            }
        };
        assert_eq!(without_own_variables(&found), expected, "{tool}");
    }
}

#[tokio::test]
async fn research_task_of_everything_asks_its_host() {
    let server = real("everything", "mcp-server-everything", &json!(["stdio"]));
    let mut host = Proxy::with([server]).argument("--surface").argument("direct").start();
    host.initialize(json!({"elicitation": {"form": {}}, "tasks": {}})).await;
    host.load("everything").await;
    let arguments = json!({"topic": "python", "ambiguous": true});
    let call =
        json!({"name": "everything__simulate-research-query", "arguments": arguments, "task": {}});
    let created = host.request("tools/call", call).await;
    let id = created["task"]["taskId"].clone();
    let fetching = host.send("tasks/result", json!({"taskId": id})).await;
    let question = host.message("elicitation/create", |_| true).await;
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], id);
    let content = json!({"interpretation": "snake"});
    host.reply(&question, json!({"action": "accept", "content": content})).await;
    let result = host.answer(fetching).await;
    assert!(text_of(&result["result"]).contains("Research Report: python (snake)"), "{result}");
    assert_eq!(host.request("tasks/get", json!({"taskId": id})).await["status"], "completed");
}

#[tokio::test]
async fn required_task_asks_a_modern_host() {
    let server = real("everything", "mcp-server-everything", &json!(["stdio"]));
    let mut host = Proxy::with([server]).set("maxResultBytes", 200).start();
    let arguments = json!({"topic": "python", "ambiguous": true});
    let input = json!({"tool_name": "everything/simulate-research-query", "tool_input": arguments});
    let call = || {
        let mut call = ModernHost::meta(json!({"name": "use_tool", "arguments": input}));
        call["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        call
    };
    let asked = host.request("tools/call", call()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let mut retry = call();
    retry["requestState"] = asked["requestState"].clone();
    let content = json!({"interpretation": "snake"});
    retry["inputResponses"] = json!({"q1": {"action": "accept", "content": content}});
    let result = host.request("tools/call", retry).await;
    let text = text_of(&result);
    assert!(text.contains("Research Report: python (snake)"), "{result}");
    assert!(text.len() < 1000 && result["isError"].is_null(), "it is shaped as a call: {result}");
}

/// Returns whether a result contains the time in seconds, so that it must be compared within one.
fn names_the_second(tool: &str) -> bool {
    tool == "get-resource-reference"
}

/// Removes the variables that dormouse sets for a server.
fn without_own_variables(answer: &str) -> String {
    let mut answer = answer.to_owned();
    while let Some(start) = answer.find(r#"  \"DORMOUSE_"#) {
        let end = start + answer[start..].find(r"\n").expect("the end of its line") + r"\n".len();
        answer.replace_range(start..end, "");
    }
    answer
}

/// Starts "everything" as a service, which ends when the returned child is dropped.
async fn service(mode: &str) -> (Child, String) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new(program("mcp-server-everything"));
    command.arg(mode).env("PORT", port.to_string()).kill_on_drop(true);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..500 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let path = if mode == "sse" { "sse" } else { "mcp" };
    (child, format!("http://127.0.0.1:{port}/{path}"))
}

#[tokio::test]
async fn everything_is_equal_over_three_transports() {
    let (_streamable, streamable_url) = service("streamableHttp").await;
    let (_sse, sse_url) = service("sse").await;
    let servers = [
        real("stdio", "mcp-server-everything", &json!(["stdio"])),
        Server::lazy("streamable").set("url", streamable_url),
        // The type is not set: dormouse finds out that the server speaks only HTTP+SSE.
        Server::lazy("sse").set("url", sse_url),
    ];
    let mut host = Proxy::with(servers).start();
    host.initialize(json!({})).await;
    let calls = calls().into_iter().filter(|(tool, _)| {
        // These tools depend on the environment and the state of one server process.
        !matches!(*tool, "get-env" | "toggle-simulated-logging" | "toggle-subscriber-updates")
    });
    for (tool, arguments) in calls {
        let [before, streamable, sse] = loop {
            let mut outcomes = Vec::new();
            for server in ["stdio", "streamable", "sse", "stdio"] {
                let call =
                    json!({"tool_name": format!("{server}/{tool}"), "tool_input": arguments});
                let call = json!({"name": "use_tool", "arguments": call});
                outcomes.push(answer_to(&mut host, call).await);
            }
            let [before, streamable, sse, after] = <[String; 4]>::try_from(outcomes).unwrap();
            if !names_the_second(tool) || before == after {
                break [before, streamable, sse];
            }
        };
        assert_eq!(before, streamable, "{tool}");
        assert_eq!(before, sse, "{tool}");
    }
}

/// Returns the number of tools and of bytes of a host's tool list.
async fn list_size(host: &mut Host) -> (usize, usize) {
    let list = host.request("tools/list", json!({})).await;
    (list["tools"].as_array().unwrap().len(), list.to_string().len())
}

#[tokio::test]
async fn toolset_of_a_large_server_costs_a_fraction_of_the_server() {
    let gitlab = || {
        let toolsets = json!({
            "issues": {"tools": ["*issue*"], "description": "Issues, their notes and links"},
            "branches": {"tools": ["*branch*"], "description": "Branches and their protection"},
        });
        real("gitlab", "mcp-gitlab", &json!([]))
            .set("env", json!({"GITLAB_PERSONAL_ACCESS_TOKEN": "none"}))
            .set("toolsets", toolsets)
    };
    let mut measured = Vec::new();
    for surface in ["discover", "activate", "groups"] {
        for loaded in ["gitlab/branches", "gitlab"] {
            let proxy = Proxy::with([gitlab()]).set("surface", surface).set("settle", 0);
            let mut host = proxy.serve().await;
            let before = list_size(&mut host).await;
            let result = match surface {
                "activate" => {
                    let name = format!("activate_{}", loaded.replace('/', "_"));
                    host.call(&name, json!({})).await
                }
                "groups" => host.call("get_dynamic_tools", json!({"group": loaded})).await,
                _ => host.load(loaded).await,
            };
            assert!(result["isError"].is_null(), "{result}");
            let after = list_size(&mut host).await;
            let report = text_of(&result).len();
            println!("{surface}: load of {loaded}: {before:?} -> {after:?}, report of {report}");
            measured.push(after);
        }
    }
    let [_, _, toolset, whole, ..] = measured[..] else { panic!("{measured:?}") };
    assert!(whole.0 > 100 && toolset.0 < 20, "tools that `activate` lists: {measured:?}");
    assert!(toolset.1 * 8 < whole.1, "bytes that `activate` lists: {measured:?}");
}
