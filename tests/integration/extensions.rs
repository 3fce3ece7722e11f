//! Extensions of MCP behind one endpoint for many servers: tasks, apps, skills, and methods that dormouse does not know.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Host, Modern, Proxy, Server, eventually, text_of};

/// Two servers with tasks; the tools `begin` and `finish` make and end them.
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
async fn legacy_tasks_are_routed_by_id_even_where_two_servers_use_the_same() {
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
async fn modern_tasks_are_routed_and_listened_to() {
    let mut host = direct(with_tasks(true)).start().into_modern();
    let discovered = host.request("server/discover", json!({})).await;
    let declared = &discovered["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!(declared, &json!({}));
    host.request("tools/list", json!({})).await;
    let mut host = AsTasks(host);
    for tool in ["a__begin", "b__begin"] {
        let params = json!({"name": tool, "arguments": {"id": "t"}});
        assert_eq!(host.request("tools/call", params).await["resultType"], "task");
    }
    let refused = host
        .0
        .0
        .send("subscriptions/listen", Modern::meta(json!({"notifications": {"taskIds": ["t"]}})))
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
    let of_legacy = host.0.0.ask("tasks/list", Modern::meta(json!({}))).await;
    assert_eq!(of_legacy["error"]["code"], -32601);
}

/// A modern host that declares the extension for tasks.
struct AsTasks(Modern);

impl AsTasks {
    async fn send(&mut self, method: &str, params: Value) -> u64 {
        let mut params = Modern::meta(params);
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
async fn a_task_keeps_its_server_awake_until_its_result_is_fetched() {
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
async fn the_task_of_one_host_is_unknown_to_another() {
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
async fn a_tool_that_must_be_a_task_answers_a_call_through_use_tool_with_its_result() {
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
