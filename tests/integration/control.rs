//! Restrictions of the config: tools by name and glob, features, and loads per session.

use serde_json::{Value, json};

use crate::support::{Cases, Host, Proxy, Server, text_of};

fn controlled() -> Server {
    Server::lazy("a")
        .set("tools", json!({"*": false, "echo": true, "s*": true, "stray": {"enabled": false}}))
}

/// Returns the text of a result that is an error.
#[track_caller]
fn refusal(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    text_of(result)
}

#[tokio::test]
async fn hidden_tool_is_unlisted_and_unreachable() {
    let mut host = Proxy::with([controlled()]).serve().await;
    let loaded = host.load("a").await;
    let names: Vec<&str> = loaded["structuredContent"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a/echo", "a/slow", "a/send", "a/shout"]);
    assert!(!host.description().await.contains("progress"));
    let found = host.call("discover_tool", json!({"query": "progress stray die"})).await;
    assert!(!text_of(&found).contains("a/progress") && !text_of(&found).contains("a/stray"));
    let mut cases = Cases::default();
    for (tool, arguments) in [
        ("use_tool", json!({"tool_name": "a/raw", "tool_input": {"result": "{}"}})),
        ("use_tool", json!({"tool_name": "a__raw", "tool_input": {}})),
        ("use_tool", json!({"tool_name": "raw", "tool_input": {}})),
        ("a__raw", json!({})),
        ("discover_tool", json!({"tool_name": "a/raw"})),
        ("call_dynamic_tool", json!({"group": "a", "name": "raw", "args": {}})),
    ] {
        let result = host.call(tool, arguments.clone()).await;
        cases.add(format!("{tool} {arguments}"), refusal(&result));
    }
    insta::assert_snapshot!(cases);
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    assert!(!host.server_log("a").iter().any(|line| line.contains("\"raw\"")));
}

#[tokio::test]
async fn hidden_tool_is_unreachable_at_the_servers_endpoint() {
    let program = Proxy::with([controlled()]).start_http();
    let mut host = program.host("/servers/a/mcp").await;
    host.initialize(json!({})).await;
    assert_eq!(host.tool_names().await, ["echo", "slow", "send", "shout"]);
    let mut cases = Cases::default();
    for tool in ["raw", "not-even-listed"] {
        cases.add(tool, refusal(&host.call(tool, json!({})).await));
    }
    insta::assert_snapshot!(cases);
    assert!(host.call("echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn disabled_features_are_unlisted_and_unreachable() {
    let server = Server::lazy("a")
        .set("features", json!({"tools": false, "resources": false, "prompts": false}))
        .script("resources", json!(["file:///x"]))
        .script("templates", json!(["file:///{name}"]))
        .script("prompts", json!(["p"]));
    let program = Proxy::with([server]).start_http();
    let mut cases = Cases::default();
    for path in ["/mcp", "/servers/a/mcp"] {
        let mut host = program.host(path).await;
        host.initialize(json!({})).await;
        let result = if path == "/mcp" {
            host.load("a").await;
            host.use_tool("a/echo", json!({})).await
        } else {
            host.call("echo", json!({})).await
        };
        cases.add(format!("{path} tools/call"), refusal(&result));
        for (method, member) in [
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            assert_eq!(host.request(method, json!({})).await[member], json!([]), "{method}");
        }
        for (method, params) in [
            ("resources/read", json!({"uri": "file:///x"})),
            ("resources/subscribe", json!({"uri": "file:///x"})),
            ("prompts/get", json!({"name": "p"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
            ),
        ] {
            let answer = host.ask(method, params).await;
            cases.add(format!("{path} {method}"), answer["error"]["message"].as_str().unwrap());
        }
    }
    insta::assert_snapshot!(cases);
    let forbidden = ["resources/read", "resources/subscribe", "prompts/get", "tools/call"];
    let log = program.server_log("a");
    assert!(
        !log.iter().any(|line| forbidden.iter().any(|method| line.starts_with(method))),
        "{log:?}"
    );
}

#[tokio::test]
async fn readonly_call_reaches_only_readonly_tools() {
    let mut host = Proxy::with([Server::lazy("a")]).set("splitCalls", true).serve().await;
    let list = host.request("tools/list", json!({})).await;
    let tool = &list["tools"][2];
    assert_eq!(
        (&tool["name"], &tool["annotations"]["readOnlyHint"]),
        (&json!("use_readonly_tool"), &json!(true))
    );
    let read =
        host.call("use_readonly_tool", json!({"tool_name": "a/shout", "tool_input": {}})).await;
    assert!(read["isError"].is_null(), "{read}");
    let refused = host.call("use_readonly_tool", json!({"tool_name": "a/echo"})).await;
    insta::assert_snapshot!(refusal(&refused));
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    let unknown = host.call("use_readonly_tool", json!({"tool_name": "a/shout"})).await;
    assert_eq!(unknown["isError"], true, "the tool exists only with splitCalls");
}

async fn session(program: &crate::support::Program) -> Host {
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    host
}

#[tokio::test]
async fn sessions_with_own_loads_share_one_process() {
    let program = Proxy::with([Server::lazy("a").script("prompts", json!(["p"]))])
        .set("loads", "session")
        .start_http();
    let (mut first, mut second) = (session(&program).await, session(&program).await);
    first.http_mut().listen(None);
    second.http_mut().listen(None);
    let before = second.description().await;
    first.load("a").await;
    assert!(first.description().await.contains("a: The a server. Use when testing.\n- echo"));
    assert_eq!(second.description().await, before);
    assert_eq!(second.request("prompts/list", json!({})).await["prompts"], json!([]));
    second.load("a").await;
    assert_eq!(second.description().await, first.description().await);
    assert_eq!(
        second.request("prompts/list", json!({})).await["prompts"].as_array().unwrap().len(),
        1
    );
    assert_eq!(program.started("a").len(), 1, "they share the process");
    for host in [&first, &second] {
        let told = host.notifications();
        assert_eq!(
            told,
            ["notifications/tools/list_changed", "notifications/prompts/list_changed"]
        );
    }
    let mut third = session(&program).await;
    assert!(third.description().await.contains("<mcp_servers>"));
    // An implicit load is a load of that session too.
    assert!(third.use_tool("a/echo", json!({})).await["isError"].is_null());
    assert!(third.description().await.contains("a: The a server. Use when testing.\n- echo"));
}

#[tokio::test]
async fn search_finds_only_loads_of_its_session() {
    for listing in ["growing", "stable"] {
        let proxy = Proxy::with([Server::lazy("a"), Server::lazy("b")]).set("loads", "session");
        let program = proxy.set("listing", listing).start_http();
        let (mut one, mut other) = (session(&program).await, session(&program).await);
        one.load("a").await;
        for host in [&mut one, &mut other] {
            let found =
                host.call("discover_tool", json!({"query": "echo", "detail": "full"})).await;
            assert!(found["isError"].is_null(), "{listing}: {found}");
        }
    }
}
