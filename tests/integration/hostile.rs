//! Servers that break the protocol fail alone.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Cases, Host, Proxy, Server, eventually, peak_memory, text_of};

/// Starts a bad server next to a good one, and loads both.
async fn beside_a_good_one(bad: Server) -> Host {
    let mut host =
        Proxy::with([bad, Server::lazy("good")]).set("maxMessageBytes", 100_000).serve().await;
    assert!(host.load("good").await["isError"].is_null());
    assert!(host.load("bad").await["isError"].is_null());
    host
}

async fn good_still_answers(host: &mut Host) {
    assert!(host.use_tool("good/echo", json!({})).await["isError"].is_null());
    assert_eq!(host.started("good").len(), 1);
}

#[tokio::test]
async fn garbage_on_standard_output_is_logged_once() {
    let mut host = beside_a_good_one(Server::lazy("bad").script("greets_with_noise", true)).await;
    let result = host.use_tool("bad/noise", json!({})).await;
    assert_eq!(text_of(&result), "after the noise");
    insta::assert_snapshot!(host.warnings().join("\n"));
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn oversized_answer_fails_its_request() {
    let mut host = beside_a_good_one(Server::lazy("bad")).await;
    let other = host.send("tools/call", json!({"name": "use_tool", "arguments": {"tool_name": "bad/slow", "tool_input": {"ms": 200}}})).await;
    let result = host.use_tool("bad/huge", json!({"bytes": 3_000_000})).await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(text_of(&result));
    assert_eq!(text_of(&host.answer(other).await["result"]), "slept");
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn oversized_request_is_refused_under_its_id() {
    let mut host = Proxy::with([]).set("maxMessageBytes", 100_000).serve().await;
    let filling = "x".repeat(200_000);
    host.write(format!(
        r#"{{"params":{{"f":"{filling}"}},"method":"tools/call","jsonrpc":"2.0","id":"big"}}"#
    ))
    .await;
    insta::assert_snapshot!(host.answer_line(&json!("big")).await);
}

#[tokio::test]
async fn burst_of_list_changed_costs_two_lists() {
    let mut host = beside_a_good_one(Server::lazy("bad")).await;
    let lists = |host: &Host| {
        host.server_log("bad").iter().filter(|line| line.starts_with("tools/list")).count()
    };
    let (before, told) = (lists(&host), host.notifications().len());
    host.use_tool("bad/burst", json!({"count": 1000})).await;
    eventually("the tools are listed again", || lists(&host) > before).await;
    // The pause between two refreshes is 100 ms, so any further list is under way by now.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(lists(&host) <= before + 2, "{} lists", lists(&host) - before);
    assert_eq!(host.notifications().len(), told, "no notification without a change");
    host.use_tool("bad/change", json!({"tools": ["fresh"]})).await;
    eventually("the host is notified", || host.notifications().len() == told + 1).await;
    assert!(host.description().await.contains("- fresh"));
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn unexpected_replies_are_dropped() {
    let mut host = beside_a_good_one(Server::lazy("bad")).await;
    assert_eq!(text_of(&host.use_tool("bad/twice", json!({})).await), "first");
    assert_eq!(text_of(&host.use_tool("bad/stray", json!({})).await), "to the caller");
    assert_eq!(text_of(&host.use_tool("bad/slow", json!({"ms": 1})).await), "slept");
    assert!(
        !host
            .received()
            .iter()
            .any(|line| line.contains("to nobody") || line.contains(r#""text":"second""#))
    );
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn malformed_reply_fails_its_request() {
    let mut host = beside_a_good_one(Server::lazy("bad")).await;
    let result = host.use_tool("bad/malformed", json!({})).await;
    insta::assert_snapshot!(text_of(&result));
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn server_that_stops_reading_fails_its_own_calls() {
    let bad = Server::lazy("bad").set("timeouts", json!({"call": "1s"}));
    let mut host = Proxy::with([bad, Server::lazy("good")]).serve().await;
    host.load("good").await;
    host.use_tool("bad/deaf", json!({})).await;
    let filling = "x".repeat(1_000_000);
    let mut ids = Vec::new();
    for number in 0..70 {
        if number == 60 {
            // The server counts as slow, not as stuck, during the first 500 ms.
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        let call = json!({"tool_name": "bad/echo", "tool_input": {"filling": filling}});
        ids.push(host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await);
    }
    let mut refusals = Vec::new();
    for id in ids {
        let result = host.answer(id).await["result"].clone();
        assert_eq!(result["isError"], true);
        refusals.push(text_of(&result).to_owned());
    }
    let at_once = refusals.last().unwrap();
    insta::assert_snapshot!(at_once);
    let congested = refusals.iter().filter(|refusal| *refusal == at_once).count();
    assert!(congested >= 10, "{congested} of 70 calls were refused at once");
    let peak = peak_memory(host.serving_id());
    assert!(peak < 150_000, "{peak} kB");
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn late_answers_do_not_reach_later_requests() {
    let server = Server::lazy("a").set("timeouts", json!({"call": "150ms"}));
    let mut host = Proxy::with([server]).serve().await;
    host.load("a").await;
    let late = host.use_tool("a/slow", json!({"ms": 400})).await;
    assert_eq!(late["isError"], true);
    for number in 0..50 {
        let result = host.use_tool("a/echo", json!({"number": number})).await;
        assert!(text_of(&result).contains(&format!("\"number\":{number}")), "{result}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!host.received().iter().any(|line| line.contains("slept")));
}

#[tokio::test]
async fn endless_pages_fail_the_load() {
    // Every page names the same next page.
    let script = r#"while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); case "$line" in
        *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}";;
        *tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[],\"nextCursor\":\"again\"}}";;
        esac; done"#;
    let server = Server::lazy("a").set("command", "sh").set("args", json!(["-c", script]));
    let mut host = Proxy::with([server]).serve().await;
    let result: Value = host.load("a").await;
    insta::assert_snapshot!(text_of(&result));
}

#[tokio::test]
async fn server_that_reads_no_answers_is_disconnected() {
    let script = r#"while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); case "$line" in
        *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}";;
        *notifications/initialized*) exec yes '{"jsonrpc":"2.0","id":1,"method":"ping"}';;
        esac; done"#;
    let flood = Server::lazy("flood").set("command", "sh").set("args", json!(["-c", script]));
    let mut host = Proxy::with([flood, Server::lazy("good")]).serve().await;
    host.load("good").await;
    host.load("flood").await;
    insta::assert_snapshot!(host.logged_at("WARN", "flood").await);
    let peak = peak_memory(host.serving_id());
    assert!(peak < 200_000, "{peak} kB");
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn question_is_withdrawn_when_its_server_dies() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let input = json!({"method": "sampling/createMessage", "params": {}});
    host.send(
        "tools/call",
        json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": input}}),
    )
    .await;
    let question = host.notification("sampling/createMessage").await;
    host.use_tool("a/die", json!({})).await;
    let cancelled = host.notification("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
}

/// Returns a server in `sh` that answers `initialize`, and other methods as the `case` branches in
/// `more` say. `$id` is the id of the request.
fn scripted(name: &str, capabilities: &str, more: &str) -> Server {
    let script = format!(
        r#"while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); case "$line" in
        *'"initialize"'*) echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{capabilities},\"serverInfo\":{{\"name\":\"x\",\"version\":\"1\"}}}}}}";;
        {more}
        esac; done"#
    );
    Server::lazy(name).set("command", "sh").set("args", json!(["-c", script]))
}

#[tokio::test]
async fn server_that_exits_inside_an_oversized_line_fails_alone() {
    for stream in ["1", "2"] {
        let script = format!("head -c 300000 /dev/zero | tr '\\0' x >&{stream}; sleep 0.2");
        let bad = Server::lazy("bad").set("command", "sh").set("args", json!(["-c", script]));
        let proxy = Proxy::with([bad, Server::lazy("good")]).set("maxMessageBytes", 100_000);
        let mut host = proxy.serve().await;
        host.load("good").await;
        assert_eq!(host.load("bad").await["isError"], true);
        good_still_answers(&mut host).await;
    }
}

#[tokio::test]
async fn host_that_ends_inside_an_oversized_line_is_gone() {
    let mut host = Proxy::with([]).set("maxMessageBytes", 100_000).serve().await;
    host.write_part(&vec![b'x'; 300_000]).await;
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn unparsable_capabilities_are_passed_on() {
    let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for odd in ["1e400", "\"\\ud800\"", &nested] {
        let mut host = Proxy::with([scripted("a", "{}", ""), Server::lazy("good")]).start();
        host.write(format!(
            r#"{{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"experimental":{{"odd":{odd}}}}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        ))
        .await;
        host.answer_line(&json!("hello")).await;
        host.notify("notifications/initialized", json!({})).await;
        let result = host.load("a").await;
        assert!(result["isError"].is_null(), "{odd}: {result}");
    }
    let bad = scripted("bad", r#"{\"experimental\":{\"n\":1e400}}"#, "");
    let mut host = Proxy::with([bad, Server::lazy("good")]).serve().await;
    host.load("good").await;
    assert!(host.load("bad").await["isError"].is_null());
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn oversized_lists_fail_the_load() {
    // Each page has another cursor, and 4 MB.
    let more = r#"*tools/list*) n=$((n+1)); filling=$(head -c 4000000 /dev/zero | tr '\0' x); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[],\"filling\":\"$filling\",\"nextCursor\":\"$n\"}}";;"#;
    let bad = scripted("bad", r#"{\"tools\":{}}"#, more);
    let mut host = Proxy::with([bad, Server::lazy("good")]).serve().await;
    host.load("good").await;
    let result = host.load("bad").await;
    insta::assert_snapshot!(text_of(&result));
    let peak = peak_memory(host.serving_id());
    assert!(peak < 250_000, "{peak} kB");
    good_still_answers(&mut host).await;
}

#[tokio::test]
async fn unknown_list_method_is_an_empty_list_with_a_warning() {
    let mut warnings = Cases::default();
    for method in ["resources/list", "prompts/list", "tools/list"] {
        let server = Server::lazy("a").script("unknown_method", method);
        let mut host = Proxy::with([server]).serve().await;
        let result = host.load("a").await;
        assert!(result["isError"].is_null(), "{method}: {result}");
        warnings.add(method, &host.logged_at("WARN", method).await);
    }
    insta::assert_snapshot!(warnings);
    let server = Server::lazy("a").script("refuse", "resources/list");
    let mut host = Proxy::with([server]).serve().await;
    assert_eq!(host.load("a").await["isError"], true, "another error is a failure");
}

#[tokio::test]
async fn tool_name_cannot_shadow_another_servers_tool() {
    let servers = [
        Server::lazy("bad").script("extra_tools", json!(["good/other", "good__other"])),
        Server::lazy("good"),
        Server::lazy("off").set("enabled", false),
    ];
    let mut host = Proxy::with(servers).serve().await;
    host.load("bad").await;
    host.load("good").await;
    let mut cases = Cases::default();
    for name in ["good/other", "good__other"] {
        let result = host.use_tool(name, json!({})).await;
        assert_eq!(result["isError"], true, "{result}");
        cases.add(name, text_of(&result));
    }
    insta::assert_snapshot!(cases);
    assert!(host.use_tool("bad/good/other", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn prompt_name_cannot_shadow_another_servers_prompt() {
    let bad = Server::eager("bad").script("prompts", json!(["good__p", "good__other", "own"]));
    let good = Server::eager("good").script("prompts", json!(["p"]));
    let mut host = Proxy::with([bad, good]).serve().await;
    let listed = host.request("prompts/list", json!({})).await;
    let listed = listed["prompts"].as_array().unwrap().iter();
    let names: Vec<&str> = listed.filter_map(|prompt| prompt["name"].as_str()).collect();
    assert_eq!(names, ["bad__good__p", "bad__good__other", "own", "p"]);
    for (name, own) in
        [("good__p", Some("p")), ("bad__good__p", Some("good__p")), ("good__other", None)]
    {
        let got = host.ask("prompts/get", json!({"name": name})).await;
        assert_eq!(got["result"]["description"].as_str(), own, "{name}: {got}");
    }
}

#[tokio::test]
async fn oversized_capabilities_fail_the_load() {
    let many: serde_json::Map<String, Value> =
        (0..7_000).map(|number| (format!("x/{number}"), json!({}))).collect();
    let server = Server::lazy("a").script("capabilities", json!({"extensions": many}));
    let mut host = Proxy::with([server]).serve().await;
    let report = host.load("a").await;
    insta::assert_snapshot!(text_of(&report));
}
