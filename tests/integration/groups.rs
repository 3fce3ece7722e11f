//! The surface of dynamic-mcp: `get_dynamic_tools` and `call_dynamic_tool`.

use serde_json::{Value, json};

use crate::support::{Cases, Proxy, Server, line_of, text_of};

#[tokio::test]
async fn groups_work_without_a_new_list() {
    let servers = [Server::lazy("a"), Server::lazy("b").set("command", "no-such-program")];
    let mut host = Proxy::with(servers).set("surface", "groups").serve().await;
    let list = host.request("tools/list", json!({})).await;
    for tool in list["tools"].as_array().unwrap() {
        let description = tool["description"].as_str().unwrap();
        assert!(
            description.contains("<groups>\n- a: The a server. Use when testing.\n- b: "),
            "{description}"
        );
    }
    let tools = host.call("get_dynamic_tools", json!({"group": "a"})).await;
    let tools: Value = serde_json::from_str(text_of(&tools)).unwrap();
    assert_eq!(
        tools[0],
        json!({"name": "echo", "description": "The echo tool. Its second sentence.",
            "inputSchema": {"type": "object", "properties": {"z": {}, "a": {}}}})
    );
    let called = host
        .call("call_dynamic_tool", json!({"group": "a", "name": "echo", "args": {"x": 1e2}}))
        .await;
    assert!(called["isError"].is_null(), "{called}");
    let found = host.call("get_dynamic_tools", json!({"query": "echo"})).await;
    assert!(text_of(&found).contains("a/echo"), "{found}");
    for _ in 0..3 {
        assert_eq!(host.call("get_dynamic_tools", json!({"group": "b"})).await["isError"], true);
    }
    let list = host.request("tools/list", json!({})).await;
    let description = list["tools"][0]["description"].as_str().unwrap();
    insta::assert_snapshot!(line_of(description, "- b:"));
}

#[tokio::test]
async fn bad_arguments_get_a_clear_error() {
    let mut host = Proxy::with([Server::lazy("alpha")]).set("surface", "groups").serve().await;
    let mut cases = Cases::default();
    for (tool, arguments) in [
        ("get_dynamic_tools", json!({})),
        ("get_dynamic_tools", json!({"group": "alpa"})),
        ("call_dynamic_tool", json!({"group": "alpha"})),
        ("call_dynamic_tool", json!({"group": "alpha", "name": "echo", "args": 7})),
        ("call_dynamic_tool", json!({"group": "alpha", "name": "ecko", "args": null})),
    ] {
        let result = host.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{result}");
        cases.add(format!("{tool} {arguments}"), text_of(&result));
    }
    insta::assert_snapshot!(cases);
}
