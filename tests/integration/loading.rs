//! Loads: one attempt for all callers, no remains of a failed one, and eviction after three
//! strikes.

use serde_json::json;

use crate::support::{
    Cases, Proxy, Server, descendants, eventually, is_alive, line_of, redacted, text_of,
    without_list,
};

#[tokio::test]
async fn no_server_starts_before_it_is_needed() {
    let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
    assert_eq!(host.tool_names().await, ["discover_tool", "use_tool", "load_mcp"]);
    host.request("resources/list", json!({})).await;
    host.request("prompts/list", json!({})).await;
    assert_eq!(descendants(host.serving_id()), [0_u32; 0]);
    assert!(host.started("a").is_empty() && host.started("b").is_empty());
}

#[tokio::test]
async fn load_notifies_the_host_before_its_result() {
    let server = Server::lazy("a")
        .script("resources", json!(["r://1", "r://2", "r://3"]))
        .script("templates", json!(["t://{x}"]))
        .script("prompts", json!(["p1", "p2"]))
        .script("instructions", "Be kind.")
        .script("page", 2);
    let mut host = Proxy::with([server]).serve().await;
    let result = host.load("a").await;
    assert_eq!(
        host.notifications(),
        [
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed"
        ]
    );
    let report = &result["structuredContent"];
    assert_eq!(text_of(&result), report.to_string());
    assert_eq!(report["mcp_name"], "a");
    assert_eq!(report["tools"].as_array().unwrap().len(), 18);
    assert_eq!(
        report["tools"][0],
        json!({"name": "a/echo", "description": "The echo tool. Its second sentence."})
    );
    assert_eq!(report["resources"][2], json!({"uri": "r://3", "name": "r://3"}));
    assert_eq!(
        report["resource_templates"],
        json!([{"uriTemplate": "t://{x}", "name": "t://{x}"}])
    );
    assert_eq!(report["prompts"][1], json!({"name": "p2"}));
    assert_eq!(report["instructions"], "Be kind.");

    let again = host.load("a").await;
    assert_eq!(again, result);
    assert_eq!(host.notifications().len(), 3);
    assert_eq!(host.started("a").len(), 1);
    let lists = host.request("prompts/list", json!({})).await;
    assert_eq!(lists["prompts"], json!([{"name": "p1", "new": 1}, {"name": "p2", "new": 1}]));
}

#[tokio::test]
async fn fifty_concurrent_loads_start_one_process() {
    let mut host = Proxy::with([Server::lazy("a").script("delay_ms", 200)]).serve().await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(
            host.send("tools/call", json!({"name": "load_mcp", "arguments": {"mcp_name": "a"}}))
                .await,
        );
    }
    for id in ids {
        let answer = host.answer(id).await;
        assert_eq!(answer["result"]["structuredContent"]["mcp_name"], "a", "{answer}");
    }
    assert_eq!(host.started("a").len(), 1);
    assert_eq!(host.notifications(), ["notifications/tools/list_changed"]);
}

#[tokio::test]
async fn different_servers_load_in_parallel() {
    // The delay is long enough for all three to start before the first is loaded.
    let servers = ["a", "b", "c"].map(|name| Server::lazy(name).script("delay_ms", 1500));
    let mut host = Proxy::with(servers).serve().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(
            host.send("tools/call", json!({"name": "load_mcp", "arguments": {"mcp_name": name}}))
                .await,
        );
    }
    for name in ["a", "b", "c"] {
        host.server_noted(name, "start").await;
    }
    assert!(host.received().len() <= 1, "all three were started before any was loaded");
    for id in ids {
        assert!(host.answer(id).await["result"]["isError"].is_null());
    }
}

/// Fails to load a server three times, and checks that nothing is left of it.
async fn third_failure_evicts(server: Server, snapshot: &str) {
    let mut host =
        Proxy::with([server.set("timeouts", json!({"load": "700ms"})), Server::lazy("other")])
            .serve()
            .await;
    let mut attempts = Cases::default();
    for attempt in 1..=3 {
        assert!(host.description().await.contains("- bad: "), "offered before attempt {attempt}");
        let result = host.load("bad").await;
        assert_eq!(result["isError"], true, "{result}");
        attempts.add(attempt, &without_list(text_of(&result)));
        let processes = host.started("bad");
        assert!(
            processes.iter().all(|process| !is_alive(*process)),
            "a process is left: {processes:?}"
        );
        for list in ["resources/list", "resources/templates/list", "prompts/list"] {
            let result = host.request(list, json!({})).await;
            assert!(
                result.as_object().unwrap().values().all(|items| items == &json!([])),
                "{result}"
            );
        }
        let told = host.notifications();
        assert_eq!(told.len(), usize::from(attempt == 3), "{told:?}");
    }
    assert_eq!(host.notifications(), ["notifications/tools/list_changed"]);
    assert!(!host.description().await.contains("bad"));
    let unknown = host.load("bad").await;
    attempts.add("after it is evicted", text_of(&unknown));
    insta::assert_snapshot!(snapshot, attempts);
}

macro_rules! third_failure_evicts {
    ($($name:ident: $server:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            third_failure_evicts($server, stringify!($name)).await;
        })*
    };
}

third_failure_evicts! {
    missing_command: Server::lazy("bad").set("command", "/no/such/program");
    undefined_variable: Server::lazy("bad").set("cwd", "${NO_SUCH_VARIABLE}");
    exit_at_spawn: Server::lazy("bad").script("exit_at", "spawn");
    exit_at_the_handshake: Server::lazy("bad").script("exit_at", "initialize");
    refused_handshake: Server::lazy("bad").script("refuse", "initialize");
    hanging_handshake: Server::lazy("bad").script("hang_at", "initialize");
    refused_tools: Server::lazy("bad").script("refuse", "tools/list");
    refused_resources: Server::lazy("bad").script("refuse", "resources/list");
    refused_templates: Server::lazy("bad").script("refuse", "resources/templates/list");
    refused_prompts: Server::lazy("bad").script("refuse", "prompts/list");
    exit_at_a_list: Server::lazy("bad").script("exit_at", "prompts/list");
    hanging_list: Server::lazy("bad").script("hang_at", "resources/list");
    stubborn_server_with_a_grandchild: Server::lazy("bad")
        .script("hang_at", "tools/list")
        .script("stubborn", true)
        .script("grandchild", true);
}

#[tokio::test]
async fn successful_load_clears_strikes() {
    // The server's directory is created after two failures.
    let place = tempfile::tempdir().unwrap();
    let late = place.path().join("late");
    let server = Server::lazy("a").set("cwd", late.to_str().unwrap()).set("idleTimeout", "100ms");
    let mut host = Proxy::with([server]).serve().await;
    let mut failures = Cases::default();
    for attempt in 1..=2 {
        failures.add(attempt, text_of(&host.load("a").await));
    }
    insta::assert_snapshot!(failures);
    std::fs::create_dir(&late).unwrap();
    assert!(host.load("a").await["isError"].is_null());
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn cancelled_caller_does_not_end_the_load() {
    let mut host = Proxy::with([Server::lazy("a").script("delay_ms", 300)]).serve().await;
    let call = json!({"name": "load_mcp", "arguments": {"mcp_name": "a"}});
    let first = host.send("tools/call", call.clone()).await;
    host.server_noted("a", "start").await;
    host.notify("notifications/cancelled", json!({"requestId": first})).await;
    host.notification("notifications/tools/list_changed").await;
    assert!(host.description().await.contains("a: The a server. Use when testing.\n- echo"));
    let second = host.ask("tools/call", call).await;
    assert!(second["result"]["isError"].is_null());
    assert_eq!(host.started("a").len(), 1);
    assert!(
        host.received().iter().all(|line| !line.contains(&format!("\"id\":{first},"))),
        "a cancelled request is not answered"
    );
}

#[tokio::test]
async fn call_of_an_unloaded_tool_loads_its_server() {
    for name in ["a/echo", "a__echo"] {
        let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
        let result = host.use_tool(name, json!({"x": 1})).await;
        assert!(text_of(&result).contains("\"x\":1"), "{result}");
        assert_eq!(host.notifications(), ["notifications/tools/list_changed"]);
        let bare = host.use_tool("echo", json!({})).await;
        assert!(bare["isError"].is_null());
        assert!(host.started("b").is_empty());
    }
}

#[tokio::test]
async fn long_load_reports_progress() {
    let mut host = Proxy::with([Server::lazy("a").script("delay_ms", 5500)]).serve().await;
    let params = json!({"name": "load_mcp", "arguments": {"mcp_name": "a"}, "_meta": {"progressToken": "t"}});
    host.send("tools/call", params).await;
    let beat = host.notification("notifications/progress").await;
    assert_eq!(beat["params"]["progressToken"], "t");
    assert_eq!(beat["params"]["progress"], -1.0);
    insta::assert_snapshot!(beat["params"]["message"].as_str().unwrap());
}

#[tokio::test]
async fn eager_server_is_in_the_first_list_and_is_retried() {
    let place = tempfile::tempdir().unwrap();
    let late = place.path().join("late");
    let servers = [
        Server::eager("good").script("delay_ms", 200),
        Server::eager("bad").set("cwd", late.to_str().unwrap()),
    ];
    let mut host = Proxy::with(servers).serve().await;
    let description = host.description().await;
    assert!(description.contains("good:\n- echo: The echo tool\n"), "{description}");
    insta::assert_snapshot!(redacted(line_of(&description, "- bad: ")));
    std::fs::create_dir(&late).unwrap();
    eventually("the eager server is connected by itself", || !host.started("bad").is_empty()).await;
    host.logged("awake server=\"bad\"").await;
    assert!(host.description().await.contains("bad:\n- echo"));
}
