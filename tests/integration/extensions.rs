//! Extensions of MCP behind one endpoint for many servers: tasks, apps, skills, and methods that
//! dormouse does not know.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Host, ModernHost, Proxy, Server, eventually, text_of};

/// Returns two servers with tasks; the tools `begin` and `finish` start and complete them.
fn with_tasks(is_modern: bool) -> [Server; 2] {
    ["a", "b"].map(|name| {
        Server::eager(name)
            .script("tasks", true)
            .script("modern_only", is_modern)
            .script("ignore", "subscriptions/listen")
            .script("extra_tools", json!(["begin", "finish"]))
    })
}

fn direct(servers: impl IntoIterator<Item = Server>) -> Proxy {
    Proxy::with(servers).argument("--surface").argument("direct")
}

async fn begin(host: &mut Host, tool: &str, id: &str) -> Value {
    let params = json!({"name": tool, "arguments": {"id": id}, "task": {"ttl": 60_000}});
    host.request("tools/call", params).await
}

#[tokio::test]
async fn legacy_tasks_with_equal_ids_are_told_apart() {
    let mut host = direct(with_tasks(false)).start();
    let greeting = host.initialize(json!({})).await;
    assert_eq!(greeting["capabilities"]["tasks"]["requests"], json!({"tools": {"call": {}}}));
    host.tool_names().await;
    let first = begin(&mut host, "a__begin", "t").await;
    let second = begin(&mut host, "b__begin", "t").await;
    assert_eq!(first["task"]["taskId"], "t", "{first}");
    assert_eq!(second["task"]["taskId"], "t-2", "{second}");

    host.call("b__finish", json!({"id": "t"})).await;
    let told = host.notification("notifications/tasks/status").await;
    assert_eq!(
        (&told["params"]["taskId"], &told["params"]["status"]),
        (&json!("t-2"), &json!("completed"))
    );
    let got = host.request("tasks/get", json!({"taskId": "t-2"})).await;
    assert_eq!((&got["taskId"], &got["status"]), (&json!("t-2"), &json!("completed")));
    assert_eq!(host.request("tasks/get", json!({"taskId": "t"})).await["status"], "working");

    let listed = host.request("tasks/list", json!({})).await;
    let ids: Vec<&Value> =
        listed["tasks"].as_array().unwrap().iter().map(|task| &task["taskId"]).collect();
    assert_eq!(ids, [&json!("t"), &json!("t-2")]);

    let result = host.request("tasks/result", json!({"taskId": "t-2"})).await;
    assert_eq!(text_of(&result), "the result of t");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], "t-2");
    assert_eq!(host.request("tasks/cancel", json!({"taskId": "t"})).await["status"], "cancelled");
    let unknown = host.ask("tasks/get", json!({"taskId": "nobody's"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn modern_tasks_are_routed_and_announced() {
    let mut host = direct(with_tasks(true)).start().into_modern();
    let discovered = host.request("server/discover", json!({})).await;
    let declared = &discovered["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!(declared, &json!({}));
    host.request("tools/list", json!({})).await;
    let mut host = TaskHost(host);
    for tool in ["a__begin", "b__begin"] {
        let params = json!({"name": tool, "arguments": {"id": "t"}});
        assert_eq!(host.request("tools/call", params).await["resultType"], "task");
    }
    let refused = host
        .0
        .0
        .send(
            "subscriptions/listen",
            ModernHost::meta(json!({"notifications": {"taskIds": ["t"]}})),
        )
        .await;
    assert_eq!(host.0.0.answer(refused).await["error"]["code"], -32021);
    let filter = json!({"notifications": {"taskIds": ["t-2", "unknown"]}});
    let stream = host.send("subscriptions/listen", filter).await;
    let accepted = host.0.0.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["params"]["notifications"], json!({"taskIds": ["t-2"]}));
    eventually("b is asked to tell", || {
        let log = host.0.0.server_log("b");
        log.iter().any(|line| {
            line.starts_with("subscriptions/listen") && line.contains(r#""taskIds":["t"]"#)
        })
    })
    .await;

    for tool in ["a__finish", "b__finish"] {
        host.request("tools/call", json!({"name": tool, "arguments": {"id": "t"}})).await;
    }
    let told = host.0.0.notification("notifications/tasks").await;
    assert_eq!(told["params"]["taskId"], "t-2", "the other task is not listened to");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], stream);
    let got = host.request("tasks/get", json!({"taskId": "t-2"})).await;
    assert_eq!((&got["taskId"], text_of(&got["result"])), (&json!("t-2"), "the result of t"));
    let updated = host.request("tasks/update", json!({"taskId": "t", "inputResponses": {}})).await;
    assert_eq!(updated["taskId"], Value::Null);
    host.0.0.server_noted("a", r#"tasks/update {"taskId":"t","inputResponses":{}"#).await;
    let of_legacy = host.0.0.ask("tasks/list", ModernHost::meta(json!({}))).await;
    assert_eq!(of_legacy["error"]["code"], -32601);
}

/// A modern host that declares the extension for tasks.
struct TaskHost(ModernHost);

impl TaskHost {
    async fn send(&mut self, method: &str, params: Value) -> u64 {
        let mut params = ModernHost::meta(params);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        self.0.0.send(method, params).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.0.0.answer(id).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }
}

#[tokio::test]
async fn task_keeps_its_server_awake_until_it_is_fetched() {
    let server = Server::lazy("a")
        .script("tasks", true)
        .script("extra_tools", json!(["begin", "finish"]))
        .set("idleTimeout", "1s");
    let mut host = direct([server]).serve().await;
    host.load("a").await;
    begin(&mut host, "a__begin", "t").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(host.request("tasks/get", json!({"taskId": "t"})).await["status"], "working");
    host.call("a__finish", json!({"id": "t"})).await;
    host.request("tasks/result", json!({"taskId": "t"})).await;
    host.server_noted("a", "end of input").await;
}

#[tokio::test]
async fn task_is_unknown_to_other_hosts() {
    let program = direct(with_tasks(false)).start_http();
    let (mut one, mut other) = (program.host("/mcp").await, program.host("/mcp").await);
    one.initialize(json!({})).await;
    other.initialize(json!({})).await;
    one.tool_names().await;
    begin(&mut one, "a__begin", "t").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = other.ask(method, json!({"taskId": "t"})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let listed = other.request("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"], json!([]));
    assert_eq!(one.request("tasks/get", json!({"taskId": "t"})).await["status"], "working");
}

#[tokio::test]
async fn task_of_an_ended_session_stays_with_its_user() {
    let tokens = json!(["one", "two"]);
    let program = direct(with_tasks(false)).set("authTokens", tokens).start_http();
    let url = program.url("/mcp").await;
    let connected = async |token: &str| {
        let mut host = Host::over_http(&url, &[("authorization", &format!("Bearer {token}"))]);
        host.initialize(json!({})).await;
        host
    };
    let (mut first, mut stranger) = (connected("one").await, connected("two").await);
    first.tool_names().await;
    begin(&mut first, "a__begin", "t").await;
    first.http().delete().await;
    assert_eq!(stranger.request("tasks/list", json!({})).await["tasks"], json!([]));
    let refused = stranger.ask("tasks/get", json!({"taskId": "t"})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let mut again = connected("one").await;
    assert_eq!(again.request("tasks/get", json!({"taskId": "t"})).await["status"], "working");
}

#[tokio::test]
async fn use_tool_returns_the_result_of_a_required_task() {
    let required = json!({
        "name": "begin", "description": "Begins.", "inputSchema": {"type": "object"},
        "execution": {"taskSupport": "required"},
    });
    let server = Server::eager("a")
        .script("tasks", true)
        .script("definitions", json!([required]))
        .script("extra_tools", json!(["finish"]));
    let mut host = Proxy::with([server]).serve().await;
    host.tool_names().await;
    let call = json!({"tool_name": "a/begin", "tool_input": {"id": "t"}});
    let id = host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await;
    host.server_noted("a", r#"tasks/result {"taskId":"t"}"#).await;
    host.use_tool("a/finish", json!({"id": "t"})).await;
    assert_eq!(text_of(&host.answer(id).await["result"]), "the result of t");

    let call = json!({"tool_name": "a/begin", "tool_input": {"id": "u"}});
    let id = host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await;
    host.server_noted("a", r#"tasks/result {"taskId":"u"}"#).await;
    host.notify("notifications/cancelled", json!({"requestId": id})).await;
    host.server_noted("a", r#"tasks/cancel {"taskId":"u"}"#).await;
}

const UI: &str = "io.modelcontextprotocol/ui";

fn app_tool(name: &str, ui: &Value) -> Value {
    json!({
        "name": name, "description": format!("The {name} tool."), "inputSchema": {"type": "object"},
        "_meta": {"ui": ui}, "new": 1,
    })
}

/// Returns a server with a tool that has an interface, and a tool that only the interface calls.
fn with_app(name: &str, own_tool: &str) -> Server {
    let interface =
        json!({"resourceUri": format!("ui://{name}/main"), "visibility": ["model", "app"]});
    Server::lazy(name).script(
        "definitions",
        json!([
            app_tool(own_tool, &interface),
            app_tool("refresh", &json!({"visibility": ["app"]}))
        ]),
    )
}

async fn shows_apps(host: &mut Host) {
    let ui = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
    host.initialize(json!({"extensions": {UI: ui}})).await;
}

#[tokio::test]
async fn tools_with_an_interface_keep_their_names() {
    for (surface, load) in [
        ("discover", ("load_mcp", json!({"mcp_name": "one"}))),
        ("groups", ("call_dynamic_tool", json!({"group": "one", "name": "echo"}))),
        ("activate", ("activate_one", json!({}))),
        ("direct", ("load_mcp", json!({"mcp_name": "one"}))),
    ] {
        let servers = [with_app("one", "chart"), with_app("two", "map")];
        let mut host = Proxy::with(servers).argument("--surface").argument(surface).start();
        shows_apps(&mut host).await;
        assert!(!host.tool_names().await.contains(&"chart".to_owned()), "{surface}");
        host.call(load.0, load.1).await;
        let listed = host.request("tools/list", json!({})).await;
        let mut tools = listed["tools"].as_array().unwrap().iter();
        let chart = tools.find(|tool| tool["name"] == "chart").expect(surface);
        assert_eq!(
            (&chart["_meta"]["ui"]["resourceUri"], &chart["new"]),
            (&json!("ui://one/main"), &json!(1))
        );

        let called = host.call("chart", json!({"x": 1})).await;
        assert_eq!(text_of(&called), r#"{"name":"chart","arguments":{"x":1}}"#);
        // The interface calls its own tool and reads its own resource.
        let called = host.call("refresh", json!({})).await;
        assert_eq!(text_of(&called), r#"{"name":"refresh","arguments":{}}"#);
        let read = host.request("resources/read", json!({"uri": "ui://one/main"})).await;
        assert_eq!(read["contents"][0]["text"], host.started("one")[0].to_string());
    }
}

#[tokio::test]
async fn interface_takes_no_name_of_another_server() {
    let ui = json!({"resourceUri": "ui://bad/main", "visibility": ["model", "app"]});
    let names = ["good__del", "good/del", "two words"];
    let tools: Vec<Value> = names.iter().map(|name| app_tool(name, &ui)).collect();
    let bad = Server::lazy("bad").script("definitions", json!(tools));
    let mut host = Proxy::with([bad, Server::lazy("good")]).start();
    shows_apps(&mut host).await;
    host.load("bad").await;
    let listed = host.tool_names().await;
    assert!(listed.iter().all(|name| !names.contains(&name.as_str())), "{listed:?}");
    assert!(listed.contains(&"bad__good__del".to_owned()), "{listed:?}");
}

#[tokio::test]
async fn tools_for_an_interface_are_hidden_from_agents() {
    let mut host = Proxy::with([with_app("one", "chart")]).serve().await;
    let report = host.load("one").await.to_string();
    assert!(report.contains("one/chart") && !report.contains("one/refresh"), "{report}");
    let found = host.call("discover_tool", json!({"query": "refresh"})).await.to_string();
    assert!(!found.contains("one/refresh"), "{found}");
    assert!(!host.description().await.contains("refresh"));
    assert_eq!(host.tool_names().await, ["discover_tool", "use_tool", "load_mcp"]);
}

#[tokio::test]
async fn interface_calls_reach_their_own_server() {
    let servers = [with_app("one", "chart"), with_app("two", "map")];
    let mut host = Proxy::with(servers).start();
    shows_apps(&mut host).await;
    for server in ["one", "two"] {
        host.load(server).await;
    }
    let names = host.tool_names().await;
    assert!(names.contains(&"one__refresh".to_owned()) && !names.contains(&"refresh".to_owned()));
    let ambiguous = host.call("refresh", json!({})).await;
    assert_eq!(ambiguous["isError"], true);
    for server in ["two", "one"] {
        host.request("resources/read", json!({"uri": format!("ui://{server}/main")})).await;
        host.call("refresh", json!({"of": server})).await;
        let noted = format!(r#"tools/call {{"name":"refresh","arguments":{{"of":"{server}"}}"#);
        host.server_noted(server, &noted).await;
    }
}

const SKILLS: &str = "io.modelcontextprotocol/skills";

fn with_skills(name: &str, uris: &[&str]) -> Server {
    let entry = |uri: &&str| json!({"uri": uri, "frontmatter": {"name": "x"}, "resources": "dynamic", "by": name});
    let skills: Vec<Value> = uris.iter().map(entry).collect();
    Server::eager(name)
        .script("modern_only", true)
        .script("capabilities", json!({"extensions": {SKILLS: {"directoryRead": true}}}))
        .script(
            "answers",
            json!({
                "skills/list": {"skills": skills, "resultType": "complete"},
                "skills/get": {"skill": {"by": name}, "resultType": "complete"},
                "resources/directory/read": {"entries": [name], "resultType": "complete"},
            }),
        )
}

#[tokio::test]
async fn skills_of_all_servers_form_one_list() {
    let servers = [
        with_skills("a", &["skill://one/SKILL.md", "skill://both/SKILL.md"]),
        with_skills("b", &["skill://both/SKILL.md", "skill://two/SKILL.md"]),
        Server::eager("plain"),
    ];
    let mut host = Proxy::with(servers).start().into_modern();
    let discovered = host.request("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"]["extensions"][SKILLS], json!({"directoryRead": true}));
    host.request("tools/list", json!({})).await;
    let listed = host.request("skills/list", json!({})).await;
    let by: Vec<_> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| (&skill["uri"], &skill["by"]))
        .collect();
    assert_eq!(
        json!(by),
        json!([
            ["skill://one/SKILL.md", "a"],
            ["skill://both/SKILL.md", "a"],
            ["skill://two/SKILL.md", "b"]
        ])
    );
    assert_eq!((&listed["resultType"], &listed["ttlMs"]), (&json!("complete"), &json!(0)));
    for (uri, server) in [("skill://one/SKILL.md", "a"), ("skill://two/SKILL.md", "b")] {
        let got = host.request("skills/get", json!({"uri": uri})).await;
        assert_eq!(got["skill"]["by"], server);
        let file = uri.replace("SKILL.md", "references/x.md");
        host.request("resources/read", json!({"uri": file})).await;
        host.0.server_noted(server, &format!(r#"resources/read {{"uri":"{file}""#)).await;
        let directory = uri.replace("/SKILL.md", "");
        let read = host.request("resources/directory/read", json!({"uri": directory})).await;
        assert_eq!(read["entries"], json!([server]));
    }
}

#[tokio::test]
async fn directory_of_a_server_without_resources_is_not_read() {
    let off = json!({"resources": false});
    let servers = ["a", "b"].map(|name| with_skills(name, &[]).set("features", off.clone()));
    let mut host = Proxy::with(servers).start().into_modern();
    host.request("tools/list", json!({})).await;
    let directory = ModernHost::meta(json!({"uri": "skill://unlisted"}));
    let answer = host.0.ask("resources/directory/read", directory).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    for server in ["a", "b"] {
        let log = host.0.server_log(server);
        assert!(!log.iter().any(|line| line.starts_with("resources/directory/read")), "{log:?}");
    }
}

fn with_extension(name: &str, extension: &str) -> Server {
    Server::eager(name)
        .script("capabilities", json!({"extensions": {extension: {}}}))
        .script("answers", json!({"notes/add": {"added": name}}))
}

#[tokio::test]
async fn extension_method_reaches_the_server_that_declares_it() {
    let mut host =
        Proxy::with([with_extension("a", "com.example/notes"), Server::eager("b")]).serve().await;
    host.tool_names().await;
    let added = host.request("notes/add", json!({"text": "x"})).await;
    assert_eq!(added["added"], "a");
    let unknown = host.ask("resources/rename", json!({"uri": "x://y"})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

#[tokio::test]
async fn ambiguous_method_is_refused_with_the_endpoints() {
    let servers = ["a", "b"].map(|name| with_extension(name, "com.example/notes"));
    let mut host = Proxy::with(servers).serve().await;
    host.tool_names().await;
    let refused = host.ask("notes/add", json!({"text": "x"})).await;
    assert_eq!(refused["error"]["code"], -32601);
    insta::assert_snapshot!(refused["error"]["message"].as_str().unwrap());
}
