//! Profiles: the servers and tools that hosts see of a config.

use serde_json::{Value, json};

use crate::support::{Host, Program, Proxy, Server, eventually, http_client, is_alive, text_of};

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

/// Returns a dormouse over HTTP whose profiles have one server each.
fn several() -> Proxy {
    let profiles = json!({
        "p": {"servers": {"a": ["echo"]}},
        "q": {"servers": {"b": null, "c": ["slow"]}, "surface": "direct"},
    });
    Proxy::with([
        Server::eager("a"),
        Server::eager("b"),
        Server::eager("c").set("startup", "hybrid"),
    ])
    .set("profiles", profiles)
}

async fn chosen(program: &Program, path: &str, headers: &[(&str, &str)]) -> Host {
    let mut host = Host::over_http(&program.url(path).await, headers);
    host.initialize(json!({})).await;
    host
}

#[tokio::test]
async fn sessions_at_once_have_the_profiles_that_they_choose() {
    let program = several().start_http();
    let mut p = chosen(&program, "/mcp?profile=p&surface=direct", &[]).await;
    let mut q = chosen(&program, "/mcp", &[("dormouse-profile", "q")]).await;
    let mut all = chosen(&program, "/mcp?surface=direct", &[]).await;
    let listed = [p.tool_names().await, q.tool_names().await, all.tool_names().await];
    let has = listed.each_ref().map(|names| {
        ["a__echo", "a__slow", "b__echo", "c__echo", "c__slow"]
            .map(|name| names.contains(&name.to_owned()))
    });
    assert_eq!(has[0], [true, false, false, false, false], "{listed:?}");
    assert_eq!(has[1], [false, false, true, false, true], "{listed:?}");
    assert_eq!(has[2], [true; 5], "{listed:?}");
    for (host, own, others) in
        [(&mut p, "a__echo", ["b__echo", "a__slow"]), (&mut q, "b__echo", ["a__echo", "c__echo"])]
    {
        assert!(host.call(own, json!({})).await["isError"].is_null(), "{own}");
        for tool in others {
            assert_eq!(host.call(tool, json!({})).await["isError"], true, "{tool}");
            let used = host.use_tool(&tool.replace("__", "/"), json!({})).await;
            assert_eq!(used["isError"], true, "{tool}");
        }
    }
    assert_eq!(q.load("a").await["isError"], true);
}

#[tokio::test]
async fn query_precedes_the_header_and_the_first_request_decides_for_a_session() {
    let program = several().start_http();
    let mut host = chosen(&program, "/mcp?profile=q", &[("dormouse-profile", "p")]).await;
    assert!(host.tool_names().await.contains(&"b__echo".to_owned()));
    let session = host.http().session().unwrap();
    for path in ["/mcp?profile=p", "/mcp"] {
        let listed = http_client()
            .post(program.url(path).await)
            .header("content-type", "application/json")
            .header("mcp-session-id", &session)
            .body(r#"{"jsonrpc": "2.0", "id": 9, "method": "tools/list"}"#);
        let listed = listed.send().await.unwrap().text().await.unwrap();
        assert!(listed.contains("b__echo") && !listed.contains("a__echo"), "{listed}");
    }
}

#[tokio::test]
async fn hosts_without_sessions_and_of_http_sse_choose_profiles() {
    let program = several().start_http();
    let mut modern = program.modern("/mcp?profile=q").await;
    let listed = modern.request("tools/list", json!({})).await.to_string();
    assert!(listed.contains("b__echo") && !listed.contains("a__echo"), "{listed}");
    let mut other = program.modern("/mcp?profile=p&surface=direct").await;
    let listed = other.request("tools/list", json!({})).await.to_string();
    assert!(listed.contains("a__echo") && !listed.contains("b__echo"), "{listed}");
    let mut sse = program.sse_host("/sse?profile=q").await;
    sse.initialize(json!({})).await;
    let names = sse.tool_names().await;
    assert!(names.contains(&"b__echo".to_owned()) && !names.contains(&"a__echo".to_owned()));
    let mut alone = chosen(&program, "/servers/c/mcp?profile=q", &[]).await;
    let names = alone.tool_names().await;
    assert!(names.contains(&"slow".to_owned()) && !names.contains(&"echo".to_owned()), "{names:?}");
}

#[tokio::test]
async fn unknown_profiles_are_refused() {
    let program = several().start_http();
    let answer = async |path: &str, headers: &[(&str, &str)]| {
        let post = http_client().post(program.url(path).await);
        let post = post.header("content-type", "application/json");
        let post = headers.iter().fold(post, |post, (name, value)| post.header(*name, *value));
        let answer = post.body(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#).send().await;
        let answer = answer.unwrap();
        format!("{} {}", answer.status().as_u16(), answer.text().await.unwrap())
    };
    let answers = [
        answer("/mcp?profile=x", &[]).await,
        answer("/servers/a/mcp", &[("dormouse-profile", "x")]).await,
        answer("/servers/a/mcp?profile=q", &[]).await,
    ];
    let get = http_client().get(program.url("/sse?profile=").await).send().await.unwrap();
    assert_eq!(get.status(), 400);
    let on_command_line = several().argument("--profile").argument("x").start().exit().await;
    assert_eq!(on_command_line, Some(2));
    insta::assert_snapshot!(answers.join("\n"));
}

#[tokio::test]
async fn profile_of_a_url_starts_the_servers_that_the_default_lacks() {
    let program = several().argument("--profile").argument("p").start_http();
    let mut default = chosen(&program, "/mcp?surface=direct", &[]).await;
    let names = default.tool_names().await;
    assert!(names.contains(&"a__echo".to_owned()) && !names.contains(&"b__echo".to_owned()));
    assert!(program.started("b").is_empty() && program.started("c").is_empty());
    let mut q = chosen(&program, "/mcp?profile=q", &[]).await;
    let names = q.tool_names().await;
    assert!(names.contains(&"b__echo".to_owned()), "the first list waits: {names:?}");
    assert!(names.contains(&"c__slow".to_owned()), "{names:?}");
    assert!(q.call("b__echo", json!({})).await["isError"].is_null());
    assert!(q.call("c__slow", json!({})).await["isError"].is_null());
    assert_eq!(default.call("b__echo", json!({})).await["isError"], true);
    assert_eq!(program.started("b").len(), 1);
    assert_eq!(program.started("a").len(), 1);
}

#[tokio::test]
async fn only_a_host_that_is_served_starts_the_servers_of_its_profile() {
    let program = several().argument("--profile").argument("p").start_http();
    let mut default = chosen(&program, "/mcp?surface=direct", &[]).await;
    default.tool_names().await;
    let url = program.url("/mcp?profile=q").await;
    let client = reqwest::Client::new();
    let refused = [client.get(&url).send().await, client.post(&url).body("{").send().await];
    for response in refused {
        assert!(response.unwrap().status().is_client_error());
    }
    default.tool_names().await;
    assert!(program.started("b").is_empty() && program.started("c").is_empty());
}

#[tokio::test]
async fn option_precedes_the_variable_and_surfaces_of_hosts_precede_those_of_profiles() {
    let tools = async |proxy: Proxy| proxy.serve().await.tool_names().await;
    let by_variable = |name: &str| several().environment("DORMOUSE_PROFILE", name);
    let names = tools(by_variable("q")).await;
    assert!(names.contains(&"b__echo".to_owned()) && !names.contains(&"a__echo".to_owned()));
    let names = tools(by_variable("q").argument("--profile").argument("p")).await;
    assert!(names.contains(&"use_tool".to_owned()), "the surface of the config: {names:?}");
    let names = tools(by_variable("q").argument("--surface").argument("activate")).await;
    assert!(!names.contains(&"use_tool".to_owned()), "{names:?}");
    let names = tools(by_variable("").set("surface", "direct")).await;
    assert!(names.contains(&"a__slow".to_owned()), "an empty variable: {names:?}");
    assert_eq!(by_variable("x").start().exit().await, Some(2));
}

#[tokio::test]
async fn reload_starts_the_servers_of_chosen_profiles() {
    let home = tempfile::tempdir().unwrap();
    let program = several().argument("--profile").argument("p").at_home(home.path()).start_http();
    let mut q = chosen(&program, "/mcp?profile=q", &[]).await;
    assert!(q.tool_names().await.contains(&"b__echo".to_owned()));
    let b = program.started("b");

    let path = home.path().join("dormouse.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["profiles"]["q"]["servers"] = json!({"a": ["slow"], "b": []});
    let fresh = home.path().join("fresh");
    std::fs::write(&fresh, config.to_string()).unwrap();
    std::fs::rename(fresh, &path).unwrap();
    eventually("the config is reloaded", || !program.reloads().is_empty()).await;
    let names = q.tool_names().await;
    let has =
        ["a__slow", "a__echo", "b__echo", "c__slow"].map(|name| names.contains(&name.to_owned()));
    assert_eq!(has, [true, false, true, false], "{names:?}");
    assert_eq!(program.started("b"), b, "the server keeps its process");
}
