//! Questions that cross eras, and their misuse. `matrix` tests their normal use.

use serde_json::{Value, json};

use crate::support::{
    Host, ModernHost, Program, Proxy, Server,
    remote::{RecordedRequest, Remote, json_text, reply},
    text_of,
};

/// Returns a call of a tool that sends the question `method` to its host.
fn asking(method: &str) -> Value {
    let question = json!({"method": method, "params": {"message": "who?", "n": 1}});
    json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": question}})
}

fn with_capabilities(params: Value) -> Value {
    let mut params = ModernHost::meta(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    params
}

fn retry(call: &Value, asked: &Value, responses: Value) -> Value {
    let mut params = call.clone();
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = responses;
    with_capabilities(params)
}

fn service() -> Program {
    Proxy::with([Server::lazy("a")]).set("authTokens", json!(["one", "two"])).start_http()
}

async fn host(program: &Program, token: &str) -> Host {
    let bearer = format!("Bearer {token}");
    Host::over_http(&program.url("/mcp").await, &[("authorization", &bearer)])
}

fn accepted() -> Value {
    json!({"q1": {"action": "accept", "content": {"name": "n"}}})
}

#[tokio::test]
async fn retry_of_the_call_answers_its_question_once() {
    let program = service();
    let mut asked_host = host(&program, "one").await;
    let mut other = host(&program, "two").await;
    let call = asking("elicitation/create");
    let asked = asked_host.request("tools/call", with_capabilities(call.clone())).await;
    assert_eq!(asked["resultType"], "input_required");
    let question = &asked["inputRequests"]["q1"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"], json!({"message": "who?", "n": 1}));
    // Neither another user's retry nor a retry of another call finds the question.
    let stolen = other.ask("tools/call", retry(&call, &asked, accepted())).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    let mut another = call.clone();
    another["arguments"]["tool_input"]["params"] = json!({"message": "else"});
    let wrong = asked_host.ask("tools/call", retry(&another, &asked, accepted())).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    // Unanswered questions are asked again under a new state.
    let again = asked_host.request("tools/call", retry(&call, &asked, json!({}))).await;
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    assert_ne!(again["requestState"], asked["requestState"]);
    let done = asked_host.request("tools/call", retry(&call, &again, accepted())).await;
    assert!(text_of(&done).contains("accept"), "{done}");
    let replayed = asked_host.ask("tools/call", retry(&call, &again, accepted())).await;
    assert_eq!(replayed["error"]["code"], -32602);
    assert_eq!(program.started("a").len(), 1);
    let calls = program.server_log("a");
    assert_eq!(calls.iter().filter(|line| line.starts_with("tools/call")).count(), 1);
}

#[tokio::test]
async fn answer_to_an_earlier_process_runs_nothing() {
    let home = tempfile::tempdir().unwrap();
    let start = || {
        let modern = Server::lazy("m").script("modern_only", true);
        let proxy = Proxy::with([Server::lazy("a"), modern]).at_home(home.path());
        proxy.set("authTokens", json!(["one", "two"])).start_http()
    };
    let call = asking("elicitation/create");
    let program = start();
    let mut first = host(&program, "one").await;
    let asked = first.request("tools/call", with_capabilities(call.clone())).await;
    drop((first, program));
    let program = start();
    let mut second = host(&program, "one").await;
    for server in ["a", "m"] {
        let mut call = call.clone();
        call["arguments"]["tool_name"] = json!(format!("{server}/ask"));
        let answer = second.ask("tools/call", retry(&call, &asked, accepted())).await;
        assert_eq!(answer["error"]["code"], -32602, "{server}: {answer}");
        let log = program.server_log(server);
        let calls = log.iter().filter(|line| line.starts_with("tools/call"));
        assert_eq!(
            calls.count(),
            usize::from(server == "a"),
            "only the first process called {server}"
        );
    }
}

#[tokio::test]
async fn question_that_comes_with_an_answer_goes_to_the_call_that_is_left() {
    let program = service();
    let mut host = host(&program, "one").await;
    let hang = json!({"name": "use_tool", "arguments": {"tool_name": "a/hang"}});
    let left = host.send("tools/call", with_capabilities(hang)).await;
    program.server_noted("a", r#"tools/call {"name":"hang""#).await;
    let question = json!({"method": "elicitation/create", "params": {"message": "who?"}});
    let aside =
        json!({"name": "use_tool", "arguments": {"tool_name": "a/aside", "tool_input": question}});
    let answered = host.request("tools/call", with_capabilities(aside)).await;
    assert_eq!(text_of(&answered), "asked aside");
    let asked = host.answer(left).await;
    assert_eq!(asked["result"]["inputRequests"]["q1"]["params"]["message"], "who?", "{asked}");
}

#[tokio::test]
async fn questions_keep_members_of_the_other_era() {
    let program = service();
    let mut host = host(&program, "one").await;
    for params in [
        json!({"mode": "url", "message": "m", "url": "https://x/", "elicitationId": "7"}),
        json!({"mode": "form", "message": "m", "task": {"ttl": 1}}),
    ] {
        let ask = json!({"method": "elicitation/create", "params": params});
        let call =
            json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": ask}});
        let mut call = with_capabilities(call);
        call["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {"url": {}, "form": {}}});
        let asked = host.request("tools/call", call).await;
        assert_eq!(asked["inputRequests"]["q1"]["params"], params, "{asked}");
    }
}

#[tokio::test]
async fn unsupported_question_to_a_modern_host_is_refused() {
    let program = service();
    let mut host = host(&program, "one").await;
    let call = with_capabilities(asking("sampling/createMessage"));
    let result = host.request("tools/call", call).await;
    assert!(text_of(&result).contains("-32601"), "{result}");
}

#[tokio::test]
async fn retry_fails_after_its_server_died() {
    let program = service();
    let mut host = host(&program, "one").await;
    let call = asking("elicitation/create");
    let asked = host.request("tools/call", with_capabilities(call.clone())).await;
    let die = json!({"name": "use_tool", "arguments": {"tool_name": "a/die"}});
    host.request("tools/call", with_capabilities(die)).await;
    let result = host.request("tools/call", retry(&call, &asked, accepted())).await;
    assert_eq!(result["isError"], true, "{result}");
    insta::assert_snapshot!(text_of(&result));
}

/// Starts a modern server whose only tool answers with `question`.
async fn modern_server(question: Value) -> Remote {
    Remote::start(move |asked: RecordedRequest| {
        let question = question.clone();
        async move {
            let result = match asked.method_name() {
                "initialize" => {
                    let error = json!({"code": -32601, "message": "no"});
                    let id = &asked.message["id"];
                    let reply = json!({"jsonrpc": "2.0", "id": id, "error": error});
                    return Some(json_text(&reply.to_string()));
                }
                "server/discover" => json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                }),
                "tools/call" => question,
                _ => return None,
            };
            Some(json_text(&reply(&asked, &result.to_string())))
        }
    })
    .await
}

#[tokio::test]
async fn endless_input_requests_stop_after_ten_rounds() {
    let question = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
        "r": {"method": "roots/list"}}});
    let remote = modern_server(question).await;
    let mut host = Proxy::with([Server::lazy("a").set("url", remote.url.as_str())]).serve().await;
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "a/t"}});
    let id = host.send("tools/call", call).await;
    for round in 0..10 {
        let question = host.answer_or_question(id, round, false).await;
        assert_eq!(question["method"], "roots/list", "{question}");
        host.reply(&question, json!({"roots": []})).await;
    }
    let answer = host.answer(id).await;
    insta::assert_snapshot!(text_of(&answer["result"]));
    assert_eq!(remote.count("tools/call"), 10);
    let retried = remote.requests();
    let retried = retried.iter().rfind(|asked| asked.method_name() == "tools/call").unwrap();
    assert_eq!(retried.message["params"]["requestState"], "s");
    assert_eq!(retried.message["params"]["inputResponses"], json!({"r": {"roots": []}}));
}

#[tokio::test]
async fn unsupported_question_to_a_legacy_host_fails_the_call() {
    let question = json!({"resultType": "input_required", "inputRequests": {
        "r": {"method": "elicitation/create", "params": {"message": "m"}}}});
    let remote = modern_server(question).await;
    let mut host = Proxy::with([Server::lazy("a").set("url", remote.url.as_str())]).start();
    host.initialize(json!({})).await;
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "a/t"}});
    let answer = host.ask("tools/call", call).await;
    insta::assert_snapshot!(text_of(&answer["result"]));
    let asked = remote.requests();
    let call = asked.iter().find(|asked| asked.method_name() == "tools/call").unwrap();
    let meta = &call.message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
}
