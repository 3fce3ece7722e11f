//! Many hosts on the same servers: each gets only its own answers, questions and notifications.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{Host, Program, Proxy, Server, descendants, eventually, is_alive, text_of};

async fn connected(program: &Program, capabilities: Value) -> Host {
    let mut host = program.host("/mcp").await;
    host.initialize(capabilities).await;
    host
}

fn asking(server: &str) -> Value {
    let ask = json!({"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    json!({"name": "use_tool", "arguments": {"tool_name": format!("{server}/ask"), "tool_input": ask}})
}

async fn answer_as(host: &mut Host, name: &str) {
    let question = host.message("elicitation/create", |_| true).await;
    host.reply(&question, json!({"action": "accept", "content": {"name": name}})).await;
}

#[tokio::test]
async fn question_reaches_the_host_of_the_call() {
    let program = Proxy::with([Server::lazy("a")]).start_http();
    let able = json!({"elicitation": {}});
    let mut first = connected(&program, able.clone()).await;
    let mut second = connected(&program, able).await;
    first.load("a").await;
    for (host, other, name) in [(0, 1, "first"), (1, 0, "second")] {
        let hosts = [&mut first, &mut second];
        let unasked = hosts[other].received().len();
        let id = hosts[host].send("tools/call", asking("a")).await;
        answer_as(hosts[host], name).await;
        let answer = hosts[host].answer(id).await;
        assert!(text_of(&answer["result"]).contains(name), "{answer}");
        assert_eq!(hosts[other].received().len(), unasked);
    }
}

#[tokio::test]
async fn last_caller_is_asked_and_the_guess_is_logged() {
    let program = Proxy::with([Server::lazy("a")]).start_http();
    let able = json!({"elicitation": {}});
    let mut waiting = connected(&program, able.clone()).await;
    let mut asking_host = connected(&program, able).await;
    let mut unable = connected(&program, json!({})).await;
    waiting.load("a").await;
    let slow = json!({"name": "use_tool", "arguments": {"tool_name": "a/slow", "tool_input": {"ms": 400}}});
    let slept = waiting.send("tools/call", slow).await;
    program.server_noted("a", "tools/call").await;
    let id = asking_host.send("tools/call", asking("a")).await;
    answer_as(&mut asking_host, "last").await;
    assert!(text_of(&asking_host.answer(id).await["result"]).contains("last"));
    insta::assert_snapshot!(program.logged_at("WARN", "elicitation/create").await);
    // A host that has not declared the capability is not asked, and no other host is asked instead.
    let id = unable.send("tools/call", asking("a")).await;
    let refused = unable.answer(id).await;
    assert!(text_of(&refused["result"]).contains("-32601"), "{refused}");
    waiting.answer(slept).await;
    assert!(!waiting.received().iter().any(|line| line.contains("elicitation/create")));
}

#[tokio::test]
async fn progress_and_log_messages_reach_only_the_caller() {
    let program = Proxy::with([Server::lazy("a")]).start_http();
    let mut calling = connected(&program, json!({})).await;
    let mut other = connected(&program, json!({})).await;
    calling.load("a").await;
    other.notification("notifications/tools/list_changed").await;
    let silent = other.received().len();
    let call = json!({
        "name": "use_tool", "_meta": {"progressToken": "mine"},
        "arguments": {"tool_name": "a/progress", "tool_input": {"count": 3}},
    });
    let id = calling.send("tools/call", call).await;
    calling.answer(id).await;
    let log = json!({"method": "notifications/message", "params": {"level": "info", "data": "x"}});
    calling.use_tool("a/send", log.clone()).await;
    calling.notification("notifications/message").await;
    let is_mine = |line: &&String| line.contains("\"mine\"");
    assert_eq!(calling.received().iter().filter(is_mine).count(), 3);
    assert_eq!(other.received().len(), silent, "{:#?}", other.received());
    // Each host sets its own level.
    calling.request("logging/setLevel", json!({"level": "error"})).await;
    let heard = calling.notifications().len();
    calling.use_tool("a/send", log.clone()).await;
    assert_eq!(calling.notifications().len(), heard);
    other.use_tool("a/send", log).await;
    other.notification("notifications/message").await;
}

#[tokio::test]
async fn isolated_hosts_are_greeted_by_their_own_instance() {
    let server = Server::lazy("own").set("isolation", "session");
    let program = Proxy::with([server]).start_http();
    for number in 1..=2 {
        let mut host = program.host("/servers/own/mcp").await;
        host.initialize(json!({})).await;
        host.tool_names().await;
        assert_eq!(program.started("own").len(), number);
    }
}

#[tokio::test]
async fn isolated_instance_ends_with_its_session() {
    let server = Server::lazy("own").set("isolation", "session");
    let program = Proxy::with([server]).start_http();
    let mut one = connected(&program, json!({"roots": {}})).await;
    let mut two = connected(&program, json!({"roots": {}})).await;
    one.load("own").await;
    // The other host sees the tools, and gets its own process at its first call.
    two.notification("notifications/tools/list_changed").await;
    assert!(two.use_tool("own/echo", json!({})).await["isError"].is_null());
    let started = program.started("own");
    assert_eq!(started.len(), 2);
    // The death of one instance does not affect the other.
    let dead = one.use_tool("own/die", json!({})).await;
    assert_eq!(dead["isError"], true);
    assert!(two.use_tool("own/echo", json!({})).await["isError"].is_null());
    assert_eq!(program.started("own").len(), 2);
    // Each host offers its roots to its own instance.
    let offered = program.server_log("own");
    let offered = offered.iter().filter(|line| line.starts_with("initialize"));
    assert!(offered.clone().count() == 2 && offered.clone().all(|line| line.contains("roots")));
    assert_eq!(two.http().delete().await, 204);
    eventually("its instance is gone", || !started.iter().any(|process| is_alive(*process))).await;
}

#[tokio::test]
async fn modern_host_keeps_one_isolated_instance() {
    let server = Server::lazy("own").set("isolation", "session");
    let program = Proxy::with([server]).start_http();
    let mut host = program.modern("/mcp").await;
    for _ in 0..3 {
        host.call("use_tool", json!({"tool_name": "own/echo"})).await;
    }
    assert_eq!(program.started("own").len(), 1);
}

/// Makes calls with distinct answers, mixed with loads and with servers that die.
async fn storm(program: &Program, number: u64) -> Host {
    let mut host = connected(program, json!({})).await;
    for round in 0..4 {
        let mut calls = Vec::new();
        for call in 0..64 {
            let server = ["a", "b", "dies"][call % 3];
            let mark = format!("{number}-{round}-{call}");
            let tool = if server == "dies" && call % 32 == 2 { "die" } else { "echo" };
            let params = json!({"name": "use_tool", "arguments": {
                "tool_name": format!("{server}/{tool}"), "tool_input": {"mark": mark}}});
            calls.push((host.send("tools/call", params).await, mark, server));
        }
        host.send("tools/call", json!({"name": "load_mcp", "arguments": {"mcp_name": "b"}})).await;
        for (id, mark, server) in calls {
            let answer = host.answer(id).await;
            let text = text_of(&answer["result"]);
            if server == "dies" {
                let is_own = text.contains(&format!("\"{mark}\""));
                let is_death = answer["result"]["isError"] == true && text.contains("\"dies\"");
                assert!(is_own || is_death, "{mark}: {text}");
            } else {
                assert_eq!(text, format!(r#"{{"name":"echo","arguments":{{"mark":"{mark}"}}}}"#));
            }
        }
    }
    host
}

#[tokio::test]
async fn eight_hosts_get_their_own_answers() {
    let short = |name: &str| Server::lazy(name).set("idleTimeout", "20ms");
    let proxy = Proxy::with([short("a"), Server::lazy("b"), Server::lazy("dies")]);
    let program = proxy.set("sessionTimeout", "1h").start_http();
    let storms = futures_util::future::join_all((0..8).map(|number| storm(&program, number)));
    let hosts = storms.await;
    let sessions: HashSet<String> =
        hosts.iter().map(|host| host.http().session().unwrap()).collect();
    assert_eq!(sessions.len(), 8);
    for host in &hosts {
        assert_eq!(host.http().delete().await, 204);
    }
    let children = descendants(program.serving_id());
    assert!(children.len() <= 4, "at most one process a server, and the watchdog: {children:?}");
    let sockets = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", program.serving_id())).unwrap();
        let links = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    drop(hosts);
    // The listeners for hosts and for `status`, and the runtime's own sockets, stay open.
    eventually("no connection is left", || sockets() <= 5).await;
}
