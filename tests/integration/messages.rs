//! JSON-RPC rules: errors, ids, order, and cancellation.

use serde_json::{Value, json};

use crate::support::{Proxy, Server, text_of};

#[tokio::test]
async fn invalid_messages_get_json_rpc_errors() {
    let mut host = Proxy::with([]).serve().await;
    for (line, id, code) in [
        ("this is no JSON", json!(null), -32700),
        ("{\"jsonrpc\":\"2.0\",", json!(null), -32700),
        ("[]", json!(null), -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":70,\"method\":\"ping\"}", json!(70), -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":3}", json!("x"), -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":71,\"method\":\"ping\",\"params\":3}", json!(71), -32600),
    ] {
        let before = host.received().len();
        host.write(line).await;
        crate::support::eventually("an answer", || host.received().len() > before).await;
        let answer: Value = serde_json::from_str(host.received().last().unwrap()).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(code)),
            "{line}: {answer}"
        );
    }
    host.request("ping", json!({})).await;
}

#[tokio::test]
async fn batch_is_answered_member_by_member() {
    let mut host = Proxy::with([]).serve().await;
    host.write(r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"no/such"}]"#).await;
    assert!(host.answer_line(&json!("a")).await.contains("\"result\""));
    assert!(host.answer_line(&json!("b")).await.contains("-32601"));
}

#[tokio::test]
async fn only_ping_is_answered_before_the_handshake() {
    let mut host = Proxy::with([]).start();
    assert!(host.ask("ping", json!({})).await["result"].is_object());
    assert_eq!(host.ask("tools/list", json!({})).await["error"]["code"], -32600);
}

#[tokio::test]
async fn ids_keep_their_type_and_text() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    for (id, number) in [("5", 1), ("\"5\"", 2), ("-5", 3), ("5.5", 4), ("\"\\u00e4\"", 5)] {
        let call = format!(
            r#"{{"name":"use_tool","arguments":{{"tool_name":"a/echo","tool_input":{{"n":{number}}}}}}}"#
        );
        host.write(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{call}}}"#
        ))
        .await;
    }
    for (id, number) in [("5", 1), ("\"5\"", 2), ("-5", 3), ("5.5", 4), ("\"\\u00e4\"", 5)] {
        let line = host.answer_line(&serde_json::from_str(id).unwrap()).await;
        assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)), "{line}");
        assert!(line.contains(&format!(r#"\"n\":{number}"#)), "{line}");
    }
}

#[tokio::test]
async fn repeated_id_in_flight_is_answered_each_time() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    for wait in [200, 100] {
        let call = json!({"name": "use_tool", "arguments": {"tool_name": "a/slow", "tool_input": {"ms": wait}}});
        host.write(
            json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": call})
                .to_string(),
        )
        .await;
    }
    crate::support::eventually("both answers", || {
        host.received().iter().filter(|line| line.contains(r#""id":"same""#)).count() == 2
    })
    .await;
}

#[tokio::test]
async fn cancelled_request_reaches_the_server_and_gets_no_answer() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let id = host
        .send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": "a/hang"}}))
        .await;
    host.server_noted("a", "tools/call").await;
    host.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"})).await;
    host.server_noted("a", "notifications/cancelled").await;
    let call = host.server_log("a").iter().find_map(|line| {
        let line = line.strip_prefix("line ")?;
        let message: Value = serde_json::from_str(line).ok()?;
        (message["method"] == "tools/call").then(|| message["id"].clone())
    });
    let cancelled = host.server_log("a").iter().find_map(|line| {
        serde_json::from_str::<Value>(line.strip_prefix("notifications/cancelled ")?).ok()
    });
    assert_eq!(cancelled.unwrap()["requestId"], call.unwrap());
    host.request("ping", json!({})).await;
    assert!(!host.received().iter().any(|line| line.contains(&format!("\"id\":{id},"))));
}

#[tokio::test]
async fn random_cancellations_leave_every_line_whole() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let input = json!({"filling": "x".repeat(random.usize(0..60_000))});
        let call =
            json!({"name": "use_tool", "arguments": {"tool_name": "a/echo", "tool_input": input}});
        let id = host.send("tools/call", call).await;
        if random.bool() {
            host.notify(
                "notifications/cancelled",
                json!({"requestId": id - random.u64(0..3).min(id - 1)}),
            )
            .await;
        }
    }
    let last = host.use_tool("a/echo", json!({"last": true})).await;
    assert!(text_of(&last).contains("last"));
    for line in host.received() {
        let message: Value = serde_json::from_str(&line).expect("every line to the host is whole");
        assert!(message["error"].is_null(), "{line}");
    }
    // The fixture panics on an incomplete line, and would have been started twice.
    assert_eq!(host.started("a").len(), 1);
}

#[tokio::test]
async fn progress_arrives_in_order_before_the_result() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    for token in [json!("t"), json!(0)] {
        let before = host.received().len();
        let call = json!({
            "name": "use_tool",
            "arguments": {"tool_name": "a/progress", "tool_input": {"count": 500}},
            "_meta": {"progressToken": token},
        });
        let id = host.send("tools/call", call).await;
        host.answer(id).await;
        let lines = host.received().split_off(before);
        assert_eq!(lines.len(), 501);
        for (step, line) in lines[..500].iter().enumerate() {
            let message: Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                message["params"],
                json!({"progressToken": token, "progress": step + 1, "new": 1})
            );
        }
    }
    let silent = host.received().len();
    host.use_tool("a/progress", json!({"count": 3})).await;
    assert_eq!(host.received().len(), silent + 1, "progress without a token is not passed on");
}

#[tokio::test]
async fn silent_call_times_out_and_is_cancelled() {
    let server = Server::lazy("a").set("timeouts", json!({"call": "400ms"}));
    let mut host = Proxy::with([server]).serve().await;
    host.load("a").await;
    let result = host.use_tool("a/hang", json!({})).await;
    insta::assert_snapshot!(text_of(&result));
    host.server_noted("a", "notifications/cancelled").await;
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn questions_reach_the_host_and_answers_return() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    for (method, answer) in [
        ("sampling/createMessage", json!({"result": {"role": "assistant", "n": 1}})),
        ("elicitation/create", json!({"result": {"action": "accept"}})),
        ("roots/list", json!({"result": {"roots": []}})),
        ("elicitation/create", json!({"error": {"code": -1, "message": "no"}})),
    ] {
        let input =
            json!({"method": method, "params": {"maxTokens": 1, "unknown": {"z": 1, "a": 2}}});
        let before = host.received().len();
        let id = host.send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": input}})).await;
        crate::support::eventually("the question", || host.received().len() > before).await;
        let question: Value = serde_json::from_str(&host.received()[before]).unwrap();
        assert_eq!((&question["method"], &question["params"]), (&json!(method), &input["params"]));
        let mut reply = json!({"jsonrpc": "2.0", "id": question["id"]});
        reply.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        host.write(reply.to_string()).await;
        let expected = answer.get("result").unwrap_or(&answer["error"]).to_string();
        assert_eq!(text_of(&host.answer(id).await["result"]), expected);
    }
}

#[tokio::test]
async fn unsupported_question_is_refused_and_undeclared() {
    let mut host = Proxy::with([Server::lazy("a")]).start();
    host.initialize(json!({"elicitation": {"form": {}}})).await;
    let input = json!({"method": "sampling/createMessage", "params": {}});
    let result = host.use_tool("a/ask", input).await;
    assert!(text_of(&result).contains("-32601"), "{result}");
    let log = host.server_log("a");
    let hello = log.iter().find_map(|line| line.strip_prefix("initialize ")).unwrap();
    let hello: Value = serde_json::from_str(hello).unwrap();
    assert_eq!(hello["capabilities"], json!({"elicitation": {"form": {}}}));
}

#[tokio::test]
async fn log_level_reaches_servers_that_wake_later() {
    let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    host.request("logging/setLevel", json!({"level": "warning"})).await;
    host.server_noted("a", "logging/setLevel {\"level\":\"warning\"}").await;
    host.load("b").await;
    host.server_noted("b", "logging/setLevel {\"level\":\"warning\"}").await;
    let input = json!({"method": "notifications/message", "params": {"level": "error", "data": {"z": 1, "a": 2}}});
    host.use_tool("a/send", input.clone()).await;
    assert_eq!(host.notification("notifications/message").await["params"], input["params"]);
    host.notify("notifications/roots/list_changed", json!({})).await;
    host.server_noted("b", "notifications/roots/list_changed").await;
}
