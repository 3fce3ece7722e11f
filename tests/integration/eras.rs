//! Both eras on both sides. rmcp is an independent implementation of a server and a client.

use rmcp::{
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::TokioChildProcess,
};
use serde_json::{Value, json};

use crate::support::{ModernHost, Proxy, Server, dormouse, text_of};

#[tokio::test]
async fn every_legacy_version_is_answered_with_itself() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut host = Proxy::with([Server::lazy("a")]).start();
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let result = host.request("initialize", params).await;
        assert_eq!(result["protocolVersion"], version);
        assert!(result["instructions"].as_str().unwrap().contains("- a: The a server."));
        // Some hosts never send `notifications/initialized`.
        assert!(host.load("a").await["isError"].is_null());
    }
}

#[tokio::test]
async fn modern_host_discovers_listens_and_lists_again() {
    let mut host = Proxy::with([Server::lazy("a").script("resources", json!(["r://1"]))])
        .start()
        .into_modern();
    let discovered = host.request("server/discover", json!({})).await;
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    assert_eq!(discovered["resultType"], "complete");
    assert_eq!((&discovered["ttlMs"], &discovered["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "dormouse");

    let stream = host.listen(json!({"toolsListChanged": true})).await;
    let list = host.request("tools/list", json!({})).await;
    assert_eq!((&list["resultType"], &list["ttlMs"]), (&json!("complete"), &json!(0)));

    let loaded = host.call("load_mcp", json!({"mcp_name": "a"})).await;
    assert_eq!(loaded["resultType"], "complete");
    let told = host.0.notification("notifications/tools/list_changed").await;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
    let methods = host.0.notifications();
    assert!(
        !methods.contains(&"notifications/resources/list_changed".to_owned()),
        "it did not ask for that: {methods:?}"
    );
    let list = host.request("tools/list", json!({})).await;
    assert!(
        list["tools"][0]["description"]
            .as_str()
            .unwrap()
            .contains("a: The a server. Use when testing.\n- echo")
    );

    host.0.notify("notifications/cancelled", json!({"requestId": stream})).await;
    let result = host
        .call("use_tool", json!({"tool_name": "a/change", "tool_input": {"tools": ["new"]}}))
        .await;
    assert_eq!(result["resultType"], "complete", "a legacy server's result is made a modern one");
    host.call("use_tool", json!({"tool_name": "a/slow", "tool_input": {"ms": 500}})).await;
    assert_eq!(
        host.0
            .notifications()
            .iter()
            .filter(|method| method.ends_with("tools/list_changed"))
            .count(),
        1
    );
}

#[tokio::test]
async fn unknown_version_is_refused_with_the_supported_ones() {
    let mut host = Proxy::with([]).start();
    let mut params = ModernHost::meta(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let answer = host.ask("server/discover", params).await;
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["requested"], "2099-01-01");
    assert_eq!(answer["error"]["data"]["supported"][0], "2026-07-28");
}

#[tokio::test]
async fn metadata_of_a_modern_host_is_removed_for_a_legacy_server() {
    let mut host = Proxy::with([Server::lazy("a")]).start().into_modern();
    let params =
        json!({"name": "use_tool", "arguments": {"tool_name": "a/echo"}, "_meta": {"x/own": 1}});
    let result = host.request("tools/call", params).await;
    assert_eq!(text_of(&result), r#"{"name":"echo","arguments":{},"_meta":{"x/own":1}}"#);
    let methods: Vec<String> = host
        .0
        .server_log("a")
        .iter()
        .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
        .collect();
    let probe = methods.iter().position(|method| method == "server/discover").unwrap();
    assert!(probe < methods.iter().position(|method| method == "initialize").unwrap());
    assert_eq!(
        host.0.started("a").len(),
        1,
        "a refused probe is followed by initialize on the same connection"
    );
}

#[tokio::test]
async fn server_that_exits_at_the_probe_is_started_again() {
    let mut host =
        Proxy::with([Server::lazy("a").script("exit_at", "server/discover")]).start().into_modern();
    let result = host.call("load_mcp", json!({"mcp_name": "a"})).await;
    assert!(result["isError"].is_null(), "{result}");
    assert_eq!(host.0.started("a").len(), 2);
    host.call("use_tool", json!({"tool_name": "a/die"})).await;
    host.call("use_tool", json!({"tool_name": "a/echo"})).await;
    assert_eq!(host.0.started("a").len(), 3, "the server is not probed again");
}

#[tokio::test]
async fn ignored_probe_is_followed_by_initialize() {
    let server = Server::lazy("a").script("ignore", "server/discover").set("idleTimeout", "100ms");
    let mut host = Proxy::with([server]).start().into_modern();
    let result = host.call("load_mcp", json!({"mcp_name": "a"})).await;
    assert!(result["isError"].is_null(), "{result}");
    assert_eq!(host.0.started("a").len(), 1);
    host.0.server_noted("a", "end of input").await;
    host.call("use_tool", json!({"tool_name": "a/echo"})).await;
    assert_eq!(host.0.started("a").len(), 2);
    let probes =
        host.0.server_log("a").iter().filter(|line| line.starts_with("server/discover")).count();
    assert_eq!(probes, 1, "a probe that was ignored is not repeated");
}

#[tokio::test]
async fn modern_server_serves_a_legacy_host() {
    let mut host = Proxy::with([Server::lazy("a")
        .script("modern_only", true)
        .script("resources", json!(["r://1"]))])
    .serve()
    .await;
    assert!(host.load("a").await["isError"].is_null());
    let result = host.use_tool("a/echo", json!({"x": 1})).await;
    let params: Value = serde_json::from_str(text_of(&result)).unwrap();
    assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "test");
    host.server_noted("a", "subscriptions/listen").await;
    let missing = host.ask("resources/read", json!({"uri": "r://1"})).await;
    assert!(missing["result"]["contents"].is_array());
}

#[tokio::test]
async fn replaced_server_may_speak_another_era_than_before() {
    let home = tempfile::tempdir().unwrap();
    let mark = home.path().join("replaced");
    let server = || {
        let condition = format!("test -e {}", mark.display());
        Server::lazy("a")
            .after(&format!("if {condition}; then set -- '{{\"modern_only\":true}}'; fi"))
    };
    let mut before = Proxy::with([server()]).at_home(home.path()).serve().await;
    before.load("a").await;
    before.end().await;
    std::fs::write(&mark, "").unwrap();
    let mut after = Proxy::with([server()]).at_home(home.path()).serve().await;
    let result = after.use_tool("a/echo", json!({"text": "hello"})).await;
    assert!(text_of(&result).contains("hello"), "{result}");
    assert!(text_of(&result).contains("2026-07-28"), "{result}");
}

#[tokio::test]
async fn rmcp_server_speaks_the_era_of_its_host() {
    let server = || Server::lazy("r").script("rmcp", true);
    let mut legacy = Proxy::with([server()]).serve().await;
    assert_eq!(text_of(&legacy.use_tool("r/era", json!({})).await), "legacy");
    let mut modern = Proxy::with([server()]).start().into_modern();
    modern.listen(json!({"toolsListChanged": true})).await;
    let result = modern.call("use_tool", json!({"tool_name": "r/era"})).await;
    assert_eq!(text_of(&result), "2026-07-28");
    let read = modern.request("resources/read", json!({"uri": "rmcp://one"})).await;
    assert_eq!(read["contents"][0]["text"], "one");
}

#[tokio::test]
async fn changes_of_a_modern_server_reach_a_legacy_host() {
    let server = Server::lazy("r").script("rmcp", true).set("protocol", "modern");
    let mut host = Proxy::with([server]).serve().await;
    host.load("r").await;
    assert!(!host.description().await.contains("grown"));
    assert_eq!(text_of(&host.use_tool("r/grow", json!({})).await), "2026-07-28");
    crate::support::eventually("the host is notified", || {
        host.notifications().iter().filter(|method| method.ends_with("tools/list_changed")).count()
            == 2
    })
    .await;
    assert!(host.description().await.contains("- grown"));
}

#[tokio::test]
async fn rmcp_client_of_either_era_loads_and_calls() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("dormouse.json");
    let fixture = std::path::Path::new(env!("CARGO_BIN_EXE_dormouse"))
        .with_file_name("examples")
        .join("fixture");
    let entry = json!({"description": "d", "command": fixture, "args": [json!({}).to_string()]});
    std::fs::write(&config, json!({"mcpServers": {"a": entry}}).to_string()).unwrap();
    let modern =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for lifecycle in [ClientLifecycleMode::Initialize, modern] {
        let mut command = dormouse();
        command.arg("--config").arg(&config);
        command.env("XDG_CACHE_HOME", directory.path().join("cache"));
        command.env("XDG_DATA_HOME", directory.path().join("data"));
        let transport = TokioChildProcess::new(command).unwrap();
        let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 3);
        let arguments = |value: Value| value.as_object().unwrap().clone();
        let load = CallToolRequestParams::new("load_mcp")
            .with_arguments(arguments(json!({"mcp_name": "a"})));
        let loaded = client.call_tool(load).await.unwrap();
        assert_eq!(loaded.structured_content.unwrap()["mcp_name"], "a");
        let call = CallToolRequestParams::new("use_tool")
            .with_arguments(arguments(json!({"tool_name": "a/slow"})));
        let called = client.call_tool(call).await.unwrap();
        assert_ne!(called.is_error, Some(true));
        client.cancel().await.unwrap();
    }
}
