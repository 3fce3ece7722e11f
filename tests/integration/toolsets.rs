//! Toolsets: named parts of a server's tools, which are listed, searched and loaded one by one.

use serde_json::{Value, json};

use crate::support::{Home, Host, Proxy, Server, USER_CONFIG, eventually, text_of};

/// The subjects of the tools of `github`, next to the 18 tools of every fixture.
const SUBJECTS: [&str; 4] = ["issue", "pull", "repository", "workflow"];
/// The verbs of each subject.
const VERBS: [&str; 12] = [
    "list", "get", "create", "update", "close", "reopen", "lock", "assign", "label", "comment",
    "move", "watch",
];

/// A server with 66 tools.
fn github() -> Server {
    let tools = SUBJECTS.iter().flat_map(|subject| {
        VERBS.iter().map(move |verb| {
            json!({
                "name": format!("{verb}_{subject}"),
                "description": format!("Can {verb} a {subject} of a repository on the forge."),
                "inputSchema": {"type": "object", "properties": {
                    "owner": {"type": "string", "description": "The owner of the repository"},
                    "name": {"type": "string", "description": "The name of the repository"},
                    "number": {"type": "integer", "description": format!("The {subject}'s number")},
                }, "required": ["owner", "name"]},
            })
        })
    });
    Server::lazy("github").script("definitions", tools.collect::<Vec<_>>())
}

fn toolsets() -> Value {
    json!({
        "issues": {"tools": ["*_issue"], "description": "Reads and changes issues"},
        "pulls": {"tools": ["*_pull"], "description": "Reads and changes pull requests"},
        "triage": {"tools": ["list_*", "get_*", "label_issue"]},
    })
}

fn divided() -> Server {
    github().set("toolsets", toolsets())
}

async fn host_of(server: Server, surface: &str) -> Host {
    Proxy::with([server]).set("surface", surface).set("settle", 0).serve().await
}

/// Returns the number of tools and of bytes of the host's tool list.
async fn size(host: &mut Host) -> (usize, usize) {
    let list = host.request("tools/list", json!({})).await;
    (list["tools"].as_array().unwrap().len(), list.to_string().len())
}

/// Loads an offer in the way of the surface.
async fn load(host: &mut Host, surface: &str, name: &str) -> Value {
    match surface {
        "activate" => host.call(&format!("activate_{}", name.replace('/', "_")), json!({})).await,
        "groups" => host.call("get_dynamic_tools", json!({"group": name})).await,
        _ => host.load(name).await,
    }
}

async fn listed_twice(host: &mut Host) -> Vec<String> {
    let mut names = host.tool_names().await;
    names.sort();
    let twice = names.windows(2).filter(|pair| pair[0] == pair[1]);
    twice.map(|pair| pair[0].clone()).collect()
}

#[tokio::test]
async fn loaded_toolset_lists_its_tools_only() {
    let mut measured = Vec::new();
    for surface in ["discover", "activate", "groups"] {
        for (loaded, tools) in [("github/issues", 12), ("github", 66)] {
            let mut host = host_of(divided(), surface).await;
            let before = size(&mut host).await;
            let result = load(&mut host, surface, loaded).await;
            assert!(result["isError"].is_null(), "{result}");
            let after = size(&mut host).await;
            let names = host.tool_names().await;
            let own = names.iter().filter(|name| name.starts_with("github__")).count();
            assert_eq!(own, if surface == "activate" { tools } else { 0 }, "{names:?}");
            assert_eq!(listed_twice(&mut host).await, [""; 0]);
            let report = text_of(&result).len();
            measured.push(format!(
                "{surface}, {loaded}: {before:?} -> {after:?}, report of {report} bytes"
            ));
        }
    }
    insta::assert_snapshot!("sizes", measured.join("\n"));
}

#[tokio::test]
async fn lists_name_the_whole_server_and_its_toolsets() {
    let mut shown = Vec::new();
    let mut host = host_of(divided(), "discover").await;
    shown.push(host.description().await);
    shown.push(text_of(&host.call("discover_tool", json!({})).await).to_owned());
    host.load("github/issues").await;
    shown.push(host.description().await);
    host.load("github").await;
    let whole = host.description().await;
    assert!(!whole.contains("github/"), "{whole}");
    let mut host = host_of(divided(), "activate").await;
    let list = host.request("tools/list", json!({})).await;
    let tools = list["tools"].as_array().unwrap().iter();
    shown.extend(tools.map(|tool| format!("{}: {}", tool["name"], tool["description"])));
    let mut host = host_of(divided(), "groups").await;
    let list = host.request("tools/list", json!({})).await;
    shown.push(list["tools"][0]["description"].as_str().unwrap().to_owned());
    insta::assert_snapshot!("lists", shown.join("\n\n"));
}

#[tokio::test]
async fn reports_say_how_much_of_the_server_is_loaded() {
    let mut host = host_of(divided(), "discover").await;
    let report = host.load("github/issues").await["structuredContent"].clone();
    assert_eq!(report["mcp_name"], "github/issues");
    assert_eq!(report["tools"].as_array().unwrap().len(), 12);
    assert_eq!(report["tools"][0]["name"], "github/list_issue");
    let mut notes = vec![report["note"].as_str().unwrap().to_owned()];
    host.load("github/pulls").await;
    let again = host.load("github/issues").await;
    notes.push(again["structuredContent"]["note"].as_str().unwrap().to_owned());
    for surface in ["activate", "groups"] {
        let mut host = host_of(divided(), surface).await;
        let result = load(&mut host, surface, "github/triage").await;
        notes.push(result["content"][1]["text"].as_str().unwrap().to_owned());
    }
    assert_eq!(host.started("github").len(), 1, "one connection serves all toolsets");
    insta::assert_snapshot!(notes.join("\n"));
}

#[tokio::test]
async fn every_name_of_a_tool_reaches_it_and_loads_the_smallest_toolset() {
    let names =
        ["github/lock_issue", "github/issues/lock_issue", "github__lock_issue", "lock_issue"];
    for name in names {
        let mut host = host_of(divided(), "activate").await;
        // The first connection has shown what the server has.
        host.load("github/pulls").await;
        let result = host.use_tool(name, json!({})).await;
        assert!(result["isError"].is_null(), "{name}: {result}");
        let names = host.tool_names().await;
        assert!(names.contains(&"github__close_issue".to_owned()), "{name}: {names:?}");
        assert!(!names.contains(&"github__list_repository".to_owned()), "{name}: {names:?}");
        // The toolset `triage` has this tool, and no other one.
        host.use_tool("github/list_workflow", json!({})).await;
        assert!(!host.tool_names().await.contains(&"github__close_workflow".to_owned()));
        // No toolset has this tool, so that the whole server is loaded.
        let result = host.use_tool("github/close_workflow", json!({})).await;
        assert!(result["isError"].is_null(), "{result}");
        assert_eq!(listed_twice(&mut host).await, [""; 0]);
        let refused = host.use_tool("github/issues/close_workflow", json!({})).await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(host.started("github").len(), 1);
    }
}

#[tokio::test]
async fn call_of_a_tool_in_two_toolsets_loads_the_smaller_one() {
    let mut host = host_of(divided(), "activate").await;
    host.load("github/pulls").await;
    assert!(host.use_tool("github/list_issue", json!({})).await["isError"].is_null());
    let names = host.tool_names().await;
    assert!(names.contains(&"github__list_workflow".to_owned()), "triage is loaded: {names:?}");
    assert!(!names.contains(&"github__close_issue".to_owned()), "issues is not: {names:?}");
}

#[tokio::test]
async fn failed_load_has_no_effect_on_a_later_one() {
    let home = tempfile::tempdir().unwrap();
    let broken = home.path().join("broken");
    std::fs::write(&broken, "").unwrap();
    let server = divided().after(&format!("[ -e {} ] && exit 1", broken.display()));
    let mut host = host_of(server, "activate").await;
    assert_eq!(host.call("activate_github", json!({})).await["isError"], true);
    std::fs::remove_file(&broken).unwrap();
    assert!(host.call("activate_github_issues", json!({})).await["isError"].is_null());
    let names = host.tool_names().await;
    let own = names.iter().filter(|name| name.starts_with("github__"));
    assert_eq!(own.count(), 12, "{names:?}");
}

#[tokio::test]
async fn unknown_tool_of_a_loaded_server_is_not_looked_for_in_others() {
    let mut host = host_of(divided(), "discover").await;
    host.load("github").await;
    let proxy = Proxy::with([divided(), Server::lazy("other")]).set("settle", 0);
    let mut two = proxy.serve().await;
    two.load("github").await;
    for host in [&mut host, &mut two] {
        let unknown = host.use_tool("github/qqqq", json!({})).await;
        assert_eq!(text_of(&unknown), "Unknown tool: \"github/qqqq\"");
    }
    let elsewhere = two.use_tool("qqqq", json!({})).await;
    assert!(text_of(&elsewhere).ends_with("may have it: other"), "{elsewhere}");
    let mut host = host_of(divided(), "discover").await;
    host.load("github/issues").await;
    let unknown = host.use_tool("github/qqqq", json!({})).await;
    assert_eq!(text_of(&unknown), "Unknown tool: \"github/qqqq\"", "its whole list is known");
}

#[tokio::test]
async fn a_listed_name_stays_when_another_toolset_is_loaded() {
    let mut host = host_of(divided(), "activate").await;
    for loaded in ["triage", "issues", "pulls"] {
        host.call(&format!("activate_github_{loaded}"), json!({})).await;
        let names = host.tool_names().await;
        let copies = names.iter().filter(|name| *name == "github__list_issue").count();
        assert_eq!(copies, 1, "{loaded}: {names:?}");
    }
}

#[tokio::test]
async fn an_activate_tool_never_has_the_name_of_another() {
    let other = Server::lazy("github_issues");
    let proxy = Proxy::with([divided(), other]).set("surface", "activate").set("settle", 0);
    let mut host = proxy.serve().await;
    let names = host.tool_names().await;
    assert_eq!(listed_twice(&mut host).await, [""; 0]);
    let of_toolset = names.iter().find(|name| {
        name.starts_with("activate_github_issues") && *name != "activate_github_issues"
    });
    host.call(of_toolset.unwrap(), json!({})).await;
    assert!(host.started("github_issues").is_empty());
    assert!(host.tool_names().await.contains(&"github__list_issue".to_owned()));
}

#[tokio::test]
async fn search_finds_a_tool_once_and_names_the_toolset_to_load() {
    let mut host = host_of(divided(), "discover").await;
    host.load("github/pulls").await;
    let find =
        |query: &str, server: &str| json!({"query": query, "server": server, "detail": "brief"});
    let found = host.call("discover_tool", find("close issue", "")).await;
    let found: Value = serde_json::from_str(text_of(&found)).unwrap();
    let close: Vec<&Value> =
        found.as_array().unwrap().iter().filter(|it| it["name"] == "github/close_issue").collect();
    assert_eq!(close.len(), 1, "{found}");
    assert_eq!(close[0]["toolset"], "github/issues");
    let within = host.call("discover_tool", find("close", "github/pulls")).await;
    let within: Value = serde_json::from_str(text_of(&within)).unwrap();
    let names: Vec<&Value> = within.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("github/close_pull")), "{names:?}");
    assert!(names.iter().all(|name| name.as_str().unwrap().ends_with("_pull")), "{names:?}");
    assert!(within[0]["toolset"].is_null(), "it is loaded: {within}");
}

#[tokio::test]
async fn groups_call_a_tool_under_each_of_its_names() {
    let mut host = host_of(divided(), "groups").await;
    for name in ["get_pull", "github/get_pull", "github/pulls/get_pull"] {
        let call = json!({"group": "github/pulls", "name": name, "args": {}});
        let result = host.call("call_dynamic_tool", call).await;
        assert!(result["isError"].is_null(), "{name}: {result}");
    }
    let call = json!({"group": "github/pulls", "name": "get_issue"});
    assert_eq!(host.call("call_dynamic_tool", call).await["isError"], true);
}

#[tokio::test]
async fn direct_lists_every_tool_once() {
    let mut host = host_of(divided().set("startup", "eager"), "direct").await;
    assert_eq!(size(&mut host).await.0, 66);
    assert_eq!(listed_twice(&mut host).await, [""; 0]);
}

#[tokio::test]
async fn denied_tool_is_not_reached_through_a_toolset() {
    // By the list that has the rule: that of the file, a profile, or the entry of the server.
    let denials = [
        ("file", "github/close_issue"),
        ("file", "github/issues/close_issue"),
        ("file", "github/issues/cl*"),
        ("profile", "github/issues/close_issue"),
        ("entry", "issues/close_issue"),
        ("entry", "issues/cl*"),
        ("entry", "close_issue"),
    ];
    for (list, denied) in denials {
        let rules = json!([{"tools": denied, "then": "deny"}]);
        let proxy = match list {
            "file" => Proxy::with([divided()]).set("policy", rules),
            "profile" => Proxy::with([divided()])
                .set("profiles", json!({"p": {"servers": {"github": null}, "policy": rules}}))
                .argument("--profile")
                .argument("p"),
            _ => Proxy::with([divided().set("policy", rules)]),
        };
        let mut host = proxy.set("settle", 0).serve().await;
        host.load("github/issues").await;
        let names = [
            "github/close_issue",
            "github/issues/close_issue",
            "github__close_issue",
            "close_issue",
            "github/issues/github/close_issue",
        ];
        for name in names {
            let result = host.use_tool(name, json!({})).await;
            assert_eq!(result["isError"], true, "{list}, {denied}, {name}: {result}");
        }
        let call = json!({"group": "github/issues", "name": "close_issue"});
        assert_eq!(host.call("call_dynamic_tool", call).await["isError"], true);
        let calls = host.server_log("github");
        assert!(
            calls.iter().all(|line| !line.starts_with("tools/call")),
            "{list}, {denied}: {calls:?}"
        );
        let allowed = host.use_tool("github/issues/get_issue", json!({})).await;
        assert!(allowed["isError"].is_null(), "{list}, {denied}: {allowed}");
    }
}

#[tokio::test]
async fn disabled_tool_is_in_no_toolset() {
    let mut host = host_of(divided().set("tools", json!({"get_*": false})), "activate").await;
    host.call("activate_github_issues", json!({})).await;
    let names = host.tool_names().await;
    assert!(!names.contains(&"github__get_issue".to_owned()), "{names:?}");
    let refused = host.use_tool("github/issues/get_issue", json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
}

#[tokio::test]
async fn resources_and_prompts_appear_once_with_any_toolset() {
    let server = divided().script("resources", json!(["r://1"])).script("prompts", json!(["p"]));
    let mut host = host_of(server, "activate").await;
    let mut seen = Vec::new();
    for loaded in ["", "_issues", "_pulls", ""] {
        if !seen.is_empty() {
            host.call(&format!("activate_github{loaded}"), json!({})).await;
        }
        let resources = host.request("resources/list", json!({})).await;
        let prompts = host.request("prompts/list", json!({})).await;
        let count = |list: &Value| list.as_array().unwrap().len();
        seen.push((count(&resources["resources"]), count(&prompts["prompts"])));
    }
    assert_eq!(seen, [(0, 0), (1, 1), (1, 1), (1, 1)]);
    let told = host.notifications();
    let of_resources = told.iter().filter(|it| it.contains("resources/list_changed")).count();
    assert_eq!(of_resources, 1, "{told:?}");
}

#[tokio::test]
async fn remembered_toolset_is_loaded_as_the_toolset() {
    let home = tempfile::tempdir().unwrap();
    let proxy = || {
        let proxy = Proxy::with([divided()]).at_home(home.path()).set("rememberLoads", true);
        proxy.set("surface", "activate").set("settle", 0)
    };
    let mut host = proxy().serve().await;
    host.call("activate_github_issues", json!({})).await;
    let kept = home.path().join("data/dormouse/loads");
    eventually("it is remembered", || kept.exists()).await;
    assert_eq!(host.end().await, Some(0));
    let mut host = proxy().serve().await;
    let own = |names: Vec<String>| names.iter().filter(|it| it.starts_with("github__")).count();
    assert_eq!(own(host.tool_names().await), 12);
}

#[tokio::test]
async fn sessions_load_their_own_toolsets() {
    let proxy = Proxy::with([divided()]).set("loads", "session").set("surface", "activate");
    let program = proxy.set("settle", 0).start_http();
    let mut hosts = Vec::new();
    for loaded in ["activate_github_issues", "activate_github_pulls"] {
        let mut host = program.host("/mcp").await;
        host.initialize(json!({})).await;
        host.call(loaded, json!({})).await;
        hosts.push(host);
    }
    for (host, (own, other)) in hosts.iter_mut().zip([("issue", "pull"), ("pull", "issue")]) {
        let names = host.tool_names().await;
        assert!(names.contains(&format!("github__list_{own}")), "{names:?}");
        assert!(!names.contains(&format!("github__list_{other}")), "{names:?}");
    }
    assert_eq!(program.started("github").len(), 1);
}

#[tokio::test]
async fn profile_of_a_toolset_hides_the_rest_of_the_server() {
    let profiles = json!({"p": {"servers": {"github/issues": null}},
        "q": {"servers": {"github/issues": ["list_*"], "github/pulls": null}}});
    let proxy = |surface: &str, profile: &str| {
        let proxy = Proxy::with([divided()]).set("surface", surface).set("settle", 0);
        proxy.set("profiles", profiles.clone()).argument("--profile").argument(profile)
    };
    let mut host = proxy("discover", "p").serve().await;
    let before = host.description().await;
    assert!(before.contains("- github/issues") && !before.contains("- github:"), "{before}");
    let report = host.load("github/issues").await;
    assert!(!report.to_string().contains("66"), "{report}");
    for name in ["github/list_pull", "github__list_pull", "list_pull", "github/issues/list_pull"] {
        let refused = host.use_tool(name, json!({})).await;
        assert_eq!(refused["isError"], true, "{name}: {refused}");
    }
    assert_eq!(host.load("github").await["isError"], true);
    for name in ["github/list_issue", "github/issues/list_issue", "list_issue"] {
        assert!(host.use_tool(name, json!({})).await["isError"].is_null(), "{name}");
    }
    let find = json!({"query": "github/list_issue", "detail": "brief"});
    let found: Value =
        serde_json::from_str(text_of(&host.call("discover_tool", find).await)).unwrap();
    assert_eq!(found[0]["name"], "github/list_issue", "the name that hosts are shown: {found}");
    let mut host = proxy("activate", "q").serve().await;
    host.call("activate_github_issues", json!({})).await;
    host.call("activate_github_pulls", json!({})).await;
    let names = host.tool_names().await;
    let own = names.iter().filter(|name| name.starts_with("github__"));
    assert_eq!(own.count(), 13, "{names:?}");
}

#[tokio::test]
async fn profile_of_a_server_and_its_toolset_shows_the_tools_of_both() {
    let profiles = json!({"p": {"servers": {"github": ["get_*"], "github/issues": ["list_*"]}}});
    let proxy = |surface: &str| {
        let proxy = Proxy::with([divided()]).set("surface", surface).set("settle", 0);
        proxy.set("profiles", profiles.clone()).argument("--profile").argument("p")
    };
    let mut host = proxy("activate").serve().await;
    host.call("activate_github", json!({})).await;
    let names = host.tool_names().await;
    let has = |name: &str| names.contains(&format!("github__{name}"));
    assert!(has("get_issue") && has("get_pull") && has("list_issue"), "{names:?}");
    assert!(!has("list_pull") && !has("label_issue"), "{names:?}");
    let mut host = proxy("activate").serve().await;
    host.call("activate_github_issues", json!({})).await;
    let names = host.tool_names().await;
    let own = names.iter().filter(|name| name.starts_with("github__"));
    assert_eq!(own.collect::<Vec<_>>(), ["github__list_issue"], "{names:?}");
}

#[tokio::test]
async fn endpoint_of_a_server_shows_the_whole_server() {
    let program = Proxy::with([divided()]).start_http();
    let mut host = program.host("/servers/github/mcp").await;
    host.initialize(json!({})).await;
    assert_eq!(host.tool_names().await.len(), 66);
    assert_eq!(listed_twice(&mut host).await, [""; 0]);
}

#[tokio::test]
async fn changed_toolsets_take_effect_without_a_new_connection() {
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([divided()]).at_home(home.path()).set("surface", "activate");
    let mut host = proxy.set("settle", 0).serve().await;
    host.call("activate_github_issues", json!({})).await;
    let edit = |toolsets: Value| {
        let path = home.path().join("dormouse.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config["mcpServers"]["github"]["toolsets"] = toolsets;
        let fresh = home.path().join("fresh");
        std::fs::write(&fresh, config.to_string()).unwrap();
        std::fs::rename(fresh, path).unwrap();
    };
    let own = |names: &[String]| names.iter().filter(|it| it.starts_with("github__")).count();
    let steps = [
        (json!({"issues": {"tools": ["list_issue", "get_issue"]}}), 2, 2),
        (json!({"more": {"tools": ["*_pull"]}, "issues": {"tools": ["*_issue"]}}), 12, 3),
        (json!({"more": {"tools": ["*_pull"]}}), 0, 2),
        (json!({"issues": {"tools": ["*_issue"]}}), 0, 2),
    ];
    for (before, (toolsets, tools, activates)) in steps.into_iter().enumerate() {
        edit(toolsets);
        eventually("it has reloaded", || host.reloads().len() > before).await;
        let names = host.tool_names().await;
        assert_eq!(own(&names), tools, "{names:?}");
        let count = names.iter().filter(|name| name.starts_with("activate_")).count();
        assert_eq!(count, activates, "{names:?}");
    }
    host.call("activate_github_issues", json!({})).await;
    assert_eq!(own(&host.tool_names().await), 12);
    assert_eq!(host.started("github").len(), 1, "the connection stays");
}

#[tokio::test]
async fn third_failed_load_evicts_the_server_with_its_toolsets() {
    let server = divided().set("command", "/no/such/program");
    let mut host = host_of(server, "activate").await;
    for loaded in ["activate_github_issues", "activate_github_pulls", "activate_github"] {
        assert_eq!(host.call(loaded, json!({})).await["isError"], true);
    }
    assert_eq!(host.tool_names().await, [""; 0]);
}

#[tokio::test]
async fn stable_lists_do_not_change_with_a_load() {
    for surface in ["discover", "activate", "groups", "direct"] {
        let proxy = Proxy::with([divided()]).set("surface", surface).set("listing", "stable");
        let mut host = proxy.set("settle", 0).serve().await;
        let before = host.request("tools/list", json!({})).await;
        let loading = load(&mut host, surface, "github/issues").await;
        assert!(loading["isError"].is_null(), "{surface}: {loading}");
        assert!(host.use_tool("github/list_issue", json!({})).await["isError"].is_null());
        assert!(host.use_tool("github/list_workflow", json!({})).await["isError"].is_null());
        assert_eq!(host.request("tools/list", json!({})).await, before, "{surface}");
    }
}

#[tokio::test]
async fn refresh_proposes_toolsets_and_writes_them_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let entry = github().at(directory.path());
    let entry = entry.to_string();
    let text = format!("{{\n  // The servers.\n  \"mcpServers\": {{\"github\": {entry}}}\n}}\n");
    let home = Home::new().with(USER_CONFIG, &text);
    let (code, printed) = home.run(&["refresh"]).await;
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(home.read(USER_CONFIG), text, "nothing is written");
    let (_, proposal) = printed.split_once("toolsets for").unwrap();
    let (proposal, _) = proposal.split_once("\n  }\n").unwrap();
    insta::assert_snapshot!("proposal", proposal);
    let (code, printed) = home.run(&["refresh", "--write-toolsets", "github"]).await;
    assert!(code == Some(0) && printed.contains("added 4 toolsets"), "{printed}");
    let written = home.read(USER_CONFIG);
    assert!(written.contains("// The servers."), "{written}");
    let (code, printed) = home.run(&["list", "github"]).await;
    assert!(code == Some(0) && printed.contains("toolset issue: 12 tools"), "{printed}");
    let (_, printed) = home.run(&["refresh", "--write-toolsets"]).await;
    assert!(printed.contains("no toolsets to add"), "{printed}");
    assert_eq!(home.read(USER_CONFIG), written);
}

#[tokio::test]
async fn toolset_without_tools_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let toolsets = json!({"typo": {"tools": ["*_isue"]}});
    let entry = github().set("toolsets", toolsets).at(directory.path());
    let config = json!({"mcpServers": {"github": entry}});
    let home = Home::new().with(USER_CONFIG, config.to_string());
    for command in ["test", "status"] {
        let (code, printed) = home.run(&[command]).await;
        let warning = "toolset \"typo\" matches none of its tools";
        assert!(code == Some(0) && printed.contains(warning), "{command}: {printed}");
    }
}

#[tokio::test]
async fn list_that_changes_loads_no_other_toolset() {
    let toolsets = json!({
        "some": {"tools": ["change", "news"], "description": "Some tools"},
        "others": {"tools": ["echo"], "description": "Other tools"},
    });
    let server = Server::lazy("a").set("toolsets", toolsets);
    let mut host = host_of(server, "activate").await;
    load(&mut host, "activate", "a/some").await;
    host.call("a__change", json!({"tools": ["news"]})).await;
    while !host.tool_names().await.contains(&"a__news".to_owned()) {
        host.notification("notifications/tools/list_changed").await;
    }
    let names = host.tool_names().await;
    assert!(!names.contains(&"a__echo".to_owned()), "{names:?}");
}
