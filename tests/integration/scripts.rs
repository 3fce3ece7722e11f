//! Scripts of agents: what they can call, what they return, and what they cannot do.

use serde_json::{Value, json};

use crate::support::{Host, Proxy, Server, descendants, eventually, redacted, text_of};

fn proxy() -> Proxy {
    Proxy::with([Server::lazy("a"), Server::lazy("my-server")]).set("scripts", true)
}

async fn run(host: &mut Host, code: &str) -> Value {
    host.call("run_script", json!({"code": code, "input": {"n": 2}})).await
}

/// Returns the names of the tools that a server was asked to call, in order.
fn called(host: &Host, server: &str) -> Vec<String> {
    crate::policy::called(host, server)
}

#[tokio::test]
async fn script_calls_many_tools_and_returns_one_value() {
    let mut host = proxy().serve().await;
    let code = "const one = await mcp.a.echo({ n: input.n });
        const all = await Promise.all([1, 2, 3].map((n) => mcp.my_server.echo({ n })));
        return { one: one.arguments.n, all: all.map((it) => it.arguments.n) };";
    let result = run(&mut host, code).await;
    assert_eq!(text_of(&result), r#"{"one":2,"all":[1,2,3]}"#);
    assert_eq!(called(&host, "my-server").len(), 3);
}

#[tokio::test]
async fn script_is_offered_on_every_surface_if_the_config_says_so() {
    for surface in ["discover", "groups", "activate", "direct"] {
        let mut host = proxy().set("surface", surface).serve().await;
        assert!(host.tool_names().await.contains(&"run_script".to_owned()), "{surface}");
        assert_eq!(text_of(&run(&mut host, "return await mcp.a.shout()").await), "shouted");
    }
    let mut host = Proxy::with([Server::lazy("a")]).serve().await;
    assert!(!host.tool_names().await.contains(&"run_script".to_owned()));
    assert!(text_of(&run(&mut host, "1").await).contains("Unknown tool"));
}

/// Returns a proxy with the saved script `triage`, which takes a text, and its file.
fn proxy_with_triage(code: &str) -> (Proxy, tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("triage.ts");
    std::fs::write(&file, code).unwrap();
    let triage = json!({
        "file": file,
        "description": "Says what came in",
        "input": {"properties": {"text": {"type": "string"}}, "required": ["text"]},
    });
    (Proxy::with([Server::lazy("a")]).set("scripts", json!({"triage": triage})), directory, file)
}

#[tokio::test]
async fn saved_script_is_a_tool_that_runs_its_file() {
    let code = "return (await mcp.a.echo({ said: input.text })).arguments.said as string";
    let (proxy, _directory, file) = proxy_with_triage(code);
    let mut host = proxy.serve().await;
    let listed = host.request("tools/list", json!({})).await;
    let all = listed["tools"].as_array().unwrap();
    let ours = all.iter().find(|tool| tool["name"] == "triage").expect("it is listed");
    assert_eq!(ours["description"], "Says what came in");
    assert_eq!(ours["inputSchema"]["type"], "object");
    assert!(!host.tool_names().await.contains(&"run_script".to_owned()));
    assert_eq!(text_of(&host.call("triage", json!({"text": "hello"})).await), "hello");
    std::fs::write(&file, "return 'changed'").unwrap();
    assert_eq!(text_of(&host.call("triage", json!({"text": "x"})).await), "changed");
    let refused = host.call("triage", json!({"txet": "x"})).await;
    assert_eq!(refused["isError"], true);
    insta::assert_snapshot!(text_of(&refused));
    std::fs::remove_file(&file).unwrap();
    let missing = host.call("triage", json!({"text": "x"})).await;
    assert!(text_of(&missing).contains("cannot read the script \"triage\""), "{missing}");
}

#[tokio::test]
async fn flag_lets_agents_run_scripts() {
    let mut host = Proxy::with([Server::lazy("a")]).argument("--scripts").serve().await;
    assert_eq!(text_of(&run(&mut host, "return 1").await), "1");
}

#[tokio::test]
async fn tools_have_declarations_with_the_shapes_of_results_that_were_seen() {
    let mut host = proxy().serve().await;
    let code = "const before = await tools.describe('a/raw');
        await mcp.a.raw({ result: JSON.stringify({ content: [{ type: 'text', text: input.text }] }) });
        const after = await tools.search('raw of a');
        return [before.typescript, before.inputSchema.type,
          Object.keys(after[0]), after.find((it) => it.name === 'a/raw').typescript]";
    let text = json!({"items": [{"id": 1, "tags": ["x"]}, {"id": 2}], "next": null}).to_string();
    let arguments = json!({"code": code, "input": {"text": text}});
    let result = host.call("run_script", arguments).await;
    let said: Value = serde_json::from_str(text_of(&result)).unwrap();
    assert_eq!(
        said,
        json!([
            "mcp.a.raw(args?: { z?: unknown; a?: unknown }): Promise<any>",
            "object",
            ["name", "description", "typescript"],
            "mcp.a.raw(args?: { z?: unknown; a?: unknown }): \
                Promise<{ items: { id: number; tags?: string[] }[]; next: null }>",
        ])
    );
}

#[tokio::test]
async fn progress_of_a_script_rises_over_all_its_calls() {
    let mut host = proxy().serve().await;
    let code = "await Promise.all([1, 2, 3].map(() => mcp.a.progress({ count: 2 })))";
    let params = json!({
        "name": "run_script",
        "arguments": {"code": code},
        "_meta": {"progressToken": "p"},
    });
    host.request("tools/call", params).await;
    let said = host.received();
    let said = said.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = said.filter(|message| message["method"] == "notifications/progress");
    let told: Vec<u64> = told.map(|it| it["params"]["progress"].as_u64().unwrap()).collect();
    // Each call reports two steps, and ends.
    assert_eq!(told, (1..=9).collect::<Vec<_>>());
}

#[tokio::test]
async fn misspelt_names_have_hints() {
    let mut host = proxy().serve().await;
    let mut said = Vec::new();
    for code in ["await mcp.a.echoo()", "await mcp.my_sever.echo()", "await tools.call('a/ehco')"] {
        said.push(format!("{code}\n=> {}", redacted(text_of(&run(&mut host, code).await))));
    }
    insta::assert_snapshot!(said.join("\n\n"));
}

#[tokio::test]
async fn description_fits_what_hosts_pass_on() {
    let servers = (0..200).map(|number| Server::lazy(&format!("server-number-{number}")));
    let mut host = Proxy::with(servers.collect::<Vec<_>>()).set("scripts", true).serve().await;
    let tools = host.request("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    let ours = tools.iter().find(|tool| tool["name"] == "run_script").unwrap();
    let description = ours["description"].as_str().unwrap();
    assert!(description.len() <= 2048, "{}", description.len());
    assert!(description.contains("server-number-0") && description.contains(" more"));
}

#[tokio::test]
async fn failures_say_where_and_what_had_been_done() {
    let mut host = proxy().serve().await;
    let mut said = Vec::new();
    for code in [
        "const first = await mcp.a.echo({});\nconst x = await mcp.a.nothing({});\nreturn x",
        "const first = await mcp.a.echo({});\nreturn first.no.such",
        "const a: number = ;",
        "return await mcp.a.echo('text')",
        "enum A { B }",
        "while (true",
        "return await new Promise(() => {})",
        "console.log('before'); throw { odd: 1 }",
    ] {
        let result = run(&mut host, code).await;
        assert_eq!(result["isError"], true, "{code}: {result}");
        said.push(format!("{code}\n=> {}", redacted(text_of(&result))));
    }
    insta::assert_snapshot!(said.join("\n\n"));
}

#[tokio::test]
async fn failed_call_can_be_caught_and_its_answer_has_the_servers_text() {
    let mut host = proxy().serve().await;
    let code = "try {
          await mcp.a.raw({ result: '{\"content\":[{\"type\":\"text\",\"text\":\"no luck\"}],\"isError\":true}' });
        } catch (error) { return `${error.name}: ${error.message}` }";
    let result = run(&mut host, code).await;
    assert_eq!(text_of(&result), "ToolError: a/raw: no luck");
}

#[tokio::test]
async fn policy_holds_for_every_call_of_a_script() {
    let policy = json!([{"tools": "a/echo", "then": "deny", "reason": "not here"}]);
    let mut host = proxy().set("policy", policy).serve().await;
    for call in [
        "mcp.a.echo({})",
        "mcp.A.Echo({})",
        "tools.call('a/echo', {})",
        "tools.call('a__echo', {})",
        "tools.call('echo', {})",
    ] {
        let result = run(&mut host, &format!("return await {call}")).await;
        assert_eq!(result["isError"], true, "{call}: {result}");
    }
    assert_eq!(called(&host, "a"), Vec::<String>::new());
    assert_eq!(text_of(&run(&mut host, "return await mcp.a.shout()").await), "shouted");
}

#[tokio::test]
async fn user_of_a_legacy_host_is_asked_while_the_script_waits() {
    let policy = json!([{"tools": "a/echo", "then": "ask"}]);
    let mut host = proxy().set("policy", policy).serve().await;
    let code = "const said = await mcp.a.echo({ x: 1 }); return said.arguments.x + 1";
    let arguments = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.send("tools/call", arguments).await;
    let question = host.message("elicitation/create", |_| true).await;
    let answer = json!({"action": "accept", "content": {"decision": "once"}});
    host.reply(&question, answer).await;
    let result = host.answer(id).await["result"].clone();
    assert_eq!(text_of(&result), "2");
}

#[tokio::test]
async fn modern_host_is_asked_by_its_result_and_the_script_goes_on() {
    let policy = json!([{"tools": "a/echo", "then": "ask"}]);
    let program = proxy().set("policy", policy).start_http();
    let mut host = program.modern("/mcp").await;
    let declared = json!({"elicitation": {"form": {}}});
    let code = "const before = await mcp.a.shout();
        const all = await Promise.all([1, 2].map((n) => mcp.a.echo({ n })));
        return [before, ...all.map((it) => it.arguments.n)]";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let asked = host.request_as("tools/call", params.clone(), &declared).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let questions = asked["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 2, "{asked}");
    let answer = json!({"action": "accept", "content": {"decision": "once"}});
    let answers: serde_json::Map<String, Value> =
        questions.keys().map(|key| (key.clone(), answer.clone())).collect();
    let mut retry = params;
    retry["requestState"] = asked["requestState"].clone();
    retry["inputResponses"] = Value::Object(answers);
    let result = host.request_as("tools/call", retry, &declared).await;
    assert_eq!(text_of(&result), r#"["shouted",1,2]"#, "{result}");
    assert_eq!(crate::policy::called(&program, "a"), ["shout", "echo", "echo"]);
}

/// A script that has the server ask the user two questions, one after the other.
const ASKING_SCRIPT: &str = "const said = [];
    for (const message of ['first?', 'second?']) {
      const params = { message, requestedSchema: { type: 'object', properties: {} } };
      said.push((await mcp.a.ask({ method: 'elicitation/create', params })).action);
    }
    return said.join()";

#[tokio::test]
async fn questions_of_servers_reach_the_user_of_a_legacy_host() {
    let mut host = proxy().serve().await;
    let params = json!({"name": "run_script", "arguments": {"code": ASKING_SCRIPT}});
    let id = host.send("tools/call", params).await;
    for (message, action) in [("first?", "accept"), ("second?", "decline")] {
        let is_it = |asked: &Value| asked["params"]["message"] == message;
        let question = host.message("elicitation/create", is_it).await;
        host.reply(&question, json!({"action": action, "content": {}})).await;
    }
    assert_eq!(text_of(&host.answer(id).await["result"]), "accept,decline");
}

#[tokio::test]
async fn questions_of_servers_reach_the_user_of_a_modern_host() {
    let program = proxy().start_http();
    let mut host = program.modern("/mcp").await;
    let declared = json!({"elicitation": {"form": {}}});
    let params = json!({"name": "run_script", "arguments": {"code": ASKING_SCRIPT}});
    let mut answer = host.request_as("tools/call", params.clone(), &declared).await;
    for (message, action) in [("first?", "accept"), ("second?", "decline")] {
        let questions = answer["inputRequests"].as_object().expect("it asks").clone();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!(question["params"]["message"], message);
        let mut retry = params.clone();
        retry["requestState"] = answer["requestState"].clone();
        retry["inputResponses"] = json!({key: {"action": action, "content": {}}});
        answer = host.request_as("tools/call", retry, &declared).await;
    }
    assert_eq!(text_of(&answer), "accept,decline", "{answer}");
}

#[tokio::test]
async fn refused_call_of_a_modern_host_is_an_error_in_its_script() {
    let policy = json!([{"tools": "a/echo", "then": "ask"}]);
    let program = proxy().set("policy", policy).start_http();
    let mut host = program.modern("/mcp").await;
    let declared = json!({"elicitation": {"form": {}}});
    let code = "const all = await Promise.allSettled([1, 2, 3].map((n) => mcp.a.echo({ n })));
        return all.map((it) => it.status)";
    let mut params = json!({"name": "run_script", "arguments": {"code": code}});
    let asked = host.request_as("tools/call", params.clone(), &declared).await;
    let keys: Vec<&String> = asked["inputRequests"].as_object().unwrap().keys().collect();
    // The user accepts one call and declines one, and the host forgets the third.
    let accepted = json!({"action": "accept", "content": {"decision": "once"}});
    params["inputResponses"] = json!({keys[0]: accepted, keys[1]: {"action": "decline"}});
    params["requestState"] = asked["requestState"].clone();
    let mut answer = host.request_as("tools/call", params.clone(), &declared).await;
    if answer["resultType"] == "input_required" {
        let again = answer["inputRequests"].as_object().unwrap();
        assert_eq!(again.keys().collect::<Vec<_>>(), [keys[2]], "{answer}");
        params["inputResponses"] = json!({keys[2]: {"action": "cancel"}});
        params["requestState"] = answer["requestState"].clone();
        answer = host.request_as("tools/call", params, &declared).await;
    }
    assert_eq!(text_of(&answer).lines().next(), Some(r#"["fulfilled","rejected","rejected"]"#));
    assert_eq!(crate::policy::called(&program, "a"), ["echo"]);
}

#[tokio::test]
async fn question_does_not_wait_for_other_calls_of_its_server() {
    let program = proxy().start_http();
    let mut host = program.modern("/mcp").await;
    let declared = json!({"elicitation": {"form": {}}});
    // The server does not say which of its calls a question is for.
    let code =
        "const params = { message: 'q', requestedSchema: { type: 'object', properties: {} } };
        const ask = mcp.a.ask({ method: 'elicitation/create', params });
        const [said, slow] = await Promise.all([ask, mcp.a.slow({ ms: 1000 })]);
        return [said.action, slow]";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let asked = host.request_as("tools/call", params.clone(), &declared).await;
    let questions = asked["inputRequests"].as_object().expect("it asks").clone();
    let mut retry = params;
    retry["requestState"] = asked["requestState"].clone();
    let accept = |key: &String| (key.clone(), json!({"action": "accept", "content": {}}));
    retry["inputResponses"] = Value::Object(questions.keys().map(accept).collect());
    let result = host.request_as("tools/call", retry, &declared).await;
    assert_eq!(text_of(&result).lines().next(), Some(r#"["accept","slept"]"#), "{result}");
}

#[tokio::test]
async fn text_with_line_breaks_between_its_json_is_a_value() {
    let mut host = proxy().serve().await;
    let code = "const text = JSON.stringify({ a: [1, 'x\\ny'] }, null, 2);
        const content = [{ type: 'text', text }];
        return (await mcp.a.raw({ result: JSON.stringify({ content }) })).a";
    assert_eq!(text_of(&run(&mut host, code).await), r#"[1,"x\ny"]"#);
}

#[tokio::test]
async fn name_that_exists_means_no_other_tool() {
    let off = Server::lazy("my_server").set("enabled", false);
    let mine = Server::lazy("my-server").set("tools", json!({"echo_it": false}));
    let definition = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mine = mine.script("definitions", json!([definition("echo_it"), definition("echoIt")]));
    let mut host = Proxy::with([off, mine]).set("scripts", true).serve().await;
    for call in ["mcp.my_server.echo()", "mcp['my-server'].echo_it()"] {
        let result =
            run(&mut host, &format!("await mcp.myServer.shout(); return await {call}")).await;
        assert_eq!(result["isError"], true, "{call}: {result}");
    }
    assert_eq!(called(&host, "my-server"), ["shout", "shout"]);
}

#[tokio::test]
async fn server_as_text_makes_no_call() {
    let mut host = proxy().serve().await;
    let result = run(&mut host, "return `${mcp.a}`").await;
    assert!(text_of(&result).contains("TypeError"), "{result}");
    assert_eq!(called(&host, "a"), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn worker_that_computes_ends_with_a_killed_dormouse() {
    let mut host = proxy().set("scriptTime", "1h").serve().await;
    host.send("tools/call", json!({"name": "run_script", "arguments": {"code": "for (;;) {}"}}))
        .await;
    let workers = || -> Vec<u32> {
        let has_name = |process: &u32| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("__script-worker")
        };
        descendants(host.serving_id()).into_iter().filter(has_name).collect()
    };
    eventually("the script runs", || !workers().is_empty()).await;
    let all = workers();
    let serving = nix::unistd::Pid::from_raw(i32::try_from(host.serving_id()).unwrap());
    nix::sys::signal::kill(serving, nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("no worker is left", || {
        all.iter().all(|process| !crate::support::is_alive(*process))
    })
    .await;
}

#[tokio::test]
async fn calls_with_one_forged_id_are_asked_about_separately() {
    let policy = json!([{"tools": "a/*", "then": "ask"}]);
    let mut host = proxy().set("policy", policy).serve().await.into_modern();
    let code = "Object.defineProperty(Object.prototype, 'toJSON', { value() {
          return this.id === undefined ? this : { id: 1, request: this.request };
        } });
        return await Promise.all([mcp.a.shout(), mcp.a.echo({ hidden: 1 })])";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let capabilities = json!({"elicitation": {}});
    let asked = host.request_as("tools/call", params, &capabilities).await;
    let questions = asked["inputRequests"].as_object().expect("it asks").clone();
    let texts: Vec<String> = questions.values().map(ToString::to_string).collect();
    assert_eq!(questions.len(), 2, "{texts:?}");
    for tool in ["shout", "echo"] {
        assert!(texts.iter().any(|text| text.contains(tool)), "{tool}: {texts:?}");
    }
}

#[tokio::test]
async fn cancelled_script_ends_its_worker_and_its_calls() {
    let mut host = proxy().serve().await;
    run(&mut host, "return await mcp.a.shout()").await;
    // The server, and the watchdog.
    let before = 2;
    eventually("its worker is gone", || descendants(host.serving_id()).len() == before).await;
    let code = "await mcp.a.hang({}); return 1";
    let arguments = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.send("tools/call", arguments).await;
    eventually("it has called", || called(&host, "a").contains(&"hang".to_owned())).await;
    assert_eq!(descendants(host.serving_id()).len(), before + 1);
    host.notify("notifications/cancelled", json!({"requestId": id})).await;
    eventually("its worker is gone", || descendants(host.serving_id()).len() == before).await;
}

#[tokio::test]
async fn large_value_is_cut_and_large_results_of_calls_are_not() {
    let mut host = proxy().serve().await;
    let code = "const all = await mcp.a.huge({ bytes: 2000000 }); return all.slice(0, 200000)";
    let result = run(&mut host, code).await;
    assert!(result.to_string().len() < 4000, "{}", result.to_string().len());
    assert!(result.to_string().contains("read_result"), "{result}");
    let code = "return (await mcp.a.huge({ bytes: 2000000 })).length";
    assert_eq!(text_of(&run(&mut host, code).await), "2000000");
}

#[tokio::test]
async fn limits_of_the_config_hold() {
    let proxy = proxy().set("scriptTime", "300ms").set("scriptCalls", 3).set("scriptOutput", 100);
    let mut host = proxy.serve().await;
    for (code, expected) in [
        ("for (;;) {}", "300ms"),
        ("for (let i = 0; i < 5; i++) await mcp.a.shout()", "at most 3 calls"),
        ("return 'x'.repeat(200)", "more than the 100"),
    ] {
        let result = run(&mut host, code).await;
        assert!(text_of(&result).contains(expected), "{code}: {result}");
    }
    assert_eq!(called(&host, "a").len(), 3);
}
