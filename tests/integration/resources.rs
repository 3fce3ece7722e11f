//! Resources, prompts and completion: their owners, and equal names of two servers.

use serde_json::{Value, json};

use crate::support::{Proxy, Server};

fn two_servers() -> [Server; 2] {
    [
        Server::lazy("one")
            .script("resources", json!(["r://shared", "r://one"]))
            .script("templates", json!(["one://{path}"]))
            .script("prompts", json!(["shared", "first"])),
        Server::lazy("t.w-o")
            .script("resources", json!(["r://shared", "r://two"]))
            .script("templates", json!(["two://{+path}"]))
            .script("prompts", json!(["shared", "second"])),
    ]
}

#[tokio::test]
async fn first_server_in_config_order_keeps_the_bare_name() {
    let mut host = Proxy::with(two_servers()).serve().await;
    // The order of the loads must not matter.
    host.load("t.w-o").await;
    host.load("one").await;
    let [one, two] = [host.started("one")[0], host.started("t.w-o")[0]];
    let resources = host.request("resources/list", json!({})).await;
    let uris: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["r://shared", "r://one", "r://two"]);
    for (uri, owner) in
        [("r://shared", one), ("r://two", two), ("one://x", one), ("two://a/b", two)]
    {
        let read = host.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"][0]["text"], owner.to_string(), "{uri}");
    }
    let prompts = host.request("prompts/list", json!({})).await;
    let names: Vec<&str> = prompts["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["shared", "first", "t_w-o__shared", "second"]);
    for (name, own) in [
        ("shared", "shared"),
        ("t_w-o__shared", "shared"),
        ("t_w-o__second", "second"),
        ("one__first", "first"),
    ] {
        let prompt = host.request("prompts/get", json!({"name": name})).await;
        assert_eq!(prompt["description"], own);
    }
    let log = host.server_log("t.w-o");
    assert_eq!(log.iter().filter(|line| line.starts_with("prompts/get")).count(), 2);
}

#[tokio::test]
async fn completion_reaches_the_owner() {
    let mut host = Proxy::with(two_servers()).serve().await;
    host.load("one").await;
    host.load("t.w-o").await;
    for (reference, own) in [
        (
            json!({"type": "ref/prompt", "name": "t_w-o__shared"}),
            json!({"type": "ref/prompt", "name": "shared"}),
        ),
        (
            json!({"type": "ref/resource", "uri": "two://{+path}"}),
            json!({"type": "ref/resource", "uri": "two://{+path}"}),
        ),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "a", "value": "b"}});
        let result = host.request("completion/complete", params).await;
        let seen: Value =
            serde_json::from_str(result["completion"]["values"][0].as_str().unwrap()).unwrap();
        assert_eq!(seen, own);
    }
    assert!(!host.server_log("one").iter().any(|line| line.starts_with("completion")));
    let unknown =
        host.ask("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "no"}})).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn unlisted_uri_is_tried_on_awake_servers() {
    let mut host = Proxy::with(two_servers()).serve().await;
    host.load("t.w-o").await;
    let read = host.request("resources/read", json!({"uri": "linked://somewhere"})).await;
    assert_eq!(read["contents"][0]["text"], host.started("t.w-o")[0].to_string());
    let missing = host.ask("resources/read", json!({"uri": "linked://missing"})).await;
    // The only awake server refused.
    assert_eq!(missing["error"], json!({"code": -32002, "message": "no resources/read"}));
    host.load("one").await;
    let missing = host.ask("resources/read", json!({"uri": "linked://missing"})).await;
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    insta::assert_snapshot!(missing["error"]["message"].as_str().unwrap());
}

#[tokio::test]
async fn subscription_keeps_its_server_awake() {
    let servers = two_servers().map(|server| server.set("idleTimeout", "200ms"));
    let mut host = Proxy::with(servers).serve().await;
    host.load("one").await;
    host.request("resources/subscribe", json!({"uri": "r://one"})).await;
    host.server_noted("one", "resources/subscribe {\"uri\":\"r://one\"}").await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    for uri in ["r://one", "r://shared"] {
        let params =
            json!({"method": "notifications/resources/updated", "params": {"uri": uri, "new": 1}});
        host.use_tool("one/send", params).await;
    }
    let update = host.notification("notifications/resources/updated").await;
    assert_eq!(update["params"], json!({"uri": "r://one", "new": 1}));
    assert_eq!(host.started("one").len(), 1, "a server with a subscription is not idle");
    assert_eq!(host.notifications().iter().filter(|method| method.ends_with("updated")).count(), 1);
    host.request("resources/unsubscribe", json!({"uri": "r://one"})).await;
    host.server_noted("one", "resources/unsubscribe").await;
    host.server_noted("one", "end of input").await;
}

#[tokio::test]
async fn subscription_is_renewed_after_a_restart() {
    let mut host = Proxy::with(two_servers()).serve().await;
    host.load("one").await;
    host.request("resources/subscribe", json!({"uri": "r://one"})).await;
    host.use_tool("one/die", json!({})).await;
    host.use_tool("one/echo", json!({})).await;
    crate::support::eventually("it is subscribed again", || {
        let log = host.server_log("one");
        log.iter().filter(|line| line.starts_with("resources/subscribe")).count() == 2
    })
    .await;
}

#[tokio::test]
async fn resource_subscription_of_a_modern_host_is_a_stream() {
    let mut host = Proxy::with([Server::lazy("r").script("rmcp", true)]).start().into_modern();
    host.call("load_mcp", json!({"mcp_name": "r"})).await;
    let stream = host
        .send(
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": ["rmcp://one", "no://where"]}}),
        )
        .await;
    let acknowledged = host.0.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"resourceSubscriptions": ["rmcp://one"]})
    );
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
}

#[tokio::test]
async fn unknown_methods_pass_only_to_a_single_server() {
    let mut host = Proxy::with([Server::eager("a")]).serve().await;
    assert_eq!(host.ask("notes/list", json!({})).await["error"]["code"], -32601);
    let mut single = Proxy::wrapping(&json!({"refuse": "tasks/list"})).serve().await;
    let answer = single.ask("tasks/list", json!({})).await;
    assert_eq!(answer["error"]["message"], "told to refuse tasks/list");
}

#[tokio::test]
async fn stuck_unsubscribe_does_not_delay_exit() {
    let server = Server::lazy("a")
        .script("resources", json!(["r://1"]))
        .script("ignore", "resources/unsubscribe");
    let mut host = Proxy::with([server]).start().into_modern();
    host.call("load_mcp", json!({"mcp_name": "a"})).await;
    let stream = host.listen(json!({"resourceSubscriptions": ["r://1"]})).await;
    host.0.notify("notifications/cancelled", json!({"requestId": stream})).await;
    host.0.server_noted("a", "resources/unsubscribe").await;
    assert_eq!(host.0.end().await, Some(0));
}

#[tokio::test]
async fn params_and_refusals_of_subscriptions_pass_through() {
    let server = Server::lazy("a")
        .script("resources", json!(["r://1"]))
        .script("refuse", "resources/unsubscribe");
    let mut host = Proxy::with([server]).serve().await;
    host.load("a").await;
    host.request("resources/subscribe", json!({"uri": "r://1", "_meta": {"x": 1}, "new": 2})).await;
    host.server_noted("a", "resources/subscribe {\"uri\":\"r://1\",\"_meta\":{\"x\":1},\"new\":2}")
        .await;
    let refused = host.ask("resources/unsubscribe", json!({"uri": "r://1"})).await;
    assert_eq!(refused["error"]["message"], "told to refuse resources/unsubscribe");
}

#[tokio::test]
async fn single_server_is_asked_for_unlisted_items() {
    let mut host = Proxy::wrapping(&json!({})).serve().await;
    host.tool_names().await;
    let read = host.request("resources/read", json!({"uri": "unlisted://x"})).await;
    assert!(read["contents"].is_array());
    let missing = host.ask("resources/read", json!({"uri": "unlisted://missing"})).await;
    assert_eq!(missing["error"]["message"], "no resources/read");
    assert!(host.request("prompts/get", json!({"name": "unlisted"})).await["messages"].is_array());
}

#[tokio::test]
async fn equal_names_are_reported_once() {
    let mut host = Proxy::with(two_servers()).serve().await;
    host.load("one").await;
    host.load("t.w-o").await;
    insta::assert_snapshot!(host.logged_at("WARN", "prompt").await);
    let warnings = host.warnings();
    let reported: Vec<&String> =
        warnings.iter().filter(|line| line.contains("r://shared")).collect();
    assert_eq!(reported.len(), 1, "{warnings:#?}");
}

#[tokio::test]
async fn streams_to_one_resource_end_separately() {
    let mut host = Proxy::with([Server::lazy("a").script("resources", json!(["r://1"]))])
        .start()
        .into_modern();
    host.call("load_mcp", json!({"mcp_name": "a"})).await;
    let first = host.listen(json!({"resourceSubscriptions": ["r://1"]})).await;
    let second = host.listen(json!({"resourceSubscriptions": ["r://1"]})).await;
    host.0.notify("notifications/cancelled", json!({"requestId": first})).await;
    let update = json!({"method": "notifications/resources/updated", "params": {"uri": "r://1"}});
    host.call("use_tool", json!({"tool_name": "a/send", "tool_input": update})).await;
    let told = host.0.notification("notifications/resources/updated").await;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], second);
    assert!(!host.0.server_log("a").iter().any(|line| line.starts_with("resources/unsubscribe")));
    host.0.notify("notifications/cancelled", json!({"requestId": second})).await;
    host.0.server_noted("a", "resources/unsubscribe").await;
}
