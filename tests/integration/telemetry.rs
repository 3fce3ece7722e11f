//! Traces, metrics and the log of calls, and what is in none of them.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::{
    Collector, DaemonHome, Host, Proxy, Server, attribute, http_client, not_tested, remote::Remote,
};

/// The trace and the span that a host names.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const HOST_SPAN: &str = "00f067aa0ba902b7";

/// Has a proxy export to the collector, without delay.
fn exporting(proxy: Proxy, collector: &Collector) -> Proxy {
    proxy
        .environment("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
        .environment("OTEL_BSP_SCHEDULE_DELAY", "50")
        .environment("OTEL_METRIC_EXPORT_INTERVAL", "50")
}

/// Calls `echo` of server `a` as a part of the trace.
async fn call_in_trace(host: &mut Host, tool: &str, text: &str) -> Value {
    let call = json!({
        "name": "use_tool",
        "arguments": {"tool_name": format!("a/{tool}"), "tool_input": {"text": text}},
        "_meta": {
            "traceparent": format!("00-{TRACE}-{HOST_SPAN}-01"),
            "tracestate": "x=1",
            "baggage": "k=v",
        },
    });
    host.request("tools/call", call).await
}

/// Returns the `_meta` of the last call that server `a` got.
fn meta_of_last_call(host: &Host) -> Value {
    let log = host.server_log("a");
    let call = log.iter().rfind(|line| line.starts_with("tools/call ")).unwrap();
    let params: Value = serde_json::from_str(call.strip_prefix("tools/call ").unwrap()).unwrap();
    params["_meta"].clone()
}

#[tokio::test]
async fn one_call_is_one_trace_from_the_host_to_the_server() {
    let collector = Collector::start().await;
    let mut host = exporting(Proxy::with([Server::lazy("a")]), &collector).serve().await;
    call_in_trace(&mut host, "echo", "x").await;
    let spans = collector.spans(2).await;
    let find =
        |kind: u8| spans.iter().find(|span| span["kind"] == kind && span["traceId"] == TRACE);
    let (towards_host, towards_server) = (find(2).unwrap(), find(3).unwrap());
    assert_eq!(towards_host["name"], "tools/call use_tool");
    assert_eq!(towards_host["parentSpanId"], HOST_SPAN);
    assert_eq!(towards_server["name"], "tools/call echo");
    assert_eq!(towards_server["parentSpanId"], towards_host["spanId"]);
    assert_eq!(attribute(towards_server, "dormouse.server"), Some("a"));
    let meta = meta_of_last_call(&host);
    let own = towards_server["spanId"].as_str().unwrap();
    assert_eq!(meta["traceparent"], format!("00-{TRACE}-{own}-01"));
    assert_eq!((&meta["tracestate"], &meta["baggage"]), (&json!("x=1"), &json!("k=v")));
}

#[tokio::test]
async fn trace_of_a_host_passes_unchanged_where_nothing_is_exported() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    call_in_trace(&mut host, "echo", "x").await;
    let parent = format!("00-{TRACE}-{HOST_SPAN}-01");
    let expected = json!({"traceparent": parent, "tracestate": "x=1", "baggage": "k=v"});
    assert_eq!(meta_of_last_call(&host), expected);
}

#[tokio::test]
async fn failures_are_marked_in_spans_and_metrics() {
    let collector = Collector::start().await;
    let mut host = exporting(Proxy::with([Server::lazy("a")]), &collector).serve().await;
    host.use_tool("a/raw", json!({"result": r#"{"content": [], "isError": true}"#})).await;
    let spans = collector.spans(2).await;
    let failed = spans.iter().find(|span| span["kind"] == 3).unwrap();
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(attribute(failed, "error.type"), Some("tool_error"));
    let metric = collector.metric("mcp.client.operation.duration").await;
    let point = &metric["histogram"]["dataPoints"][0];
    assert_eq!(attribute(point, "error.type"), Some("tool_error"));
    assert_eq!(point["count"], "1");
}

#[tokio::test]
async fn collector_that_does_not_answer_holds_nothing_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let proxy = Proxy::with([Server::lazy("a")])
        .environment("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .environment("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mut host = proxy.serve().await;
    for _ in 0..20 {
        call_in_trace(&mut host, "echo", "x").await;
    }
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn metrics_are_for_operators_and_in_the_format_of_prometheus() {
    let proxy = Proxy::with([Server::lazy("a"), Server::lazy("b \"c\"\\")]);
    let program = proxy.set("apiTokens", json!(["secret-of-operators"])).start_http();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    host.load("b \"c\"\\").await;
    host.use_tool("a/echo", json!({"text": "x"})).await;
    host.use_tool("a/nothing", json!({})).await;
    let url = program.url("/metrics").await;
    assert_eq!(http_client().get(&url).send().await.unwrap().status(), 401);
    let answer = http_client().get(&url).bearer_auth("secret-of-operators").send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = answer.text().await.unwrap();
    let calls = "mcp_client_operation_duration_seconds_count{dormouse_server=\"a\",\
        gen_ai_operation_name=\"execute_tool\",gen_ai_tool_name=\"echo\",\
        mcp_method_name=\"tools/call\",mcp_protocol_version=\"2025-11-25\",\
        network_transport=\"pipe\"} 1";
    for line in [calls, "dormouse_hosts 1", "dormouse_servers{dormouse_server_state=\"awake\"} 2"] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    check_with_promtool(&text).await;
}

/// Fails if Prometheus's own checker finds anything in the metrics.
async fn check_with_promtool(text: &str) {
    let mut command = tokio::process::Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let Ok(mut checking) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        return not_tested("promtool is not installed");
    };
    checking.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let checked = checking.wait_with_output().await.unwrap();
    let said = [checked.stdout, checked.stderr].concat();
    assert!(checked.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test]
async fn secrets_are_in_no_log_metric_or_trace() {
    const SECRET: &str = "canary-7f3a91c2-secret";
    let collector = Collector::start().await;
    let remote = Remote::start(|_| async { None }).await;
    let home = DaemonHome::new();
    let proxy = home.proxy([
        Server::lazy("a").set("env", json!({"API_KEY": SECRET})),
        Server::lazy("r")
            .set("url", remote.url.as_str())
            .set("headers", json!({"Authorization": format!("Bearer {SECRET}")})),
    ]);
    let mut host = exporting(proxy, &collector)
        .environment("OTEL_EXPORTER_OTLP_HEADERS", &format!("authorization=Bearer {SECRET}"))
        .serve()
        .await;
    for tool in ["a/echo", "r/t"] {
        host.use_tool(tool, json!({"text": SECRET})).await;
    }
    let uri = format!("memo://user:{SECRET}@host/x?token={SECRET}");
    host.ask("resources/read", json!({"uri": uri})).await;
    collector.spans(4).await;
    collector.metric("mcp.client.operation.duration").await;
    assert_eq!(host.end().await, Some(0));
    assert!(!collector.text().contains(SECRET), "{}", collector.text());
    let (_, log) = home.run(&["log", "--json"]).await;
    assert!(log.contains("\"echo\""), "{log}");
    let (_, status) = home.run(&["status", "--json"]).await;
    for text in [log, status] {
        assert!(!text.contains(SECRET), "{text}");
    }
}
