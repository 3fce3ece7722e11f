//! Messages pass through dormouse byte for byte.

use serde_json::{Value, json};

use crate::support::{Proxy, Server};

/// Results of servers, each with a detail that a parser could lose.
const RESULTS: [&str; 16] = [
    r#"{"content":[{"type":"hologram","beam":{"z":1,"a":2}}]}"#,
    r#"{"content":[],"futureField":{"deep":[{"new":true}]},"_meta":{"x/y":1,"unknown":null}}"#,
    r#"{"content":[{"type":"text","text":"a","newMember":1,"annotations":{"audience":["system"],"odd":2}}]}"#,
    r#"{"content":[],"structuredContent":{"number":1e2,"exact":1.10,"zero":-0.0,"huge":1E400}}"#,
    r#"{"content":[],"structuredContent":{"id":123456789012345678901234567890}}"#,
    r#"{"content":[],"structuredContent":null}"#,
    r#"{"content":[{"type":"text","text":"kept"}],"tools":[{"name":"not a list"}]}"#,
    r#"{"content":[{"type":"text","text":"kept"}],"messages":[],"contents":[],"completion":{}}"#,
    r#"{"content":[{"type":"text","text":"\ud800 \udc00\ud800 é 日本 😀 \u00e9 \/ \u0000"}]}"#,
    r#"{"z":1,"content":[],"a":{"z":1,"m":2,"a":3}}"#,
    r#"{ "content" : [ ] , "spaced" :  [ 1 ,2 ]	}"#,
    r#"{"content":[],"twice":1,"twice":2}"#,
    r#"{"task":{"taskId":"t","status":"working"}}"#,
    r#"{"content":[],"isError":true,"resultType":"odd"}"#,
    r#"{"content":[{"type":"resource","resource":{"uri":"x://y"}}]}"#,
    "{}",
];

#[tokio::test]
async fn results_keep_their_bytes_on_every_surface() {
    for surface in ["discover", "activate"] {
        let mut host =
            Proxy::with([Server::lazy("a")]).set("surface", surface).set("settle", 0).serve().await;
        for result in RESULTS {
            let id = if surface == "discover" {
                let call = json!({"tool_name": "a/raw", "tool_input": {"result": result}});
                host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await
            } else {
                host.send("tools/call", json!({"name": "a__raw", "arguments": {"result": result}}))
                    .await
            };
            // A line with 1E400 or a lone surrogate is not a `Value`, so it is found by its start.
            let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
            let mut line = None;
            crate::support::eventually("the answer", || {
                line = host.received().into_iter().find(|line| line.starts_with(&start));
                line.is_some()
            })
            .await;
            assert_eq!(line.unwrap(), format!("{start}{result}}}"));
        }
    }
}

#[tokio::test]
async fn params_keep_their_bytes_except_the_name() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let input = r#"{"z":1e2,"big":123456789012345678901234567890,"a":{"u":"\ud800 é","n":null}, "b" : [1.10]}"#;
    host.write(format!(
        r#"{{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{{"task":{{"ttl":1e3}},"arguments":{{"tool_input":{input},"tool_name":"a/hang"}},"_meta":{{"x":1.0}},"name":"use_tool","more":2}}}}"#
    ))
    .await;
    let mut line = None;
    crate::support::eventually("the call arrives", || {
        let log = host.server_log("a");
        line = log.into_iter().find(|line| line.starts_with("line") && line.contains("tools/call"));
        line.is_some()
    })
    .await;
    let line = line.unwrap();
    let params = line.split_once(r#""params":"#).unwrap().1;
    assert_eq!(
        params,
        format!(
            r#"{{"task":{{"ttl":1e3}},"arguments":{input},"_meta":{{"x":1.0}},"name":"hang","more":2}}}}"#
        )
    );
}

#[tokio::test]
async fn definitions_keep_their_bytes() {
    let server =
        Server::lazy("a").script("resources", json!(["r://1"])).script("prompts", json!(["p"]));
    let mut host = Proxy::with([server]).set("surface", "activate").set("settle", 0).serve().await;
    host.call("activate_a", json!({})).await;
    let id = host.send("tools/list", json!({})).await;
    let line = host.answer_line(&json!(id)).await;
    let echo = r#"{"name":"a__echo","description":"The echo tool. Its second sentence.","inputSchema":{"type":"object","properties":{"z":{},"a":{}}},"newMember":{"z":1,"a":2}}"#;
    assert!(line.contains(echo), "{line}");
    let id = host.send("resources/list", json!({})).await;
    assert!(
        host.answer_line(&json!(id))
            .await
            .contains(r#"{"resources":[{"uri":"r://1","name":"r://1","new":1}]}"#)
    );
    let found = host.call("discover_tool", json!({"tool_name": "a/echo"})).await;
    let text = found["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, echo.replace("a__echo", "a/echo"));
}

#[tokio::test]
async fn server_errors_arrive_unchanged() {
    let mut host = Proxy::with([Server::lazy("a")
        .script("prompts", json!(["p"]))
        .script("refuse", "prompts/get")])
    .serve()
    .await;
    host.load("a").await;
    let answer = host.ask("prompts/get", json!({"name": "p"})).await;
    assert_eq!(answer["error"], json!({"code": -32603, "message": "told to refuse prompts/get"}));
    let unknown = host.ask("prompts/get", json!({"name": "q"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn malformed_tool_is_left_out_alone() {
    let mut host = Proxy::with([Server::lazy("a").script("malformed_tool", true)]).serve().await;
    let report: Value = host.load("a").await;
    assert_eq!(report["structuredContent"]["tools"].as_array().unwrap().len(), 18);
    insta::assert_snapshot!(host.logged_at("WARN", "tools/list").await);
}

#[tokio::test]
async fn results_keep_their_bytes_across_eras() {
    let mut host = Proxy::with([Server::lazy("a")]).start().into_modern();
    let result = r#"{"z":1e2,"content":[],"\ud800":1, "a":[ 1.10 ]}"#;
    let call = json!({"tool_name": "a/raw", "tool_input": {"result": result}});
    let id = host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await;
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{},"resultType":"complete"}}}}"#,
        result.trim_end_matches('}')
    );
    crate::support::eventually("the answer", || host.0.received().contains(&expected)).await;
}
