//! Sleep, wake and death of servers, and the exit of dormouse.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{
    Proxy, Server, descendants, eventually, is_alive, redacted, text_of, without_list,
};

#[tokio::test]
async fn idle_server_sleeps_and_wakes_at_the_next_call() {
    let server = Server::lazy("a").set("idleTimeout", "150ms").script("prompts", json!(["p"]));
    let mut host = Proxy::with([server]).serve().await;
    host.load("a").await;
    let awake = host.description().await;
    let [first] = host.started("a")[..] else { panic!("one process") };
    eventually("it sleeps", || !is_alive(first)).await;
    assert_eq!(host.description().await, awake);
    assert_eq!(
        host.request("prompts/list", json!({})).await["prompts"],
        json!([{"name": "p", "new": 1}])
    );
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    assert_eq!(host.started("a").len(), 2);
    assert_eq!(host.notifications().len(), 2, "sleep and wake change nothing that is listed");
}

#[tokio::test]
async fn server_with_a_request_in_flight_is_not_idle() {
    let mut host = Proxy::with([Server::lazy("a").set("idleTimeout", "50ms")]).serve().await;
    let result = host.use_tool("a/slow", json!({"ms": 600})).await;
    assert_eq!(text_of(&result), "slept");
    assert_eq!(host.started("a").len(), 1);
}

#[tokio::test]
async fn dead_server_fails_requests_in_flight_and_restarts() {
    let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    let waiting = host
        .send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": "a/hang"}}))
        .await;
    host.server_noted("a", "tools/call").await;
    let other = host.send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": "b/slow", "tool_input": {"ms": 300}}})).await;
    let died = host.use_tool("a/die", json!({})).await;
    for result in [&died, &host.answer(waiting).await["result"]] {
        assert_eq!(result["isError"], true);
        insta::assert_snapshot!("request_in_flight_at_death", text_of(result));
    }
    assert_eq!(text_of(&host.answer(other).await["result"]), "slept");
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    assert_eq!(host.started("a").len(), 2);
    let calls = host.server_log("a").iter().filter(|line| line.starts_with("tools/call")).count();
    assert_eq!(calls, 3, "nothing is replayed");
}

#[tokio::test]
async fn failed_wake_is_an_error_and_no_strike() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let server = Server::lazy("a").set("cwd", home.to_str().unwrap()).set("idleTimeout", "100ms");
    let mut host = Proxy::with([server]).serve().await;
    host.load("a").await;
    let [process] = host.started("a")[..] else { panic!("one process") };
    eventually("it sleeps", || !is_alive(process)).await;
    std::fs::remove_dir(&home).unwrap();
    for _ in 0..5 {
        let result = host.use_tool("a/echo", json!({})).await;
        insta::assert_snapshot!("failed_wake", redacted(text_of(&result)));
    }
    assert!(host.description().await.contains("a: The a server. Use when testing.\n- echo"));
}

/// Starts cooperative and stubborn servers, ends dormouse by `end`, and checks that no process is
/// left.
async fn nothing_is_left_after(end: impl AsyncFnOnce(&mut crate::support::Host)) {
    let servers = [
        Server::lazy("polite"),
        Server::lazy("stubborn").script("stubborn", true),
        Server::lazy("parent").script("grandchild", true),
    ];
    let mut host = Proxy::with(servers).serve().await;
    for name in ["polite", "stubborn", "parent"] {
        assert!(host.load(name).await["isError"].is_null());
    }
    let mut processes = descendants(host.serving_id());
    let grandchild = host
        .server_log("parent")
        .iter()
        .find_map(|line| line.strip_prefix("grandchild ")?.parse().ok());
    processes.push(grandchild.expect("it was noted"));
    assert!(processes.iter().all(|process| is_alive(*process)));
    end(&mut host).await;
    host.exit().await;
    eventually("all are gone", || !processes.iter().any(|process| is_alive(*process))).await;
}

#[tokio::test]
async fn no_process_is_left_after_the_end_of_input() {
    nothing_is_left_after(async |host| assert_eq!(host.end().await, Some(0))).await;
}

#[tokio::test]
async fn no_process_is_left_after_sigterm() {
    nothing_is_left_after(async |host| host.signal(Signal::SIGTERM)).await;
}

#[tokio::test]
async fn no_process_is_left_after_sigint() {
    nothing_is_left_after(async |host| host.signal(Signal::SIGINT)).await;
}

#[tokio::test]
async fn no_process_is_left_after_sigkill() {
    nothing_is_left_after(async |host| host.signal(Signal::SIGKILL)).await;
}

#[tokio::test]
async fn piped_requests_are_answered_before_exit() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    let id = host.send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": "a/slow", "tool_input": {"ms": 300}}})).await;
    assert_eq!(host.end().await, Some(0));
    assert_eq!(text_of(&host.answer(id).await["result"]), "slept");
}

#[tokio::test]
async fn no_process_is_left_after_a_closed_output() {
    let mut command = crate::support::dormouse();
    command.args([
        "--log-level",
        "error",
        "--",
        env!("CARGO_BIN_EXE_dormouse"),
        "__demo-server",
        "notes",
    ]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let process = child.id().unwrap();
    eventually("its server runs", || !descendants(process).is_empty()).await;
    let servers = descendants(process);
    drop(child.stdout.take());
    let exited = tokio::time::timeout(std::time::Duration::from_secs(20), child.wait()).await;
    assert!(exited.expect("it ends, though its input is open").unwrap().success());
    eventually("all are gone", || !servers.iter().any(|server| is_alive(*server))).await;
}

#[tokio::test]
async fn silent_server_does_not_delay_exit() {
    let server = Server::lazy("a")
        .script("resources", json!(["r://1"]))
        .script("ignore", "resources/unsubscribe");
    let mut host = Proxy::with([server]).serve().await;
    host.load("a").await;
    host.request("resources/subscribe", json!({"uri": "r://1"})).await;
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn exit_is_noticed_while_a_child_holds_the_output() {
    let mut host = Proxy::with([Server::lazy("a").script("grandchild", true)]).serve().await;
    let died = host.use_tool("a/die", json!({})).await;
    insta::assert_snapshot!("death_during_a_call", text_of(&died));
    let server = Server::lazy("b").script("grandchild", true).script("exit_at", "tools/list");
    let mut host = Proxy::with([server]).serve().await;
    insta::assert_snapshot!("death_during_a_load", without_list(text_of(&host.load("b").await)));
}

#[tokio::test]
async fn calls_after_a_death_wake_the_server() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let mut ids = Vec::new();
    for number in 0..300 {
        let tool = if number == 20 { "a/die" } else { "a/echo" };
        ids.push(
            host.send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": tool}}))
                .await,
        );
    }
    for id in ids {
        let result = host.answer(id).await["result"].clone();
        if result["isError"] == true {
            insta::assert_snapshot!("request_in_flight_at_death", text_of(&result));
        }
    }
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn frozen_server_does_not_delay_lists() {
    let servers = ["a", "b"].map(|name| Server::lazy(name).script("prompts", json!([name])));
    let mut host = Proxy::with(servers).serve().await;
    host.load("a").await;
    host.load("b").await;
    let frozen = nix::unistd::Pid::from_raw(i32::try_from(host.started("a")[0]).unwrap());
    nix::sys::signal::kill(frozen, Signal::SIGSTOP).unwrap();
    let list = host.request("prompts/list", json!({})).await;
    assert_eq!(list["prompts"], json!([{"name": "a", "new": 1}, {"name": "b", "new": 1}]));
}

#[tokio::test]
async fn piped_lists_wait_for_eager_servers() {
    let mut host = Proxy::with([Server::eager("a").script("delay_ms", 100)])
        .set("surface", "activate")
        .start();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    host.send("initialize", hello).await;
    let list = host.send("tools/list", json!({})).await;
    assert_eq!(host.end().await, Some(0));
    assert_eq!(host.answer(list).await["result"]["tools"][0]["name"], "a__echo");
}

#[tokio::test]
async fn unread_log_does_not_stop_the_protocol() {
    let mut host = Proxy::with([Server::lazy("a")]).start_without_reading_the_log();
    host.initialize(json!({})).await;
    host.use_tool("a/shout", json!({"lines": 20_000})).await;
    host.request("ping", json!({})).await;
    assert_eq!(host.end().await, Some(0));
}

/// Returns a server that leaves a process behind in a session of its own, which survives its
/// parent.
fn with_stray(name: &str, home: &std::path::Path) -> Server {
    let note = home.join(format!("{name}.stray"));
    let left = format!("setsid sh -c 'echo $$ > {}; exec sleep 300' &", note.display());
    let script = format!("{left} exec {} '{{}}'", crate::support::fixture().display());
    Server::lazy(name).set("command", "sh").set("args", json!(["-c", script]))
}

async fn stray_of(name: &str, home: &std::path::Path) -> u32 {
    let note = home.join(format!("{name}.stray"));
    let read = || std::fs::read_to_string(&note).ok()?.trim().parse().ok();
    eventually("the stray has noted itself", || read().is_some()).await;
    read().expect("it has")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_outside_the_group_end_with_their_server() {
    let home = tempfile::tempdir().unwrap();
    let servers = ["a", "b"].map(|name| with_stray(name, home.path()));
    let mut host = Proxy::with(servers).serve().await;
    for name in ["a", "b"] {
        assert!(host.load(name).await["isError"].is_null());
    }
    let strays = [stray_of("a", home.path()).await, stray_of("b", home.path()).await];
    assert!(strays.iter().all(|stray| is_alive(*stray)));
    host.end().await;
    eventually("none is left", || !strays.iter().any(|stray| is_alive(*stray))).await;

    let home = tempfile::tempdir().unwrap();
    let mut host = Proxy::with([with_stray("a", home.path())]).serve().await;
    host.load("a").await;
    let stray = stray_of("a", home.path()).await;
    host.signal(Signal::SIGKILL);
    eventually("the watchdog ends it", || !is_alive(stray)).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn killed_watchdog_is_started_again() {
    let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    let watchdogs = |of: u32| -> Vec<u32> {
        let is_one = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/comm"))
                .is_ok_and(|name| name == "mcp-watchdog\n")
        };
        descendants(of).into_iter().filter(is_one).collect()
    };
    let first = watchdogs(host.serving_id());
    assert_eq!(first.len(), 1, "it has a name of its own");
    let process = nix::unistd::Pid::from_raw(i32::try_from(first[0]).unwrap());
    nix::sys::signal::kill(process, Signal::SIGKILL).unwrap();
    eventually("it is gone", || !is_alive(first[0])).await;
    eventually("there is another", || watchdogs(host.serving_id()).len() == 1).await;
    host.load("b").await;
    let servers = [host.started("a")[0], host.started("b")[0]];
    host.signal(Signal::SIGKILL);
    eventually("it guards both", || !servers.iter().any(|server| is_alive(*server))).await;
}

#[tokio::test]
async fn requests_wait_for_eager_servers_that_may_know_what_they_name() {
    let server = || {
        let server = Server::eager("a").script("delay_ms", 300).script("prompts", json!(["p"]));
        server.script("resources", json!(["r://1"]))
    };
    for (method, params) in [
        ("tools/call", json!({"name": "echo", "arguments": {"text": "x"}})),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "r://1"})),
        ("resources/subscribe", json!({"uri": "r://1"})),
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""},
            }),
        ),
    ] {
        let mut host = Proxy::with([server()]).serve().await;
        let answer = host.ask(method, params).await;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        assert!(answer["result"]["isError"].is_null(), "{method}: {answer}");
    }
}
