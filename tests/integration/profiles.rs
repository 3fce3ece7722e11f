//! Profiles: the servers and tools that hosts see of a config.

use serde_json::{Value, json};

use crate::support::{Proxy, Server, eventually, http_client, is_alive, text_of};

fn proxy() -> Proxy {
    let profiles = json!({"p": {"servers": {"a": ["echo", "s*"], "c": null}}});
    Proxy::with([Server::eager("a"), Server::eager("b"), Server::lazy("c")])
        .set("surface", "direct")
        .set("profiles", profiles)
        .argument("--profile")
        .argument("p")
}

#[tokio::test]
async fn hosts_see_only_the_servers_and_tools_of_the_profile() {
    let mut host = proxy().serve().await;
    let names = host.tool_names().await;
    assert!(names.contains(&"a__echo".to_owned()) && names.contains(&"a__slow".to_owned()));
    assert!(names.iter().all(|name| !name.starts_with("b__")), "{names:?}");
    assert!(!names.contains(&"a__ask".to_owned()), "{names:?}");
    assert!(host.call("a__echo", json!({})).await["isError"].is_null());
    let refused = [
        host.call("a__ask", json!({})).await,
        host.call("b__echo", json!({})).await,
        host.use_tool("b/echo", json!({})).await,
        host.load("b").await,
    ];
    insta::assert_snapshot!(refused.each_ref().map(text_of).join("\n"));
    host.load("c").await;
    assert!(host.call("c__slow", json!({})).await["isError"].is_null(), "all tools of c");
    assert!(host.started("b").is_empty(), "an eager server outside of the profile");
}

#[tokio::test]
async fn endpoints_of_single_servers_obey_the_profile() {
    let program = proxy().start_http();
    let mut host = program.host("/servers/a/mcp").await;
    host.initialize(json!({})).await;
    let names = host.tool_names().await;
    assert!(names.contains(&"echo".to_owned()) && !names.contains(&"ask".to_owned()), "{names:?}");
    let refused = host.call("ask", json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let url = program.url("/servers/b/mcp").await;
    let outside = http_client().post(url).header("content-type", "application/json");
    let outside = outside.body(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#);
    assert_eq!(outside.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn changed_profile_takes_effect_at_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("dormouse.json");
    let edit = |servers: Value| {
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config["profiles"]["p"]["servers"] = servers;
        let fresh = home.path().join("fresh");
        std::fs::write(&fresh, config.to_string()).unwrap();
        std::fs::rename(fresh, &path).unwrap();
    };
    let mut host = proxy().at_home(home.path()).serve().await;
    host.tool_names().await;
    let a = host.started("a");

    edit(json!({"a": null, "b": ["echo"]}));
    host.notification("notifications/tools/list_changed").await;
    eventually("b is started", || host.started("b").len() == 1).await;
    host.logged("awake server=\"b\"").await;
    let names = host.tool_names().await;
    assert!(names.contains(&"a__ask".to_owned()) && names.contains(&"b__echo".to_owned()));
    assert!(!names.contains(&"b__ask".to_owned()), "{names:?}");
    assert_eq!(host.started("a"), a, "the server keeps its process");

    let b = host.started("b");
    edit(json!({"a": null}));
    eventually("b has ended", || b.iter().all(|process| !is_alive(*process))).await;
    let refused = host.call("b__echo", json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");

    edit(json!({"a": ["echo"]}));
    eventually("the config is reloaded", || host.reloads().len() == 3).await;
    let outcome = |line: &String| line[line.find("added=").unwrap()..].to_owned();
    insta::assert_snapshot!(host.reloads().iter().map(outcome).collect::<Vec<_>>().join("\n"));
}
