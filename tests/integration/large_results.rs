//! Results of tools that are too long for a host.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::{
    Cases, Host, ModernHost, Proxy, Server, eventually, http_client, redacted, text_of,
};

/// The number of lines of the fixture in a text of 31 MB.
const MANY_LINES: usize = 2_480_000;
/// Maximum size of what a host gets of a large result: some 1,000 tokens.
const MAX_SHOWN_BYTES: usize = 4000;

/// The text of the fixture with this number of lines.
fn lines(count: usize) -> String {
    (0..count).flat_map(|line| ["line ".to_owned(), line.to_string(), "\n".to_owned()]).collect()
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The arguments by which the fixture returns `result`, with lines in place of `<lines>`.
fn raw(result: &Value, lines: usize) -> Value {
    json!({"result": result.to_string(), "lines": lines})
}

/// A server with a tool `structured` that declares the structure of its results.
fn server_with_schema() -> Server {
    let structured = json!({
        "name": "structured", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"log": {"type": "string"}}},
    });
    Server::lazy("a").script("definitions", json!([structured]))
}

/// Returns the id of a kept result from the preview.
fn id_in(preview: &Value) -> String {
    let uri = uri_in(preview);
    uri.strip_prefix("dormouse://results/").unwrap().to_owned()
}

fn uri_in(preview: &Value) -> String {
    let blocks = preview["content"].as_array().unwrap().iter();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    let words = texts.flat_map(str::split_whitespace);
    words.clone().find(|word| word.starts_with("dormouse://")).unwrap().to_owned()
}

/// Reads all pages of a kept result by `read_result`, as the note of the preview says.
async fn read_all(host: &mut Host, id: &str) -> String {
    let mut whole = String::new();
    for page in 1.. {
        let read = host.use_tool("dormouse/read_result", json!({"id": id, "page": page})).await;
        if read["isError"] == true {
            assert!(page > 1, "{read}");
            break;
        }
        assert!(read.to_string().len() < 2 * MAX_SHOWN_BYTES, "{}", read.to_string().len());
        whole.push_str(text_of(&read));
    }
    whole
}

/// The results of 31 MB whose text, as it is read back, is `lines(MANY_LINES)` and what is around
/// it.
fn large_results() -> [(&'static str, &'static str, Value, usize, String); 4] {
    let structured = json!({"log": "<lines>"});
    let blocks: Vec<_> = (0..100).map(|_| text_block("<lines>")).collect();
    let in_json = |text: &str| json!({"log": text}).to_string();
    [
        ("text", "raw", json!({"content": [text_block("<lines>")]}), MANY_LINES, lines(MANY_LINES)),
        (
            "structured content",
            "raw",
            json!({"content": [], "structuredContent": structured}),
            MANY_LINES,
            in_json(&lines(MANY_LINES)),
        ),
        (
            "structured content that the tool declares",
            "structured",
            json!({"content": [], "structuredContent": structured}),
            MANY_LINES,
            in_json(&lines(MANY_LINES)),
        ),
        (
            "a hundred blocks",
            "raw",
            json!({"content": blocks}),
            29_500,
            vec![lines(29_500); 100].join("\n"),
        ),
    ]
}

#[tokio::test]
async fn result_of_31_megabytes_costs_a_thousand_tokens_and_can_be_read_back() {
    let mut host = Proxy::with([server_with_schema()]).start();
    host.initialize(json!({})).await;
    host.load("a").await;
    for (case, tool, result, lines, whole) in large_results() {
        assert!(whole.len() >= 31_000_000, "{case}: {}", whole.len());
        let arguments = raw(&result, lines);
        for name in ["use_tool", &format!("a__{tool}")] {
            let input = json!({"tool_name": format!("a/{tool}"), "tool_input": arguments});
            let is_direct = name != "use_tool";
            let preview = host.call(name, if is_direct { arguments.clone() } else { input }).await;
            assert!(preview.to_string().len() <= MAX_SHOWN_BYTES, "{case}: {preview}");
            // A host checks structured content only if it knows the tool.
            let must_fail = is_direct && tool == "structured";
            assert_eq!(preview["isError"] == true, must_fail, "{case} {name}: {preview}");
            let pages: Vec<_> = (1..=whole.len().div_ceil(6000)).collect();
            let is_read_whole = case == "text" && is_direct;
            let pages: Vec<_> =
                pages.into_iter().step_by(if is_read_whole { 1 } else { 997 }).collect();
            for pages in pages.chunks(200) {
                check_pages(&mut host, &id_in(&preview), &whole, pages).await;
            }
        }
    }
}

/// Reads pages, all at once, and compares them with the text.
async fn check_pages(host: &mut Host, id: &str, whole: &str, pages: &[usize]) {
    let before = host.received_count();
    let mut asked = HashMap::new();
    for page in pages {
        let part = json!({"id": id, "page": page});
        let read = json!({"tool_name": "dormouse/read_result", "tool_input": part});
        let call = json!({"name": "use_tool", "arguments": read});
        asked.insert(host.send("tools/call", call).await, *page);
    }
    eventually("all pages are read", || host.received_count() >= before + pages.len()).await;
    for line in &host.received()[before..] {
        let answer: Value = serde_json::from_str(line).unwrap();
        let page = asked[&answer["id"].as_u64().unwrap()];
        let expected = &whole[(page - 1) * 6000..whole.len().min(page * 6000)];
        assert_eq!(text_of(&answer["result"]), expected, "page {page}");
    }
}

#[tokio::test]
async fn every_byte_of_a_cut_result_can_be_read() {
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    let content = json!([text_block("ä\u{1F42D}\n<lines>"), text_block("the end")]);
    let result = json!({"content": content, "structuredContent": {"log": "<lines>"}});
    let preview = host.use_tool("a/raw", raw(&result, 10_000)).await;
    let text = lines(10_000);
    let structured = json!({"log": text});
    let whole = format!("ä\u{1F42D}\n{text}\nthe end\n{structured}");
    assert_eq!(read_all(&mut host, &id_in(&preview)).await, whole);
    let uri = uri_in(&preview);
    let mut of_resource = String::new();
    for page in 1..=whole.len().div_ceil(6000) {
        let params = json!({"uri": format!("{uri}?page={page}")});
        let read = host.request("resources/read", params).await;
        of_resource.push_str(read["contents"][0]["text"].as_str().unwrap());
    }
    assert_eq!(of_resource, whole);
}

#[tokio::test]
async fn each_surface_says_how_to_read_more() {
    let result = json!({"content": [text_block("<lines>")]});
    let mut cases = Cases::default();
    for surface in ["discover", "groups", "activate", "direct"] {
        let proxy = Proxy::with([Server::lazy("a")]).set("surface", surface);
        let mut host = proxy.set("maxResultBytes", 1000).serve().await;
        host.load("a").await;
        host.call("activate_a", json!({})).await;
        let before = host.tool_names().await;
        let preview = match surface {
            "discover" => host.use_tool("a/raw", raw(&result, 1000)).await,
            "groups" => {
                let input = json!({"group": "a", "name": "raw", "args": raw(&result, 1000)});
                host.call("call_dynamic_tool", input).await
            }
            _ => host.call("a__raw", raw(&result, 1000)).await,
        };
        let note = preview["content"][1]["text"].as_str().unwrap();
        cases.add(surface, &note.replace(&id_in(&preview), "<id>"));
        let mut after = host.tool_names().await;
        let is_listed = after.last().is_some_and(|name| name == "read_result");
        assert_eq!(is_listed, matches!(surface, "activate" | "direct"), "{surface}: {after:?}");
        if is_listed {
            after.pop();
        }
        assert_eq!(after, before, "{surface}");
        let part = json!({"id": id_in(&preview), "page": 1});
        let page = match surface {
            "discover" => host.use_tool("dormouse/read_result", part).await,
            "groups" => {
                let input = json!({"group": "dormouse", "name": "read_result", "args": part});
                host.call("call_dynamic_tool", input).await
            }
            _ => host.call("read_result", part).await,
        };
        assert_eq!(text_of(&page), &lines(1000)[..6000], "{surface}");
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn list_with_read_result_is_announced_before_the_preview() {
    let mut host = Proxy::with([Server::eager("a")])
        .set("surface", "direct")
        .set("maxResultBytes", 1000)
        .serve()
        .await;
    host.tool_names().await;
    let arguments = raw(&json!({"content": [text_block("<lines>")]}), 1000);
    let before = host.received_count();
    host.call("a__raw", arguments.clone()).await;
    let received = host.received();
    let positions = ["notifications/tools/list_changed", "maxResultBytes"]
        .map(|text| received[before..].iter().position(|line| line.contains(text)));
    assert_eq!(positions, [Some(0), Some(1)], "{:?}", &received[before..]);
    host.call("a__raw", arguments).await;
    let received = host.received();
    let lists = received[before..].iter().filter(|line| line.contains("tools/list_changed"));
    assert_eq!(lists.count(), 1, "the list changes once");
}

#[tokio::test]
async fn parts_of_a_result_are_found_by_pattern_and_path() {
    let mut host = Proxy::with([Server::lazy("a")]).set("maxResultBytes", 1000).serve().await;
    let items: Vec<_> = (0..100).map(|id| json!({"id": id, "name": format!("n{id}")})).collect();
    let result = json!({"content": [text_block("<lines>")], "structuredContent": {"items": items}});
    let preview = host.use_tool("a/raw", raw(&result, 500)).await;
    let id = id_in(&preview);
    let mut cases = Cases::default();
    for part in [
        json!({"grep": "line 4.7$"}),
        json!({"grep": "\"id\":7", "limit": 1}),
        json!({"grep": "line", "limit": 2}),
        json!({"grep": "("}),
        json!({"grep": "nothing"}),
        json!({"jsonpath": "$.items[3].name"}),
        json!({"jsonpath": "$.items[-2:]"}),
        json!({"jsonpath": "$..id", "limit": 3}),
        json!({"jsonpath": "$.nothing"}),
        json!({"jsonpath": "items[?(@.id>3)]"}),
        json!({"page": 0}),
        json!({"page": 99}),
        json!({"page": "x"}),
        json!({"page": 1, "grep": "x"}),
        json!({"grep": "x", "limit": 0}),
    ] {
        let mut arguments = part.clone();
        arguments["id"] = json!(id);
        let found = host.use_tool("dormouse/read_result", arguments).await;
        let texts = found["content"].as_array().unwrap().iter();
        let texts: Vec<_> = texts.filter_map(|block| block["text"].as_str()).collect();
        let is_error = if found["isError"] == true { "error: " } else { "" };
        cases.add(part.to_string(), &format!("{is_error}{}", texts.join("\n")));
    }
    for arguments in [json!({}), json!({"id": 7}), json!({"id": "unknown"})] {
        let found = host.use_tool("dormouse/read_result", arguments.clone()).await;
        cases.add(arguments.to_string(), text_of(&found));
    }
    insta::assert_snapshot!(cases);
    let calls = host.server_log("a");
    let calls = calls.iter().filter(|line| line.starts_with("tools/call"));
    assert_eq!(calls.count(), 1, "the tool is called once");
}

#[tokio::test]
async fn result_is_read_only_by_the_session_that_made_the_call() {
    let program = Proxy::with([Server::lazy("a")]).set("maxResultBytes", 1000).start_http();
    let (mut host, mut other) = (program.host("/mcp").await, program.host("/mcp").await);
    host.initialize(json!({})).await;
    other.initialize(json!({})).await;
    let result = json!({"content": [text_block("<lines>")]});
    let preview = host.use_tool("a/raw", raw(&result, 1000)).await;
    let (id, uri) = (id_in(&preview), uri_in(&preview));
    let mut cases = Cases::default();
    let read = other.use_tool("dormouse/read_result", json!({"id": id})).await;
    cases.add("read_result in another session", &redacted(text_of(&read)));
    for (case, uri) in [
        ("another session", uri.clone()),
        ("a page after the last", format!("{uri}?page=3")),
        ("a page that is no number", format!("{uri}?page=x")),
    ] {
        let host = if case == "another session" { &mut other } else { &mut host };
        let refused = host.ask("resources/read", json!({"uri": uri})).await;
        cases.add(case, &redacted(refused["error"]["message"].as_str().unwrap()));
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn errors_and_images_are_passed_on() {
    let mut host = Proxy::with([Server::lazy("a")]).set("maxResultBytes", 100).serve().await;
    let long = "x".repeat(1000);
    let image = json!({"type": "image", "data": long, "mimeType": "image/png"});
    for whole in
        [json!({"content": [text_block(&long)], "isError": true}), json!({"content": [image]})]
    {
        assert_eq!(host.use_tool("a/raw", raw(&whole, 0)).await, whole);
    }
    let mixed = json!({"content": [text_block(&long), image], "_meta": {"a": 1}});
    let preview = host.use_tool("a/raw", raw(&mixed, 0)).await;
    assert_eq!(preview["content"].as_array().unwrap().last(), Some(&image), "{preview}");
    assert_eq!(preview["_meta"], json!({"a": 1}));
}

#[tokio::test]
async fn fidelity_is_the_default_where_it_is_promised() {
    let content = json!([text_block("<lines>")]);
    let result = json!({"content": content, "structuredContent": {"log": "<lines>"}});
    let whole = result.to_string().replace("<lines>", &lines(20_000).replace('\n', "\\n"));
    let direct = Proxy::with([Server::eager("a")]).set("surface", "direct");
    let mut direct = direct.serve().await;
    direct.tool_names().await;
    let off = Proxy::with([Server::eager("a").set("maxResultBytes", 0)]);
    let mut off = off.set("maxResultBytes", 1000).serve().await;
    let program = Proxy::with([Server::eager("a")]).start_http();
    let mut endpoint = program.host("/servers/a/mcp").await;
    endpoint.initialize(json!({})).await;
    let input = json!({"tool_name": "a/raw", "tool_input": raw(&result, 20_000)});
    for (case, host, name, arguments) in [
        ("direct", &mut direct, "a__raw", raw(&result, 20_000)),
        ("switched off", &mut off, "use_tool", input),
        ("endpoint of the server", &mut endpoint, "raw", raw(&result, 20_000)),
    ] {
        let id = host.send("tools/call", json!({"name": name, "arguments": arguments})).await;
        let line = host.answer_line(&json!(id)).await;
        assert!(line.contains(&format!("\"result\":{whole}")), "{case}");
    }
}

/// The capabilities of a modern host that knows tasks.
fn knows_tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn server_with_tasks(is_modern: bool) -> Server {
    Server::eager("a")
        .script("tasks", true)
        .script("modern_only", is_modern)
        .script("ignore", "subscriptions/listen")
        .script("extra_tools", json!(["begin", "finish"]))
}

#[tokio::test]
async fn results_of_tasks_are_cut() {
    let limited = |is_modern| {
        let result = json!({"content": [{"type": "text", "text": "line\n".repeat(1000)}]});
        let proxy = Proxy::with([server_with_tasks(is_modern).script("task_result", result)]);
        proxy.set("surface", "direct").set("maxResultBytes", 15).start()
    };
    let mut host = limited(false);
    host.initialize(json!({})).await;
    host.tool_names().await;
    let begin = json!({"name": "a__begin", "arguments": {"id": "t"}, "task": {"ttl": 60_000}});
    host.request("tools/call", begin).await;
    host.call("a__finish", json!({"id": "t"})).await;
    let of_legacy = host.request("tasks/result", json!({"taskId": "t"})).await;

    let mut host = limited(true).into_modern();
    host.request("tools/list", json!({})).await;
    let begin = json!({"name": "a__begin", "arguments": {"id": "t"}});
    host.request_as("tools/call", begin, &knows_tasks()).await;
    let mut filter = ModernHost::meta(json!({"notifications": {"taskIds": ["t"]}}));
    filter["_meta"]["io.modelcontextprotocol/clientCapabilities"] = knows_tasks();
    host.0.send("subscriptions/listen", filter).await;
    host.0.notification("notifications/subscriptions/acknowledged").await;
    host.call("a__finish", json!({"id": "t"})).await;
    let told = host.0.notification("notifications/tasks").await["params"]["result"].clone();
    let fetched = host.request_as("tasks/get", json!({"taskId": "t"}), &knows_tasks()).await;
    assert_eq!(fetched["result"], told, "equal results are kept once");
    for (case, result) in [("legacy", of_legacy), ("modern", told)] {
        assert_eq!(text_of(&result), "line\nline", "{case}: the beginning of the text");
        assert!(uri_in(&result).starts_with("dormouse://results/"), "{case}: {result}");
    }
}

#[tokio::test]
async fn result_of_a_task_is_an_error_if_a_tool_may_promise_its_structure() {
    let promising = json!({"name": "structured", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"}});
    let structured = json!({"content": [], "structuredContent": {"log": "x".repeat(2000)}});
    for (is_error, definitions) in [(false, json!([])), (true, json!([promising]))] {
        let server = server_with_tasks(false)
            .script("task_result", structured.clone())
            .script("definitions", definitions);
        let proxy = Proxy::with([server]).set("surface", "direct").set("maxResultBytes", 1000);
        let mut host = proxy.serve().await;
        host.tool_names().await;
        let begin = json!({"name": "a__begin", "arguments": {"id": "t"}, "task": {}});
        host.request("tools/call", begin).await;
        host.call("a__finish", json!({"id": "t"})).await;
        let result = host.request("tasks/result", json!({"taskId": "t"})).await;
        assert_eq!(result["isError"] == true, is_error, "{result}");
    }
}

#[tokio::test]
async fn equal_results_of_a_session_are_kept_once() {
    let mut host = Proxy::with([Server::lazy("a")]).set("maxResultBytes", 1000).serve().await;
    let result = |text: &str| raw(&json!({"content": [text_block(text)]}), 1000);
    let first = host.use_tool("a/raw", result("<lines>")).await;
    let second = host.use_tool("a/raw", result("<lines>")).await;
    let other = host.use_tool("a/raw", result("<lines>.")).await;
    assert_eq!(id_in(&first), id_in(&second));
    assert_ne!(id_in(&first), id_in(&other));
}

#[tokio::test]
async fn stable_list_stays_when_a_result_is_cut() {
    for surface in ["activate", "direct", "groups", "discover"] {
        let proxy = Proxy::with([Server::lazy("a")]).set("surface", surface);
        let proxy = proxy.set("listing", "stable").set("maxResultBytes", 1000);
        let mut host = proxy.serve().await;
        host.load("a").await;
        let before = host.request("tools/list", json!({})).await;
        let result = json!({"content": [text_block("<lines>")]});
        let preview = host.use_tool("a/raw", raw(&result, 1000)).await;
        assert_eq!(host.request("tools/list", json!({})).await, before, "{surface}");
        let part = json!({"id": id_in(&preview), "page": 2});
        let read = host.use_tool("dormouse/read_result", part).await;
        assert_eq!(text_of(&read), &lines(1000)[6000..], "{surface}: {preview}");
    }
}

#[tokio::test]
async fn server_named_dormouse_has_its_own_read_result() {
    let namesake = Server::eager("dormouse").script("extra_tools", json!(["read_result"]));
    for surface in ["discover", "groups"] {
        let proxy = Proxy::with([namesake.clone()]).set("surface", surface);
        let mut host = proxy.set("maxResultBytes", 1000).serve().await;
        let result = json!({"content": [text_block("<lines>")]});
        let preview = host.use_tool("dormouse/raw", raw(&result, 1000)).await;
        let note = preview["content"][1]["text"].as_str().unwrap();
        assert!(!note.contains("read_result"), "{surface}: {note}");
        let read = host.request("resources/read", json!({"uri": uri_in(&preview)})).await;
        assert_eq!(read["contents"][0]["text"], lines(1000)[..6000], "{surface}");
    }
}

#[tokio::test]
async fn endpoint_of_a_server_with_a_limit_has_resources() {
    let limited = Server::eager("a").set("maxResultBytes", 1000);
    let servers = [limited, Server::eager("b")].map(|server| {
        let handshake = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1"}});
        let own = json!({"resources": [], "own": true});
        server.script("answers", json!({"initialize": handshake, "resources/list": own}))
    });
    let program = Proxy::with(servers).start_http();
    let mut host = program.host("/servers/a/mcp").await;
    let handshake = host.initialize(json!({})).await;
    assert_eq!(handshake["capabilities"], json!({"tools": {}, "resources": {}}));
    assert_eq!(host.request("resources/list", json!({})).await, json!({"resources": []}));
    let arguments = raw(&json!({"content": [text_block("<lines>")]}), 1000);
    let preview = host.call("raw", arguments).await;
    let read = host.request("resources/read", json!({"uri": uri_in(&preview)})).await;
    assert_eq!(read["contents"][0]["text"], lines(1000)[..6000]);

    let mut unlimited = program.host("/servers/b/mcp").await;
    let handshake = unlimited.initialize(json!({})).await;
    assert_eq!(handshake["capabilities"], json!({"tools": {}}));
    assert_eq!(unlimited.request("resources/list", json!({})).await["own"], true);
}

#[tokio::test]
async fn bytes_withheld_from_hosts_are_counted() {
    let proxy = Proxy::with([Server::lazy("a")]).set("apiTokens", json!(["secret-of-operators"]));
    let program = proxy.start_http();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    let result = json!({"content": [text_block("<lines>")]});
    let preview = host.use_tool("a/raw", raw(&result, 20_000)).await;
    let whole = result.to_string().replace("<lines>", &lines(20_000).replace('\n', "\\n"));
    let withheld = whole.len() - preview.to_string().len();
    let ask = async |path: &str| {
        let url = program.url(path).await;
        let asked = http_client().get(&url).bearer_auth("secret-of-operators").send().await;
        asked.unwrap().text().await.unwrap()
    };
    let status: Value = serde_json::from_str(&ask("/api/v1/status").await).unwrap();
    assert_eq!(status["savings"]["withheldBytes"], withheld, "{status}");
    let metrics = ask("/metrics").await;
    let counted =
        format!("dormouse_result_withheld_bytes_total{{dormouse_server=\"a\"}} {withheld}");
    assert!(metrics.lines().any(|line| line == counted), "{counted} is not in\n{metrics}");
}
