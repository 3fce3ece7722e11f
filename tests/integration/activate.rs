//! The `activate` surface, and the delay of a load's result until the host has the new list.

use serde_json::{Value, json};

use crate::support::{Host, Proxy, Server, text_of};

async fn activate(servers: impl IntoIterator<Item = Server>, settle: &str) -> Host {
    Proxy::with(servers).set("surface", "activate").set("settle", settle).serve().await
}

#[tokio::test]
async fn activation_lists_the_tools_and_can_be_repeated() {
    let server = Server::lazy("a.b")
        .script("resources", json!(["r://1"]))
        .script("prompts", json!(["p", "q"]));
    let mut host = activate([server, Server::lazy("c"), Server::eager("d")], "0").await;
    let names = host.tool_names().await;
    assert_eq!(names[..3], ["activate_a_b", "activate_c", "d__echo"]);
    let list = host.request("tools/list", json!({})).await;
    insta::assert_snapshot!("unloaded_server", list["tools"][0]["description"].as_str().unwrap());

    let result = host.call("activate_a_b", json!({})).await;
    let report: Value = serde_json::from_str(text_of(&result)).unwrap();
    for (member, expected) in [
        ("activated", json!(true)),
        ("server", json!("a.b")),
        ("toolCount", json!(18)),
        ("promptCount", json!(2)),
        ("resourceCount", json!(1)),
        ("resourceTemplateCount", json!(0)),
    ] {
        assert_eq!(report[member], expected, "{member}");
    }
    assert_eq!(report["tools"][0], "a_b__echo");
    let names = host.tool_names().await;
    assert_eq!(names[..2], ["activate_a_b", "a_b__echo"]);
    let list = host.request("tools/list", json!({})).await;
    insta::assert_snapshot!("loaded_server", list["tools"][0]["description"].as_str().unwrap());

    assert_eq!(host.call("activate_a_b", json!({})).await, result);
    assert!(host.call("a_b__echo", json!({})).await["isError"].is_null());
    assert!(
        host.call("c__echo", json!({})).await["isError"].is_null(),
        "a tool that is not listed yet is loaded for"
    );
}

#[tokio::test]
async fn evicted_server_loses_its_activate_tool() {
    let mut host = activate(
        [Server::lazy("bad").set("command", "/no/such/program"), Server::lazy("good")],
        "0",
    )
    .await;
    for _ in 0..3 {
        assert_eq!(host.call("activate_bad", json!({})).await["isError"], true);
    }
    assert_eq!(host.tool_names().await, ["activate_good"]);
    assert_eq!(host.notifications(), ["notifications/tools/list_changed"]);
    insta::assert_snapshot!(text_of(&host.call("activate_bad", json!({})).await));
}

#[tokio::test]
async fn load_result_waits_for_the_new_list() {
    let mut host = activate([Server::lazy("a")], "25s").await;
    let load = host.send("tools/call", json!({"name": "activate_a", "arguments": {}})).await;
    host.notification("notifications/tools/list_changed").await;
    host.request("ping", json!({})).await;
    let is_answered =
        |host: &Host| host.received().iter().any(|line| line.contains(&format!("\"id\":{load},")));
    assert!(!is_answered(&host), "the result is held");
    let list = host.send("tools/list", json!({})).await;
    host.answer(load).await;
    let lines = host.received();
    let place = |id: u64| {
        lines.iter().position(|line| line.contains(&format!("\"id\":{id},\"result\""))).unwrap()
    };
    assert!(place(list) < place(load), "the list was written first");
}

#[tokio::test]
async fn list_before_the_load_does_not_end_the_hold() {
    let mut host = activate([Server::lazy("a")], "300ms").await;
    host.tool_names().await;
    let result = host.call("activate_a", json!({})).await;
    assert!(result["isError"].is_null(), "after settle the result comes all the same");
}

#[tokio::test]
async fn always_load_marks_tools_of_loaded_servers() {
    let mut host = Proxy::with([Server::lazy("a"), Server::eager("b")])
        .set("surface", "activate")
        .set("alwaysLoad", "loaded")
        .set("settle", 0)
        .serve()
        .await;
    host.call("activate_a", json!({})).await;
    let list = host.request("tools/list", json!({})).await;
    for tool in list["tools"].as_array().unwrap() {
        let marked = tool["_meta"]["anthropic/alwaysLoad"] == true;
        assert_eq!(marked, !tool["name"].as_str().unwrap().starts_with("b__"), "{tool}");
    }
}
