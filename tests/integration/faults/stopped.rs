//! Processes that are stopped: the host, dormouse, the server.

use std::{process::Stdio, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{PATIENCE, Proxy, Server, eventually, redacted, text_of};

/// Long enough for an answer that must not arrive.
const A_WHILE: Duration = Duration::from_millis(300);

fn signal(process: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(process).unwrap()), signal).expect("it runs");
}

#[tokio::test]
async fn request_to_a_stopped_dormouse_is_answered_when_it_goes_on() {
    let program = Proxy::with([Server::lazy("a")]).argument("--stdio").start_http();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    host.load("a").await;
    program.signal(Signal::SIGSTOP);
    let received = host.received_count();
    let mut calls = Vec::new();
    for number in 0..20 {
        let call = json!({"tool_name": "a/echo", "tool_input": {"number": number}});
        calls.push(host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await);
    }
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(host.received_count(), received);
    program.signal(Signal::SIGCONT);
    for (number, call) in calls.into_iter().enumerate() {
        let result = host.answer(call).await["result"].clone();
        assert!(text_of(&result).contains(&format!("\"number\":{number}")), "{result}");
    }
}

#[tokio::test]
async fn stopped_server_fails_its_call_and_answers_the_next() {
    let server = Server::lazy("a").set("timeouts", json!({"call": "1s"}));
    let mut host = Proxy::with([server, Server::lazy("b")]).serve().await;
    host.load("a").await;
    let server = host.started("a")[0];
    signal(server, Signal::SIGSTOP);
    let late = host.use_tool("a/echo", json!({"number": 1})).await;
    assert_eq!(late["isError"], true);
    insta::assert_snapshot!(redacted(text_of(&late)));
    assert!(
        host.use_tool("b/echo", json!({})).await["isError"].is_null(),
        "others are not affected"
    );
    signal(server, Signal::SIGCONT);
    let next = host.use_tool("a/echo", json!({"number": 2})).await;
    assert!(text_of(&next).contains("\"number\":2"), "{next}");
    assert_eq!(host.started("a").len(), 1);
    let cancelled = host.server_log("a");
    assert!(cancelled.iter().any(|line| line.starts_with("notifications/cancelled")));
}

#[tokio::test]
async fn stopped_host_slows_no_other_and_gets_its_answers_when_it_goes_on() {
    const CALLS: u64 = 30;
    let proxy = Proxy::with([Server::lazy("a")]).set("maxResultBytes", 0);
    let mut program = proxy.argument("--stdio").start_http();
    let mut stdin = program.take_stdin();
    // The part of the host that reads is a process of its own.
    let mut reader = tokio::process::Command::new("cat");
    let stdout: Stdio = program.take_stdout().try_into().unwrap();
    reader.stdin(stdout).stdout(Stdio::piped()).kill_on_drop(true);
    let mut reader = reader.spawn().unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    let mut send = async |message: Value| {
        stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    };
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    lines.next_line().await.unwrap().unwrap();
    signal(reader.id().unwrap(), Signal::SIGSTOP);
    for id in 1..=CALLS {
        let call = json!({"tool_name": "a/huge", "tool_input": {"bytes": 300_000 + id}});
        let params = json!({"name": "use_tool", "arguments": call});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }
    let calls =
        || program.server_log("a").iter().filter(|line| line.starts_with("tools/call")).count();
    eventually("the server has got all calls", || calls() as u64 == CALLS).await;
    let mut other = program.host("/mcp").await;
    other.initialize(json!({})).await;
    let calls = async {
        for _ in 0..20 {
            assert!(other.use_tool("a/echo", json!({})).await["isError"].is_null());
        }
    };
    tokio::time::timeout(PATIENCE, calls).await.expect("no other host waits");
    signal(reader.id().unwrap(), Signal::SIGCONT);
    let mut answered = Vec::new();
    while answered.len() as u64 != CALLS {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("only {answered:?} are answered"));
        let message: Value = serde_json::from_str(&line.unwrap().expect("dormouse runs")).unwrap();
        if let Some(id) = message["id"].as_u64() {
            assert_eq!(text_of(&message["result"]).len() as u64, 300_000 + id);
            answered.push(id);
        }
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(1..=CALLS), "each call is answered once");
}
